#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The file of a trace: that it is what Chrome and Perfetto document and what their importers make
something of, with all kinds of events, on every backend; BLZ_TRACE in the environment.

Environment: COMPILERS (names), LIBRARIES (files of the library), LINK (further libraries).
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BACKENDS = ("io_uring", "epoll", "poll")

# What each phase has besides the fields of all (Trace Event Format, "Event Descriptions"): what it
# must have, and what it may have.
COMMON = {"ph", "pid", "tid", "ts"}
FIELDS = {"B": ({"name", "cat"}, {"args"}), "E": (set(), {"args"}),
          "X": ({"name", "cat", "dur"}, {"args"}), "i": ({"name", "cat", "s"}, {"args"}),
          "s": ({"name", "cat", "id"}, set()), "f": ({"name", "cat", "id", "bp"}, set()),
          "b": ({"name", "cat", "id"}, set()), "e": ({"name", "cat", "id"}, set()),
          "M": ({"name", "args"}, set())}
KINDS = {"pid": int, "tid": int, "ts": (int, float), "dur": (int, float), "name": str, "cat": str,
         "args": dict, "id": str, "ph": str, "bp": str, "s": str}


def build(folder):
    compiler = os.environ.get("COMPILERS", "gcc").split()[0]
    library = os.environ["LIBRARIES"].split()[0]
    program = f"{folder}/traced"
    subprocess.run([compiler, "-g", "-O2", "-std=gnu11", f"-I{ROOT / 'include'}", HERE / "traced.c",
                    library, "-o", program, "-pthread", *os.environ.get("LINK", "").split()],
                   check=True)
    return program


def fields_are_those_of_the_format(events):
    for event in events:
        must, may = FIELDS[event["ph"]]
        assert COMMON | must <= event.keys() <= COMMON | must | may, event
        assert all(isinstance(value, KINDS[key]) for key, value in event.items()), event
        assert event["ts"] >= 0 and event.get("dur", 0) == 0, event
        assert event.get("s", "t") == "t" and event.get("bp", "e") == "e", event
        assert re.fullmatch("0x[0-9a-f]{1,16}", event.get("id", "0x0")), event  # as Perfetto wants it


def every_thread_and_the_process_have_a_name(events):
    names = [event for event in events if event["ph"] == "M"]
    assert all(event["args"].keys() == {"name"} for event in names), names
    assert sum(event["name"] == "process_name" for event in names) == 1, names
    named = [event["tid"] for event in names if event["name"] == "thread_name"]
    assert len(set(named)) == len(named) == len(names) - 1, names
    assert {event["tid"] for event in events if event["ph"] != "M"} == set(named), named
    assert len({event["pid"] for event in events}) == 1


def slices_of(events):
    """[begin, end, event] of each thread's; they nest, and no two begin or end at the same time."""
    slices, opened, last = collections.defaultdict(list), collections.defaultdict(list), {}
    for event in events:
        if event["ph"] not in "BEXi":
            continue
        tid, time = event["tid"], event["ts"]
        cut = event["ph"] == "E" and event.get("args", {}).get("outcome") == "going on"
        assert time > last.get(tid, -1) or cut and time == last[tid], event
        last[tid] = time
        if event["ph"] == "E":
            opened[tid].pop()[1] = time
        else:
            slices[tid].append([time, time, event])
        if event["ph"] == "B":
            opened[tid].append(slices[tid][-1])
    assert not any(opened.values()), opened
    return slices


def begins_and_ends_nest_in_the_order_of_time(events):
    assert slices_of(events)


def chrome_finds(slices, arrow):
    """The innermost slice that begins before, or then, and ends after, or then."""
    around = [s for s in slices[arrow["tid"]] if s[0] <= arrow["ts"] <= s[1]]
    return max(around, key=lambda s: s[0])[2]


def perfetto_finds(events):
    """{(phase, id): the slice that is open where an arrow comes, sorted by time and place}"""
    found, opened = {}, collections.defaultdict(list)
    for event in sorted(events, key=lambda event: event["ts"]):  # stable
        stack = opened[event["tid"]]
        if event["ph"] in "BEXi" and stack and stack[-1]["ph"] in "Xi":
            stack.pop()
        if event["ph"] == "E":
            stack.pop()
        elif event["ph"] in "BXi":
            stack.append(event)
        elif event["ph"] in "sf":
            found[event["ph"], event["id"]] = stack[-1]
    return found


