#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the explorer with the axioms of the memory model, on random litmus programs.

    axioms.py [seed [count]]

For each program, all candidate executions are enumerated (which store each load reads, every
modification order), those that break an axiom of C++20 are thrown away, and the outcomes of the
rest are compared with what the explorer finds. The explorer takes the order of execution as
modification order and as the order of seq_cst operations; so what it must find, exactly, are the
executions in which program order, reads-from, modification order and the seq_cst constraints have
no cycle together. How many programs have more outcomes than that is reported at the end.
"""
import itertools
import os
import random
import subprocess
import sys
import tempfile

LOCATIONS = 2
ACQUIRES, RELEASES = "abs", "lbs"
here = os.path.dirname(os.path.abspath(__file__))


def closure(n, edges):
    """For each event the set, as bits, of what can be reached from it."""
    reach = [0] * n
    for a, b in edges:
        reach[a] |= 1 << b
    for k in range(n):
        for i in range(n):
            if reach[i] >> k & 1:
                reach[i] |= reach[k]
    return reach


def cyclic(n, edges):
    return any(r >> i & 1 for i, r in enumerate(closure(n, edges)))


class Program:
    """Events of a program without CAS: (thread, kind, location, value, order)."""

    def __init__(self, threads):
        self.events = [(-1, "S", l, 0, "r") for l in range(LOCATIONS)]
        self.of_thread = []
        self.sb = []
        for t, ops in enumerate(threads):
            ids = list(range(len(self.events), len(self.events) + len(ops)))
            self.events += [(t,) + op for op in ops]
            self.of_thread.append(ids)
            self.sb += itertools.combinations(ids, 2)
        self.n = len(self.events)
        self.sb += [(l, e) for l in range(LOCATIONS) for e in range(LOCATIONS, self.n)]
        self.sb_set = set(self.sb)
        self.reads = [e for e in range(self.n) if self.events[e][1] in "LU"]
        self.stores = [[e for e in range(self.n) if self.events[e][1] in "SU"
                        and self.events[e][2] == l] for l in range(LOCATIONS)]
        self.fences = [e for e in range(self.n) if self.events[e][1] == "F"]
        self.seq_cst = [e for e in range(LOCATIONS, self.n) if self.events[e][4] == "s"]

    def candidates(self):
        """All (reads-from, modification order) in which a swap reads its predecessor."""
        orders = [[(s[0],) + p for p in itertools.permutations(s[1:])] for s in self.stores]
        sources = [[s for s in self.stores[self.events[r][2]] if s != r] for r in self.reads]
        for chosen in itertools.product(*sources):
            rf = dict(zip(self.reads, chosen))
            if cyclic(self.n, self.sb + [(w, r) for r, w in rf.items()]):
                continue
            for mo in itertools.product(*orders):
                position = {s: i for order in mo for i, s in enumerate(order)}
                if all(self.events[r][1] != "U" or position[r] == position[rf[r]] + 1
                       for r in self.reads):
                    yield rf, mo, position

    def release_sequence(self, head, mo, position):
        order = mo[self.events[head][2]]
        sequence = {head}
        for store in order[position[head] + 1:]:
            if self.events[store][1] != "U":
                break
            sequence.add(store)
        return sequence

    def synchronizes(self, rf, mo, position):
        for w in itertools.chain(*self.stores):
            sources = [w] if self.events[w][4] in RELEASES and w >= LOCATIONS else []
            sources += [f for f in self.fences
                        if self.events[f][4] in RELEASES and (f, w) in self.sb_set]
            if not sources:
                continue
            sequence = self.release_sequence(w, mo, position)
            for r in self.reads:
                if rf[r] not in sequence or r == w:
                    continue
                targets = [r] if self.events[r][4] in ACQUIRES else []
                targets += [f for f in self.fences
                            if self.events[f][4] in ACQUIRES and (r, f) in self.sb_set]
                for a, b in itertools.product(sources, targets):
                    if self.events[a][0] != self.events[b][0]:
                        yield a, b

    def seq_cst_edges(self, hb, eco):
        """What [atomics.order]/4 demands of the total order S."""
        fences = [f for f in self.fences if self.events[f][4] == "s"]
        is_seq_cst = set(self.seq_cst)
        for a in range(self.n):
            before = [x for x in fences if hb[x] >> a & 1] + ([a] if a in is_seq_cst else [])
            if not before:
                continue
            for b in range(self.n):
                if eco[a] >> b & 1:
                    after = [y for y in fences if hb[b] >> y & 1] + ([b] if b in is_seq_cst else [])
                    yield from itertools.product(before, after)

    def outcome(self, rf, mo, hb):
        text = "".join("%d," % self.events[rf[e]][3]
                       for ids in self.of_thread for e in ids if e in rf)
        text += "|" + "".join("%d," % self.events[order[-1]][3] for order in mo) + "|"
        for t, ids in enumerate(self.of_thread):
            for u, others in enumerate(self.of_thread):
                if u != t:
                    text += "%d," % sum(hb[e] >> ids[-1] & 1 for e in others)
        return text

    def outcomes(self):
        """(what the axioms allow, what the explorer must find)"""
        allowed, expected = set(), set()
        n = self.n
        for rf, mo, position in self.candidates():
            hb = closure(n, self.sb + list(self.synchronizes(rf, mo, position)))
            mo_edges = [p for order in mo for p in itertools.combinations(order, 2)]
            rf_edges = [(w, r) for r, w in rf.items()]
            fr_edges = [(r, s) for r, w in rf.items()
                        for s in mo[self.events[r][2]][position[w] + 1:] if s != r]
            eco = closure(n, mo_edges + rf_edges + fr_edges)
            if any(hb[a] >> a & 1 or eco[a] >> a & 1 for a in range(n)):
                continue
            if any(hb[a] >> b & 1 and eco[b] >> a & 1 for a in range(n) for b in range(n)):
                continue
            s_edges = list(self.seq_cst_edges(hb, eco))
            s_and_hb = [(a, b) for a in self.seq_cst for b in self.seq_cst if hb[a] >> b & 1]
            if cyclic(n, s_edges + s_and_hb):
                continue
            outcome = self.outcome(rf, mo, hb)
            allowed.add(outcome)
            if not cyclic(n, self.sb + rf_edges + mo_edges + s_edges):
                expected.add(outcome)
        return allowed, expected


def resolve_cas(threads):
    """A CAS is a swap that must read the expected value, or a load that must not: try each."""
    places = [(t, i) for t, ops in enumerate(threads) for i, op in enumerate(ops) if op[0] == "C"]
    for succeeds in itertools.product([False, True], repeat=len(places)):
        resolved = [list(ops) for ops in threads]
        demands = {}
        for (t, i), success in zip(places, succeeds):
            _, location, (expected, value), (order, order_of_failure) = resolved[t][i]
            resolved[t][i] = (("U", location, value, order) if success
                              else ("L", location, 0, order_of_failure))
            demands[t, i] = (success, expected)
        yield resolved, demands


def check_demands(outcome, resolved, demands):
    """The outcome in the interpreter's notation, or None if a CAS read the wrong value."""
    values, rest = outcome.split("|", 1)
    values = values.split(",")[:-1]
    reads = [(t, i) for t, ops in enumerate(resolved) for i, op in enumerate(ops) if op[0] in "LU"]
    for index, place in enumerate(reads):
        if place in demands:
            success, expected = demands[place]
            if success != (int(values[index]) == expected):
                return None
            if success:
                values[index] = str(expected + 100)
    return "".join(v + "," for v in values) + "|" + rest


