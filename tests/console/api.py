#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the console says: JSON and the text of Prometheus, of a program that is told what to do.

    api.py CROWD [--brief | TEST...]

--brief: what depends on how the console does its I/O, and on how it was compiled.
"""

import os
import re
import sys
import tempfile

from crowd import Crowd

PROGRAM = sys.argv[1]


# ---- tasks ----


def test_tasks_have_names_states_and_backtraces(crowd):
    crowd.do("crowd 30")
    crowd.wait_for_waiting(30)
    answer = crowd.tasks("limit=1000")
    assert answer["matched"] == len(answer["tasks"]) == 30, answer
    named = [t for t in answer["tasks"] if t["name"] == "member 10"]
    assert len(named) == 1, named
    task = named[0]
    assert task["state"] == "waiting" and not task["cancelled"], task
    assert task["polls"] == 1 and task["since_ns"] >= 0 and task["busy_ns"] >= 0, task
    assert [f["fn"] for f in task["stack"]] == ["named_member", "member", "token_cancelled"], task
    assert [f["depth"] for f in task["stack"]] == [0, 1, 2], task
    assert re.fullmatch(r"crowd\.c:\d+", task["stack"][0]["at"]), task
    assert re.fullmatch(r"crowd\.c:\d+", task["spawned"]), task
    assert [w["kind"] for w in task["waits"]] == ["token"], task
    assert len({t["waits"][0]["object"] for t in answer["tasks"]}) == 1, "they wait for one token"


def test_tasks_are_sorted_by_every_key(crowd):
    crowd.do("crowd 40")
    crowd.wait_for_waiting(40)
    crowd.do("beat 3")
    keys = {"id": "id", "name": "name", "since": "since_ns", "polls": "polls", "busy": "busy_ns"}
    for sort, key in keys.items():
        for order in ("asc", "desc"):
            values = [t[key] for t in crowd.tasks(f"sort={sort}&order={order}&limit=1000")["tasks"]]
            assert len(values) == 43 and values == sorted(values, reverse=order == "desc"), sort
    by_default = [t["id"] for t in crowd.tasks("limit=1000")["tasks"]]
    assert by_default == sorted(by_default)
    assert crowd.tasks("sort=nonsense&limit=0")["matched"] == 43


def test_tasks_are_filtered_by_text_and_state(crowd):
    crowd.do("crowd 40")
    crowd.wait_for_waiting(40)
    crowd.do("deadlock")
    assert crowd.tasks("q=MEMBER%2010")["matched"] == 1, "a name, in any case"
    assert crowd.tasks("q=member+10")["matched"] == 1
    assert crowd.tasks("q=token_cancelled")["matched"] == 40, "in the backtrace"
    assert crowd.tasks("q=crowd.c:")["matched"] == 42, "where it was spawned, or is"
    assert crowd.tasks("q=nobody")["matched"] == 0
    some = crowd.tasks("limit=1")["tasks"][0]["id"]
    assert [t["id"] for t in crowd.tasks(f"q={some}")["tasks"]] == [some], "its number"
    crowd.wait_for("a deadlock", "/api/tasks?fresh=1&q=mutex_lock&state=waiting",
                   lambda a: a["matched"] == 2)
    assert crowd.tasks("state=running")["matched"] == 0
    assert crowd.tasks("state=waiting,queued")["matched"] == 42
    crowd.do("unlock")
    crowd.wait_for_waiting(40)


def test_windows_make_up_the_whole(crowd):
    crowd.do("crowd 250")
    crowd.wait_for_waiting(250)
    whole = [t["id"] for t in crowd.tasks("limit=1000&sort=name")["tasks"]]
    pieces = []
    for offset in range(0, 300, 50):
        answer = crowd.tasks(f"limit=50&offset={offset}&sort=name")
        assert answer["matched"] == 250 and answer["offset"] == min(offset, 250)
        pieces += [t["id"] for t in answer["tasks"]]
    assert pieces == whole
    assert len(crowd.tasks()["tasks"]) == 100, "the default"
    assert len(crowd.tasks("limit=99999999999999999999999&offset=-1")["tasks"]) == 250


def test_requests_close_to_each_other_share_a_snapshot(crowd):
    crowd.do("crowd 10")
    first = crowd.tasks()
    again = crowd.json("/api/tasks?sort=name")
    fresh = crowd.tasks()
    assert fresh["snapshot"] > again["snapshot"] >= first["snapshot"], (first, again, fresh)
    assert first["took_ns"] > 0


def test_a_hundred_thousand_tasks(crowd):
    crowd.do("crowd 100000")
    crowd.wait_for_waiting(100000)
    answer = crowd.tasks("sort=name&order=desc&offset=99990&limit=100")
    assert answer["total"] == answer["matched"] == 100000 and len(answer["tasks"]) == 10
    assert crowd.tasks("q=member%2099990")["matched"] == 1
    assert crowd.tasks("q=named_member")["matched"] == 10000
    crowd.do("dismiss")
    crowd.wait_for_waiting(0)


# ---- what they wait for ----


def test_resources_say_who_waits_for_whom(crowd):
    crowd.do("crowd 20")
    crowd.do("deadlock")
    crowd.do("beat 2")
    crowd.wait_for("a deadlock", "/api/tasks?fresh=1&q=mutex_lock&state=waiting",
                   lambda a: a["matched"] == 2)
    answer = crowd.wait_for("tokens", "/api/resources?fresh=1",
                            lambda a: a["resources"][0]["waiting"] == 20)
    token = answer["resources"][0]
    assert token["kind"] == "token" and token["holder"] is None and len(token["waiters"]) == 8
    mutexes = crowd.json("/api/resources?fresh=1&kind=mutex")
    assert mutexes["matched"] == len(mutexes["resources"]) == 2, mutexes
    names = {(m["holder"]["name"], m["waiters"][0]["name"]) for m in mutexes["resources"]}
    left, right = "left philosopher", "right philosopher"
    assert names == {(left, right), (right, left)}, mutexes
    assert len({m["object"] for m in mutexes["resources"]}) == 2
    kinds = {k["kind"]: k["waiting"] for k in mutexes["kinds"]}
    assert kinds["mutex"] == 2 and kinds["token"] == 20, kinds
    assert crowd.json("/api/resources?fresh=1&offset=1&limit=1")["resources"][0]["waiting"] == 1
    tasks = crowd.tasks("q=left+philosopher")["tasks"]
    holder = tasks[0]["waits"][0]["holder"]
    assert crowd.tasks(f"q={holder}")["tasks"][0]["name"] == right, tasks
    crowd.do("unlock")


def warnings_of(crowd, kind):
    return [w for w in crowd.json("/api/warnings?fresh=1")["warnings"] if w["kind"] == kind]


def test_a_deadlock_is_found_and_gone_when_it_ends(crowd):
    crowd.do("crowd 20")
    assert warnings_of(crowd, "deadlock") == []
    crowd.do("deadlock")
    crowd.wait_for("a deadlock", "/api/tasks?fresh=1&q=mutex_lock&state=waiting",
                   lambda a: a["matched"] == 2)
    found = warnings_of(crowd, "deadlock")
    assert len(found) == 1 and "2 tasks" in found[0]["text"], found
    assert {t["name"] for t in found[0]["tasks"]} == {"left philosopher", "right philosopher"}
    assert warnings_of(crowd, "deadlock")[0]["key"] == found[0]["key"]
    crowd.do("unlock")
    assert warnings_of(crowd, "deadlock") == []


def test_a_limit_or_a_select_makes_no_deadlock(crowd):
    crowd.do("patient")
    crowd.wait_for("waiting tasks", "/api/tasks?fresh=1&q=mutex_lock&state=waiting",
                   lambda a: a["matched"] == 2)
    task = crowd.tasks("q=left+philosopher")["tasks"][0]
    assert [f["fn"] for f in task["stack"]] == \
        ["patient", "select", "timeout", "mutex_lock", "token_cancelled"], task
    assert [f["depth"] for f in task["stack"]] == [0, 1, 2, 3, 2], task
    assert [f.get("branch") for f in task["stack"]] == [None, None, 0, None, 1], task
    assert [w["kind"] for w in task["waits"]] == ["mutex", "token"], task
    assert warnings_of(crowd, "deadlock") == []


def test_a_task_that_does_not_let_go_is_named(crowd):
    crowd.do("spin")
    found = crowd.wait_for("a stuck worker", "/api/warnings?fresh=1", lambda a: [
        w for w in a["warnings"] if w["kind"] == "never_yields"])["warnings"]
    assert [t["name"] for w in found for t in w["tasks"]] == ["spin"], found
    crowd.do("enough")
    crowd.wait_for("its end", "/api/warnings?fresh=1", lambda a: [
        w for w in a["warnings"] if w["kind"] == "long_poll"])
    assert warnings_of(crowd, "never_yields") == []


# ---- the rest ----


def test_the_overview_has_workers_histograms_and_pools(crowd):
    crowd.do("crowd 10")
    crowd.do("beat 2")
    crowd.do("pool")
    seen = crowd.wait_for("polls", "/api/overview", lambda o: o["runtimes"][0]["polls"] > 100)
    assert seen["title"] == "crowd" and seen["pid"] == crowd.process.pid
    rt = seen["runtimes"][0]
    assert not rt["ended"] and rt["live_tasks"] == 12 and rt["spawned"] >= 12, rt
    assert [w["index"] for w in rt["workers"]] == [0, 1], rt
    assert sum(w["polls"] for w in rt["workers"]) >= rt["polls"]
    assert all(isinstance(w["parked"], bool) and w["busy_ns"] > 0 for w in rt["workers"]), rt
    assert rt["blocking"]["jobs"] == 1, rt["blocking"]
    for name in ("poll_time", "latency"):
        h = rt[name]
        assert sum(n for _, n in h["buckets"]) == h["samples"], h
        floors = [f for f, _ in h["buckets"]]
        assert floors == sorted(floors) and h["p50_ns"] <= h["p99_ns"] <= h["max_ns"], h
    assert rt["poll_time"]["samples"] > 0
    assert [p["name"] for p in seen["pools"]] == ["default"] and seen["pools"][0]["injected"] == 1
    later = crowd.json("/api/overview")
    assert later["time_ns"] > seen["time_ns"] and later["requests"] == seen["requests"] + 1


def parse_metrics(text):
    """Checks every line; gives {name: {labels: value}}."""
    found, types, helps, current = {}, {}, set(), None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in helps, f"{name} twice"
            helps.add(name)
            current = name
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current and name not in types and kind in ("counter", "gauge", "histogram")
            types[name] = kind
        else:
            match = re.fullmatch(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)', line)
            assert match, line
            name, labels, value = match.groups()
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            assert (base if types.get(base) == "histogram" else name) == current, line
            assert name.startswith("blitz_")
            assert types[current] != "counter" or name.endswith("_total"), line
            found.setdefault(name, {})[labels] = float(value)
    assert set(types) == helps
    return found


def test_the_metrics_are_what_prometheus_reads(crowd):
    crowd.do("crowd 10")
    crowd.do("beat 2")
    crowd.do("pool")
    crowd.wait_for("polls", "/api/overview", lambda o: o["runtimes"][0]["polls"] > 100)
    kind, text = crowd.get("/metrics")
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    metrics = parse_metrics(text)
    assert list(metrics["blitz_tasks"].values()) == [12]
    assert sum(metrics["blitz_worker_polls_total"].values()) > 100
    assert len(metrics["blitz_worker_busy_seconds_total"]) == 2
    assert metrics["blitz_pool_injected_total"] == {'pool="default"': 1}
    for name in ("blitz_poll_duration_seconds", "blitz_schedule_latency_seconds"):
        buckets = list(metrics[name + "_bucket"].items())
        values = [v for _, v in buckets]
        bounds = [float(re.search(r'le="([^"]*)"', labels)[1]) for labels, _ in buckets]
        assert bounds == sorted(bounds) and bounds[-1] == float("inf") and values == sorted(values)
        assert values[-1] == list(metrics[name + "_count"].values())[0]
        assert list(metrics[name + "_sum"].values())[0] > 0


def test_the_page_asks_nobody_else(crowd):
    for path in ("/", "/console.css", "/console.js"):
        _, body = crowd.get(path)
        assert not re.search(r"https?://(?!www\.w3\.org/)", body), path


BRIEF = ["test_tasks_have_names_states_and_backtraces", "test_windows_make_up_the_whole",
         "test_a_deadlock_is_found_and_gone_when_it_ends", "test_the_metrics_are_what_prometheus_reads"]


def main():
    wanted = BRIEF if sys.argv[2:] == ["--brief"] else sys.argv[2:]
    tests = [(n, t) for n, t in globals().items()
             if n.startswith("test_") and (not wanted or n in wanted)]
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, test) in enumerate(tests):
            # Both transports have their turn.
            unix = "unix:" + os.path.join(folder, f"console{number}")
            crowd = Crowd(PROGRAM, unix if number % 2 else "127.0.0.1:0")
            try:
                test(crowd)
                crowd.stop()
            finally:
                crowd.kill()
            print("ok", name)


main()
