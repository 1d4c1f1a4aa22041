# SPDX-License-Identifier: Apache-2.0
"""gdb commands for programs that use Blitz:

    blz tasks [TEXT]          every task, or those in whose line TEXT occurs
    blz bt [ID | NAME | all]  what a task awaits, innermost first; without an argument, the task
                              that the selected thread polls. [0] and [1] are the first and the
                              second branch of a select or join, [1.0] is the first of a combinator
                              in the second
    blz workers               every worker: its thread, what it does, its queue

They read memory and nothing else, so they work on a core file as on a live process. Everything is
found through the debug information of the library (-g), from the variable blz__shared_state on. What
debug information does not have is repeated here: the bits of src/task/state.h, and the alignment of
a chunk's header (src/task/chunk.h).

gdb loads this file by itself with a shared library that is installed where gdb looks for such files;
otherwise: source /usr/share/blitz/blitz-gdb.py
"""

import struct

import gdb

RUNNING, NOTIFIED, COMPLETE, CANCEL = 0x1, 0x2, 0x4, 0x8
REF_SHIFT = 38
CHUNK_ALIGN = 64
LINE_DONE = 0xFFFFFFFF
DEEPEST = 1000  # more futures in one task are taken for broken memory
MAX_BRANCHES = 64


# ---- memory ----


def read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def text(address, limit=4096):
    """The string at an address, or None if there is none."""
    if not address:
        return None
    kind = gdb.lookup_type("char").pointer()
    try:
        return gdb.Value(address).cast(kind).string("utf-8", "replace")[:limit]
    except (gdb.error, MemoryError):
        return None


def function(name):
    """The address of one of the library's functions, or None: the program does not use it."""
    symbol = gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name)
    return int(symbol.value().address) if symbol is not None else None


class Layout:
    """Where the fields of a struct are, for reading many of them out of one piece of memory."""

    def __init__(self, name, *fields):
        kind = gdb.lookup_type(name).strip_typedefs()
        self.size = kind.sizeof
        self.at = {}
        for path in fields:
            offset, where = 0, kind
            for part in path.split("."):
                field = where[part]
                offset += field.bitpos // 8
                where = field.type.strip_typedefs()
            self.at[path] = (offset, {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}[where.sizeof])

    def get(self, memory, path, base=0):
        offset, form = self.at[path]
        return struct.unpack_from(form, memory, base + offset)[0]


# ---- runtimes, tasks, futures ----


class Program:
    """What the commands need to know of the types; made anew for each command: files may change."""

    def __init__(self):
        symbol = gdb.lookup_global_symbol("blz__shared_state")
        if symbol is None:
            raise gdb.GdbError("No debug information of Blitz here: the program does not use it, is "
                               "not running yet, or the library was built without -g or stripped "
                               "(Debian: libblitz0.1-dbgsym has it).")
        self.all = symbol.value()["runtimes"]
        self.task = Layout("struct blz_task", "state", "origin", "id", "polls")
        self.future = Layout("struct blz_future", "ops", "child", "line")
        self.ops = Layout("struct blz_future_ops", "name", "file", "describe_wait")
        names = ("blz__branches_describe_all", "blz__branches_describe_any")
        self.combinators = set(filter(None, map(function, names)))
        if self.combinators:  # a static program without any does not have their type either
            self.branches = Layout("struct blz_branches", "list", "live", "count")
        self.drain = function("drain_describe")  # of both outputs of a child: src/process/output.c
        self.chunk = Layout("struct blz__chunk", "bump", "block_size", "next_all")
        self.ext = Layout("struct task_ext", "origin", "name")
        self.name_at = gdb.lookup_type("struct task_name")["text"].bitpos // 8
        self.worker_type = gdb.lookup_type("struct blz_worker")
        self.strings = {}

    def text(self, address):
        if address not in self.strings:
            self.strings[address] = text(address)
        return self.strings[address]

    def runtimes(self):
        low, high = self.all.type.range()
        for i in range(low, high + 1):
            if self.all[i] != 0:
                yield self.all[i].dereference()

    def workers(self, rt):
        for i in range(int(rt["nr_workers"])):
            yield rt["workers"][i]

    def tasks(self, rt):
        polled = {}
        for w in self.workers(rt):
            if w["current"] != 0:
                polled[int(w["current"])] = w
        heaps = [w["heap"] for w in self.workers(rt)] + [rt["foreign_heap"]]
        for heap in heaps:
            yield from self.tasks_of(int(heap["all"]), polled)

    def tasks_of(self, chunk, polled):
        header = (self.chunk.size + CHUNK_ALIGN - 1) & -CHUNK_ALIGN
        while chunk:
            head = read(chunk, self.chunk.size)
            size, bump = self.chunk.get(head, "block_size"), self.chunk.get(head, "bump")
            blocks = read(chunk + header, size * bump) if bump else b""
            for i in range(bump):
                state = self.task.get(blocks, "state", i * size)
                if state >> REF_SHIFT and not state & COMPLETE:
                    yield Task(self, chunk + header + i * size, blocks, i * size, polled)
            chunk = self.chunk.get(head, "next_all")


