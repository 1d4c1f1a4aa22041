#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The file of a trace: that it is JSON in the format that Chrome and Perfetto document, with all kinds
of events, on every backend; BLZ_TRACE in the environment.

Environment: COMPILERS (names), LIBRARIES (files of the library), LINK (further libraries).
"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BACKENDS = ("io_uring", "epoll", "poll")

# What each phase must have besides the fields of all (Trace Event Format, "Event Descriptions").
NEEDED = {"B": {"name", "cat"}, "E": set(), "X": {"name", "cat", "dur"}, "i": {"name", "s"},
          "s": {"name", "cat", "id"}, "f": {"name", "cat", "id", "bp"}, "b": {"name", "cat", "id"},
          "e": {"name", "cat", "id"}, "M": {"name", "args"}}


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
        assert event["ph"] in NEEDED, event
        assert {"pid", "tid", "ts"} | NEEDED[event["ph"]] <= event.keys(), event
        assert event["ts"] >= 0 and isinstance(event["tid"], int), event


def begins_and_ends_nest_in_the_order_of_time(events):
    depth, last = collections.Counter(), collections.Counter()
    for event in events:
        if event["ph"] in "BEXi":
            tid = event["tid"]
            assert event["ts"] >= last[tid], event
            last[tid] = event["ts"]
            depth[tid] += {"B": 1, "E": -1}.get(event["ph"], 0)
            assert depth[tid] >= 0, event
    assert not any(depth.values()), depth


def arrows_have_both_ends_and_go_forward(events):
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert begins.keys() == ends.keys() and begins
    slices = {(event["tid"], event["ts"]) for event in events if event["ph"] in "BX"}
    for number, event in begins.items():
        assert event["ts"] <= ends[number]["ts"], (event, ends[number])
        assert (ends[number]["tid"], ends[number]["ts"]) in slices, ends[number]
    assert sum((event["tid"], event["ts"]) in slices for event in begins.values()) > 0


def every_kind_is_there(events):
    names = collections.Counter(event.get("name") for event in events)
    kinds = collections.Counter(event.get("cat") for event in events)
    assert names["spawn echo"] == 1 and names["spawn sleeper"] == 10, names
    assert kinds["poll"] > 20 and kinds["wake"] > 20 and kinds["timer"] > 0, kinds
    assert kinds["io"] >= 20 and kinds["park"] > 0, kinds
    assert names["blocking job"] == 1 and names["computation"] == 1, names
    assert names["everything"] == 1 and kinds["span"] == 2, names
    assert names['say "hello" \\ \n \ufffd'] == 1, names
    ended = sum(event.get("args", {}).get("outcome") == "ended" for event in events)
    assert ended == sum(event.get("cat") == "spawn" for event in events), ended
    threads = {event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    assert "traced" in threads, threads


def main():
    checks = (fields_are_those_of_the_format, begins_and_ends_nest_in_the_order_of_time,
              arrows_have_both_ends_and_go_forward, every_kind_is_there)
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
                events = json.load(file)
            for check in checks:
                check(events)
                print("ok  ", backend, check.__name__)
        environment = dict(os.environ, BLZ_TRACE=f"{folder}/no/such/folder")
        done = subprocess.run([program], env=environment, stderr=subprocess.PIPE, text=True, check=True)
        assert "BLZ_TRACE" in done.stderr, done.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
