#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The supervisor, with services that end, fail, talk, hang, and do not want to end.

    supervisor.py PROGRAM [TEST...]

Nothing is waited for but what is said, or the end of a process.
"""

import contextlib
import os
import pathlib
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
PATIENCE = 60  # seconds; for what must happen


class Supervisor:
    def __init__(self, folder, config, **options):
        self.file = pathlib.Path(folder) / "services"
        self.file.write_text(config)
        self.said = ""
        self.process = subprocess.Popen([PROGRAM, str(self.file)], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, cwd=folder, **options)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def read(self, give_up):
        """False at the end."""
        assert self.selector.select(give_up - time.monotonic()), f"nothing more, after\n{self.said}"
        piece = self.process.stdout.read()
        self.said += (piece or b"").decode()
        return piece != b""

    def expect(self, pattern, times=1):
        """Waits until it has been said; the first group of the last one."""
        give_up = time.monotonic() + PATIENCE
        while len(found := re.findall(pattern, self.said, re.M)) < times:
            assert self.read(give_up), f"the end, and no {pattern!r} in\n{self.said}"
        return found[times - 1]

    def finish(self):
        """The exit code, when all is said."""
        give_up = time.monotonic() + PATIENCE
        while self.read(give_up):
            pass
        return self.process.wait(timeout=PATIENCE)

    def send(self, number):
        self.process.send_signal(number)

    def children(self):
        """Of all its threads."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(((task / "children").read_text().split() for task in tasks), [])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in re.findall(r"pid (\d+)", self.said):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(int(pid), signal.SIGKILL)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.selector.close()
        self.process.stdout.close()


def expect_gone(pid):
    """It is not ours, so somebody else may still have to wait for it."""
    give_up = time.monotonic() + PATIENCE
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        while pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
            assert time.monotonic() < give_up, f"{pid} is there"
            time.sleep(0.005)


WAITS = "sleep 1000 & wait"


def service(name, command, **settings):
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    return f"[{name}]\ncommand = sh -c '{command}'\n{lines}\n"


# ---- lives ----


def test_what_services_say_has_their_name_in_front(folder):
    config = (service("one", "echo a; echo b >&2; printf c", restart="never") +
              service("two", "echo; echo $PWD", restart="never", directory="/") +
              "[three]\n# no shell\ncommand = printf '%s,' \"a  b\" c\\ d ''\nrestart=never\n")
    with Supervisor(folder, config) as supervisor:
        assert supervisor.finish() == 0
    lines = supervisor.said.splitlines()
    assert [line for line in lines if line.startswith("one")] == ["one | a", "one | b", "one | c"]
    assert [line for line in lines if line.startswith("two")] == ["two | ", "two | /"]
    assert "three | a  b,c d,," in lines
    for name in ("one", "two", "three"):
        assert f"supervisor: {name}: exited with 0" in lines
    assert lines[-1] == "supervisor: done"


def test_a_long_line_comes_in_pieces_and_nothing_is_lost(folder):
    config = service("long", "head -c 100000 /dev/zero | tr \\\\0 x; echo end", restart="never")
    with Supervisor(folder, config) as supervisor:
        assert supervisor.finish() == 0
    text = "".join(line[7:] for line in supervisor.said.splitlines() if line.startswith("long | "))
    assert text == "x" * 100000 + "end", f"{len(text)} bytes"


def test_what_fails_is_started_again_after_longer_and_longer_pauses(folder):
    config = service("flaky", "echo x >>count; test $(wc -l <count) -ge 6", backoff="2ms 10ms")
    with Supervisor(folder, config) as supervisor:
        assert supervisor.finish() == 0
    assert re.findall(r"again in (\d+) ms", supervisor.said) == ["2", "4", "8", "10", "10"]
    assert supervisor.said.count("exited with 1") == 5
    assert supervisor.said.count("exited with 0") == 1


def test_policies_are_followed(folder):
    config = (service("never", "exit 3", restart="never") +
              service("killed", "kill -9 $$", restart="never"))
    with Supervisor(folder, config) as supervisor:
        assert supervisor.finish() == 1
        supervisor.expect("never: exited with 3")
        supervisor.expect("killed: killed by signal 9")
    with Supervisor(folder, service("always", "exit 0", restart="always", backoff="1ms 1ms")) \
            as supervisor:
        supervisor.expect("always: exited with 0", times=4)
        supervisor.send(signal.SIGTERM)
        assert supervisor.finish() == 0


def test_what_cannot_be_started_is_told(folder):
    config = "[none]\ncommand = /no/such/program\nbackoff = 1ms\n"
    with Supervisor(folder, config) as supervisor:
        supervisor.expect("none: cannot be started: exec: No such file or directory", times=3)
        supervisor.send(signal.SIGINT)
        assert supervisor.finish() == 0


def test_no_zombie_stays(folder):
    config = service("busy", "exit 1", backoff="1ms 1ms") + service("calm", WAITS)
    with Supervisor(folder, config) as supervisor:
        calm = supervisor.expect(r"calm: started, pid (\d+)")
        supervisor.expect("busy: exited", times=20)
        give_up = time.monotonic() + PATIENCE
        while len(supervisor.children()) > 2:  # the calm one, and a busy one now and then
            assert time.monotonic() < give_up, supervisor.children()
        assert calm in supervisor.children()
        supervisor.send(signal.SIGTERM)
        assert supervisor.finish() == 0