def arrows_go_from_a_wake_up_to_the_poll_that_answers(events):
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert begins.keys() == ends.keys() and begins
    assert len(begins) == sum(event["ph"] == "s" for event in events)
    slices, found = slices_of(events), perfetto_finds(events)
    for number, begin in begins.items():
        end = ends[number]
        assert begin["ts"] <= end["ts"], (begin, end)
        assert begin["name"] == end["name"] and begin["cat"] == end["cat"], (begin, end)
        wake, poll = found["s", number], found["f", number]
        assert chrome_finds(slices, begin) is wake and chrome_finds(slices, end) is poll, (begin, end)
        assert wake["cat"] in ("wake", "spawn") and poll["cat"] == "poll", (wake, poll)
        assert wake["args"] == poll["args"], (wake, poll)
    polls = sum(event.get("cat") == "poll" for event in events)
    assert len(begins) >= polls * 0.9, (len(begins), polls)  # of one whose clocks differ there is none


def spans_have_both_ends_and_one_name(events):
    begins = {event["id"]: event for event in events if event["ph"] == "b"}
    ends = {event["id"]: event for event in events if event["ph"] == "e"}
    assert begins.keys() == ends.keys() and len(begins) == sum(e["ph"] == "b" for e in events)
    for number, begin in begins.items():
        end = ends[number]
        assert begin["ts"] <= end["ts"] and begin["name"] == end["name"], (begin, end)


def every_kind_is_there(events):
    names = collections.Counter(event.get("name") for event in events)
    kinds = collections.Counter(event.get("cat") for event in events)
    assert names["spawn echo"] == 1 and names["spawn sleeper"] == 10, names
    assert kinds["poll"] > 20 and kinds["wake"] > 20 and kinds["timer"] > 0, kinds
    assert kinds["io"] >= 20 and kinds["park"] > 0, kinds
    assert names["blocking job"] == 1 and names["computation"] == 1, names
    assert names["everything"] == 2 and kinds["span"] == 2, names
    assert names['say "hello" \\ \n \ufffd'] == 1, names
    ended = sum(event.get("args", {}).get("outcome") == "ended" for event in events)
    assert ended == sum(event.get("cat") == "spawn" for event in events), ended
    threads = {event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    assert "traced" in threads, threads


def main():
    checks = (fields_are_those_of_the_format, every_thread_and_the_process_have_a_name,
              begins_and_ends_nest_in_the_order_of_time,
              arrows_go_from_a_wake_up_to_the_poll_that_answers, spans_have_both_ends_and_one_name,
              every_kind_is_there)
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        for backend in BACKENDS:
            environment = dict(os.environ, BLZ_BACKEND=backend, BLZ_TRACE=f"{folder}/%p.json")
            run = subprocess.Popen([program], env=environment)
            code = run.wait(timeout=200)
            path = f"{folder}/{run.pid}.json"
            if code and backend == "io_uring":
                print("not here:", backend)  # some containers refuse it
                continue
            assert code == 0, (backend, code)
            with open(path, encoding="utf-8") as file:
                whole = json.load(file)
            assert whole.keys() == {"displayTimeUnit", "traceEvents"}, whole.keys()
            assert whole["displayTimeUnit"] == "ns"  # otherwise Chrome's nest by microseconds
            events = whole["traceEvents"]
            for check in checks:
                check(events)
                print("ok  ", backend, check.__name__)
        for text, limited in ("limit=2k", True), ("limit=64M,sample=1000000", False):
            environment = dict(os.environ, BLZ_TRACE=f"{folder}/small.json,{text}")
            subprocess.run([program], env=environment, check=True)
            with open(f"{folder}/small.json", encoding="utf-8") as file:
                events = json.load(file)["traceEvents"]
            assert any(event.get("cat") == "limit" for event in events) == limited, (text, events)
            assert limited or not any(event.get("cat") == "poll" for event in events), events
        environment = dict(os.environ, BLZ_TRACE=f"{folder}/x.json,limit=much")
        done = subprocess.run([program], env=environment, stderr=subprocess.PIPE, text=True, check=True)
        assert "Invalid argument" in done.stderr, done.stderr
        environment = dict(os.environ, BLZ_TRACE=f"{folder}/no/such/folder")
        done = subprocess.run([program], env=environment, stderr=subprocess.PIPE, text=True, check=True)
        assert "BLZ_TRACE" in done.stderr, done.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