def axiomatic(threads):
    allowed, expected = set(), set()
    for resolved, demands in resolve_cas(threads):
        for all_of, some_of in zip((allowed, expected), Program(resolved).outcomes()):
            all_of.update(check_demands(o, resolved, demands) for o in some_of)
    return allowed - {None}, expected - {None}


def random_program(rng):
    nr_threads = rng.choice([2, 2, 3, 3, 3])
    sizes = [1] * nr_threads
    for _ in range(rng.randint(4, 7) - nr_threads):
        sizes[rng.randrange(nr_threads)] += 1
    weak = rng.random() < 0.3  # only relaxed and seq_cst, which is where it is subtle
    value = 0
    threads = []
    for size in sizes:
        ops = []
        for _ in range(min(size, 4)):
            kind = rng.choice("LLLSSSUFC")
            location = rng.randrange(LOCATIONS)
            value += kind in "SUC"
            if kind == "F":
                ops.append(("F", -1, 0, rng.choice("alsss")))
            elif kind == "L":
                ops.append(("L", location, 0, rng.choice("rs" if weak else "rras")))
            elif kind == "S":
                ops.append(("S", location, value, rng.choice("rs" if weak else "rrls")))
            elif kind == "U":
                ops.append(("U", location, value, rng.choice("rrlabs")))
            else:
                ops.append(("C", location, (rng.randint(0, value + 1), value),
                            (rng.choice("rrlabs"), rng.choice("rras"))))
        threads.append(ops)
    return threads


def in_words(op):
    kind, location, value, order = op
    if kind == "F":
        return "F" + order
    if kind == "L":
        return "L%d%s" % (location, order)
    if kind == "C":
        return "C%d%d%s" % (location, value[0] * 16 + value[1], "".join(order))
    return "%s%d%d%s" % (kind, location, value, order)


def explore(interpreter, program):
    interpreter.stdin.write(program + "\n")
    interpreter.stdin.flush()
    outcomes = set()
    for line in interpreter.stdout:
        line = line.strip()
        if line == "end":
            return outcomes
        if not line.startswith("model "):
            outcomes.add(line)
    sys.exit("the interpreter died on: " + program)


def build_interpreter(directory):
    explorer = os.path.dirname(here)
    source = os.path.join(explorer, "..", "..", "..", "src")
    binary = os.path.join(directory, "interpreter")
    files = [os.path.join(explorer, f) for f in os.listdir(explorer) if f.endswith(".c")]
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-D_GNU_SOURCE",
                    "-DBLZ_MODEL", "-I" + source, "-I" + explorer, "-o", binary,
                    os.path.join(here, "interpreter.c")] + files, check=True)
    return binary


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    rng = random.Random(seed)
    different = wider = 0
    with tempfile.TemporaryDirectory() as directory:
        interpreter = subprocess.Popen([build_interpreter(directory)], text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(count):
            threads = random_program(rng)
            program = ";".join(" ".join(in_words(op) for op in ops) for ops in threads)
            allowed, expected = axiomatic(threads)
            found = explore(interpreter, program)
            wider += allowed != expected
            if found != expected:
                different += 1
                print("DIFFERENT:", program)
                print("  found, but not allowed:", sorted(found - expected))
                print("  allowed, but not found:", sorted(expected - found))
        interpreter.stdin.close()
        interpreter.wait()
    print("%d programs, %d different; the axioms allow more in %d" % (count, different, wider))
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