# ---- stopping ----


def stubborn(name, **settings):
    return service(name, f"trap \"\" TERM; echo ready; sleep 1000 & echo pid $!; {WAITS}",
                   **settings)


def test_services_are_stopped_in_reverse_order(folder):
    def polite(name):
        return service(name, f"trap \"echo {name} >>ended; exit 0\" TERM; echo ready; {WAITS}")
    with Supervisor(folder, polite("a") + polite("b") + polite("c")) as supervisor:
        for name in "abc":
            supervisor.expect(f"^{name} . ready")
        supervisor.send(signal.SIGTERM)
        assert supervisor.finish() == 0
    assert (pathlib.Path(folder) / "ended").read_text() == "c\nb\na\n"
    assert supervisor.said.endswith("supervisor: done\n")


def test_what_does_not_end_in_time_is_killed_with_all_it_has_started(folder):
    with Supervisor(folder, stubborn("deaf", grace="20ms")) as supervisor:
        grandchild = supervisor.expect(r"deaf \| pid (\d+)")
        supervisor.send(signal.SIGTERM)
        assert supervisor.finish() == 0
        assert "deaf: has not ended in time, and is killed" in supervisor.said
        assert "deaf: killed by signal 9" in supervisor.said
        expect_gone(grandchild)


def test_a_second_signal_kills_all_at_once(folder):
    config = stubborn("one", grace="1000s") + stubborn("two", grace="1000s")
    with Supervisor(folder, config) as supervisor:
        supervisor.expect("^one . ready")
        supervisor.expect("^two . ready")
        supervisor.send(signal.SIGINT)
        supervisor.expect("supervisor: stopping")
        supervisor.send(signal.SIGINT)
        assert supervisor.finish() == 0
        assert "all services are killed" in supervisor.said
        assert supervisor.said.count("killed by signal 9") == 2


def test_a_pause_is_ended_by_a_stop(folder):
    with Supervisor(folder, service("fails", "exit 1", backoff="1000s 1000s")) as supervisor:
        supervisor.expect("again in 1000000 ms")
        supervisor.send(signal.SIGTERM)
        assert supervisor.finish() == 0


# ---- other signals ----


def test_signals_are_passed_on(folder):
    command = "trap \"echo got 1\" USR1; trap \"echo got 2\" USR2; echo ready; " \
              "while :; do sleep 1000 & wait; done"
    with Supervisor(folder, service("a", command) + service("b", command)) as supervisor:
        supervisor.expect("^a . ready")
        supervisor.expect("^b . ready")
        for number, text in ((signal.SIGUSR1, "got 1"), (signal.SIGUSR2, "got 2")):
            supervisor.send(number)
            supervisor.expect(f"^a . {text}")
            supervisor.expect(f"^b . {text}")
        supervisor.send(signal.SIGTERM)
        assert supervisor.finish() == 0


def test_the_file_is_read_again(folder):
    def waits(name, text="ready"):
        return service(name, f"echo {text}; exec sleep 1000")
    with Supervisor(folder, waits("kept") + waits("changed") + waits("gone")) as supervisor:
        for name in ("kept", "changed", "gone"):
            supervisor.expect(f"^{name} . ready")
        supervisor.file.write_text("[broken\n")
        supervisor.send(signal.SIGHUP)
        supervisor.expect("services: line 1 makes no sense")
        supervisor.file.write_text(waits("new") + waits("kept") + waits("changed", "other"))
        supervisor.send(signal.SIGHUP)
        supervisor.expect("has been read again")
        supervisor.expect("^new . ready")
        supervisor.expect("^changed . other")
        assert "gone: killed by signal 15" in supervisor.said
        assert "changed: killed by signal 15" in supervisor.said
        assert supervisor.said.count("kept: started") == 1 and "kept: killed" not in supervisor.said
        supervisor.send(signal.SIGTERM)
        assert supervisor.finish() == 0


# ---- mistakes ----


def test_what_makes_no_sense_is_refused(folder):
    for text, said in (("", "there are no services"), ("[a]\n", "[a] has no command"),
                       ("x = y\n", "line 1"), ("[a]\ncommand = x\n[a]\n", "line 3"),
                       ("[a]\ncommand = 'x\n", "line 2"), ("[a]\ncommand =\n", "line 2"),
                       ("[a]\n\n# c\nrestart = perhaps\n", "line 4"),
                       ("[a]\ngrace = soon\n", "line 2"), ("[a]\nbackoff = 2s 1s\n", "line 2"),
                       ("[a b]\n", "line 1"), ("[a]\nnonsense = 1\n", "line 2")):
        with Supervisor(folder, text) as supervisor:
            assert supervisor.finish() == 2 and said in supervisor.said, (text, supervisor.said)
    ran = subprocess.run([PROGRAM, "/no/such/file"], capture_output=True, text=True, check=False,
                         timeout=PATIENCE)
    assert ran.returncode == 2 and "No such file" in ran.stderr
    assert subprocess.run([PROGRAM], capture_output=True, check=False).returncode == 2


def main(wanted):
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_") or (wanted and name not in wanted):
            continue
        start = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as folder:
                test(folder)
            print(f"ok    {time.monotonic() - start:5.2f} s  {name}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            print(f"FAIL  {name}: {type(error).__name__}: {error}", flush=True)
            failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:]))