class Future:
    """`path`: the number of the branch in each combinator around it."""

    def __init__(self, address, path, name, place, is_async):
        self.address, self.path, self.name = address, path, name
        self.place, self.is_async = place, is_async

    def __str__(self):
        return f"{self.name} at {self.place}" if self.place else self.name


class Task:
    def __init__(self, program, address, memory, base, polled):
        self.program = program
        self.address = address
        get = lambda field: program.task.get(memory, field, base)
        number = get("id")
        self.id = number >> 1
        self.polls = get("polls")
        self.word = get("state")
        self.worker = polled.get(address)
        origin, given = get("origin"), None
        if number & 1:  # it has an ext
            ext = read(origin, program.ext.size)
            origin = program.ext.get(ext, "origin")
            newest = program.ext.get(ext, "name")
            given = text(newest + program.name_at) if newest else None
        function, _, place = (program.text(origin) or "?").partition(" at ")
        self.name = given or function
        self.place = place.rpartition("/")[2]

    def state(self):
        if self.worker is not None:
            return "running"
        cancelled = "cancelled, " if self.word & CANCEL else ""
        return cancelled + ("queued" if self.word & (RUNNING | NOTIFIED) else "waiting")

    def future(self, address, path):
        """The future at an address, and the addresses of what it awaits, each with its path."""
        program = self.program
        try:
            future = read(address, program.future.size)
            ops = read(program.future.get(future, "ops"), program.ops.size)
            awaited = self.branches(address, program.ops.get(ops, "describe_wait"), path)
        except gdb.MemoryError:
            return Future(address, path, "(memory that cannot be read)", "", False), []
        child = program.future.get(future, "child")
        if awaited is None:
            awaited = [(child, path)] if child else []
        file, line = program.text(program.ops.get(ops, "file")), program.future.get(future, "line")
        place = ""
        if file and line not in (0, LINE_DONE):
            place = f"{file.rpartition('/')[2]}:{line}"
        name = program.text(program.ops.get(ops, "name")) or "?"
        return Future(address, path, name, place, bool(file)), awaited

    def branches(self, address, describe, path):
        """(address, path) of each branch that is not ready; None if this is no combinator."""
        program = self.program
        if describe and describe == program.drain:
            drain = gdb.Value(address).cast(gdb.lookup_type("struct drain").pointer())
            found = [(i, int(drain["reads"][i])) for i in (0, 1) if drain["streams"][i]["reads"]]
        elif describe and describe in program.combinators:
            op = read(address, program.branches.size)
            live, count = program.branches.get(op, "live"), program.branches.get(op, "count")
            pointers = read(program.branches.get(op, "list"), 8 * min(count, MAX_BRANCHES))
            found = [(i, pointer) for i, (pointer,) in enumerate(struct.iter_unpack("<Q", pointers))
                     if live >> i & 1]
        else:
            return None
        return [(pointer, path + (i,)) for i, pointer in found]

    def tree(self):
        """Every future that is awaited: each combinator after its branches, innermost first."""
        last_first, due = [], [(self.address + self.program.task.size, ())]
        while due:
            if len(last_first) == DEEPEST:
                last_first.append(Future(0, (), "(and so on: more than a thousand)", "", False))
                break
            future, awaited = self.future(*due.pop())
            last_first.append(future)
            due += awaited  # the last branch is the next to be looked at
        return last_first[::-1]

    def waits_for(self):
        """The innermost future, or the outermost combinator; and who awaits it where."""
        if self.polls == 0:
            return "its first poll"
        tree = self.tree()
        leaf = tree[0]
        if any(future.path for future in tree):
            leaf = next(future for future in tree if not future.path)  # the outermost combinator
        if leaf.place or leaf is tree[-1]:
            return str(leaf)
        return f"{leaf}, in {tree[tree.index(leaf) + 1]}"


def thread_of(rt, worker):
    """gdb's thread of a worker, or None."""
    number = int(worker["thread_id"])
    if rt["embedded"] and int(rt["turn_owner"]):
        number = int(rt["turn_owner"])
    for thread in gdb.selected_inferior().threads():
        if number and number in thread.ptid[1:]:
            return thread
    return None


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        print("  ".join(cells + [row[-1]]).rstrip())


# ---- commands ----


class Blz(gdb.Command):
    """Tasks and workers of Blitz: blz tasks, blz bt, blz workers."""

    def __init__(self):
        super().__init__("blz", gdb.COMMAND_STACK, prefix=True)


class BlzTasks(gdb.Command):
    """blz tasks [TEXT]: every task, what it does and what it waits for; only lines with TEXT."""

    def __init__(self):
        super().__init__("blz tasks", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        program, count = Program(), 0
        rows = [("ID", "STATE", "POLLS", "NAME", "WAITS FOR")]
        for rt in program.runtimes():
            for task in program.tasks(rt):
                waits = "" if task.worker is not None else task.waits_for()
                row = (str(task.id), task.state(), str(task.polls), task.name, waits)
                count += 1
                if argument in "  ".join(row):
                    rows.append(row)
        rows[1:] = sorted(rows[1:], key=lambda row: int(row[0]))
        if len(rows) > 1:
            table(rows)
        print(f"{count} tasks" if count != 1 else "1 task")


class BlzBt(gdb.Command):
    """blz bt [ID | NAME | all]: what a task awaits, innermost first.

Without an argument: the task that the selected thread polls."""

    def __init__(self):
        super().__init__("blz bt", gdb.COMMAND_STACK)

    def wanted(self, program, argument):
        here = gdb.selected_thread()
        for rt in program.runtimes():
            for task in program.tasks(rt):
                if argument:
                    if argument in ("all", str(task.id), task.name):
                        yield rt, task
                elif task.worker is not None and here is not None:
                    thread = thread_of(rt, task.worker)
                    if thread is not None and thread.num == here.num:
                        yield rt, task

    def invoke(self, argument, from_tty):
        program = Program()
        found = sorted(self.wanted(program, argument), key=lambda pair: pair[1].id)
        if not found and argument and argument != "all":
            raise gdb.GdbError(f"No task has the number or name {argument}; see: blz tasks")
        if not found:
            raise gdb.GdbError("There are no tasks." if argument else "The selected thread polls no "
                               "task; say which: blz bt ID, blz bt NAME, blz bt all")
        for rt, task in found:
            self.show(rt, task)

    def show(self, rt, task):
        spawned = f", spawned at {task.place}" if task.place else ""
        print(f'task {task.id} "{task.name}" {task.state()}, {task.polls} polls{spawned}')
        if task.worker is not None:
            thread = thread_of(rt, task.worker)
            where = f"thread {thread.num}" if thread else "its thread"
            print(f"    on worker {int(task.worker['index'])}: where it is now, the stack of {where} "
                  "shows; it was resumed in")
        for i, future in enumerate(task.tree()):
            kind = f"struct {future.name}" if future.is_async else "blz_future"
            branch = f"[{'.'.join(map(str, future.path))}] " if future.path else ""
            print(f"#{i:<3} {branch}{future}   ({kind} *) {future.address:#x}")


class BlzWorkers(gdb.Command):
    """blz workers: every worker of every runtime, its thread and what it does."""

    def __init__(self):
        super().__init__("blz workers", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        program = Program()
        rows = [("WORKER", "THREAD", "STATE", "QUEUED", "POLLS", "STEALS", "PARKS", "TASK")]
        for rt in program.runtimes():
            name = rt["name"].string()
            names = {task.address: task for task in program.tasks(rt) if task.worker is not None}
            for w in program.workers(rt):
                rows.append(self.row(rt, name, w, names))
        if len(rows) > 1:
            table(rows)
        else:
            print("There is no runtime.")

    def row(self, rt, name, w, tasks):
        thread, stats = thread_of(rt, w), w["stats"]
        head = int(w["ring"]["head"]) & 0xFFFFFFFF
        queued = (int(w["ring"]["tail"]) - head) & 0xFFFFFFFF
        queued += int(w["local"]["lifo"] != 0) + int(w["pinned"]["count"])
        queued += int(w["local"]["yielded"]["count"]) + int(w["local"]["resumed"]["count"])
        task = tasks.get(int(w["current"]))
        if task:
            state = "polling"
        elif int(w["parked_at"]):
            state = "parked"
        else:
            state = "searching" if w["searching"] else "awake" if thread else "not started"
        return (f"{name}-{int(w['index'])}", str(thread.num) if thread else "-", state, str(queued),
                str(int(stats["polls"])), str(int(stats["steals"])), str(int(stats["parks"])),
                f'{task.id} "{task.name}"' if task else "")


Blz()
BlzTasks()
BlzBt()
BlzWorkers()
