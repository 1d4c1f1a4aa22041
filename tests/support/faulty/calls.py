#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the hooks of fault tests from the prototypes in src/system/*.h.

    calls.py OUT HEADER...

    OUT/faulty_calls.h     enum faulty: FAULTY_SOCKET_OPEN for blz__socket_open, and the others
    OUT/faulty_contract.h  for src/system: defines blz__socket_open as real_blz__socket_open
    OUT/faulty_kernel.h    for src/system and the backends: defines epoll_ctl as kernel_epoll_ctl
    OUT/faulty_hooks.c     blz__socket_open, which fails or calls real_blz__socket_open

The two headers in the middle are included in front of a source by the compiler (-include), so no
linker has to know about it. Every prototype must be understood, or else the build fails.
"""

import pathlib
import re
import sys

# Functions whose result looks like one that can be an error, and is none.
NEVER_FAIL = {
    "blz__address_family": "a number, for every address",
    "blz__address_to_ip": "false is an answer: no IP address",
    "blz__address_unix_name": "NULL is an answer: no Unix address",
    "blz__change_take": "false is an answer: the batch is used up",
    "blz__clock_ns": "a time",
    "blz__clock_wall_ns": "a time",
    "blz__dir_take": "false is an answer: the batch is used up",
    "blz__env_get": "NULL is an answer: not set",
    "blz__env_list": "a list, which is never NULL",
    "blz__env_pid": "a number",
    "blz__fork_in_child": "an answer",
    "blz__futex_wait_until": "false is an answer: the deadline has passed",
    "blz__path_is_separator": "an answer",
    "blz__process_has_ended": "an answer",
    "blz__process_set_wait": "a number, of at least 0",
    "blz__signal_can_be_caught": "an answer",
    "blz__signal_is_caught": "an answer",
    "blz__socket_user_is_trusted": "an answer",
}

# Errors that no test chooses. They are answers, which would be wrong where nothing has failed.
NO_FAILURE = {"EAGAIN", "EEXIST", "EINPROGRESS", "EINVAL"}

# Functions that do their work and report an error all the same.
FAIL_AFTERWARDS = {"blz__file_close"}

# Calls of Linux that tests make fail inside of src/system and the backends, to see what those make
# of it. A result of -1 comes with errno; liburing returns the negative error.
KERNEL_HEADERS = [
    "poll.h", "signal.h", "stdlib.h", "sys/epoll.h", "sys/eventfd.h", "sys/file.h", "sys/mman.h",
    "sys/random.h", "sys/socket.h", "sys/stat.h", "sys/vfs.h", "sys/wait.h", "time.h", "fcntl.h",
    "unistd.h"]
KERNEL = """
int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);
int bind(int fd, const struct sockaddr *address, socklen_t len);
int epoll_create1(int flags);
int epoll_ctl(int set, int what, int fd, struct epoll_event *event);
int epoll_pwait2(int set, struct epoll_event *events, int max, const struct timespec *time,
                 const sigset_t *mask);
int eventfd(unsigned count, int flags);
int fallocate(int fd, int mode, off_t offset, off_t len);
int fchmod(int fd, mode_t mode);
int fdatasync(int fd);
int flock(int fd, int how);
int fstatfs(int fd, struct statfs *out);
int fsync(int fd);
int futimens(int fd, const struct timespec *times);
ssize_t getrandom(void *buf, size_t size, unsigned flags);
int listen(int fd, int backlog);
int madvise(void *memory, size_t len, int advice);
int poll(struct pollfd *fds, nfds_t count, int ms);
int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time, const sigset_t *mask);
ssize_t recvmsg(int fd, struct msghdr *message, int flags);
ssize_t sendmsg(int fd, const struct msghdr *message, int flags);
int sigaction(int number, const struct sigaction *action, struct sigaction *old);
int statx(int fd, const char *path, int flags, unsigned mask, struct statx *out);
int unlink(const char *path);
int waitid(idtype_t type, id_t id, siginfo_t *info, int flags);
"""
URING = """
int io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                               struct io_uring_params *params);
int io_uring_submit(struct io_uring *ring);
int io_uring_submit_and_wait(struct io_uring *ring, unsigned count);
int io_uring_submit_and_get_events(struct io_uring *ring);
int io_uring_register_eventfd(struct io_uring *ring, int fd);
int io_uring_register_ring_fd(struct io_uring *ring);
"""

# Addresses of sockets are transparent unions, which is a warning only outside of system headers.
UNIONS = '#pragma GCC diagnostic ignored "-Wpedantic"\n'

# Calls whose hooks are in kernel.c, and what can be made to fail by them.
BY_HAND = ["clone", "__clone", "fcntl", "getdents64", "ioctl", "openat", "read", "syscall",
           "unlinkat", "write"]
BY_HAND_FAULTS = {
    "KERNEL_CLONE": "clone",
    "KERNEL_FICLONE": "ioctl(FICLONE)",
    "KERNEL_OPENAT": "openat",
    "KERNEL_OPENAT2": "openat2",
    "KERNEL_READ": "read, of a regular file",
    "KERNEL_SETFL": "fcntl(F_SETFL)",
    "KERNEL_WRITE": "write, to a regular file",
    "KERNEL_SEND_SIGNAL": "pidfd_send_signal or kill",
    "CHILD_OPENAT": "openat in a child",
    "CHILD_DUP3": "dup3 in a child",
    "CHILD_FCNTL": "fcntl in a child",
    "CHILD_SETPGID": "setpgid in a child",
    "CHILD_PRLIMIT": "prlimit in a child",
    "CHILD_CHDIR": "chdir in a child",
    "CHILD_EXECVE": "execve in a child",
    "CHILD_SETSID": "setsid in a child",
    "CHILD_SETGROUPS": "setgroups in a child",
    "CHILD_SETRESGID": "setresgid in a child",
    "CHILD_SETRESUID": "setresuid in a child",
    "RING_FILE": "a request of a file, which the ring answers with -EBADF",
    "RING_SHORT": "a request of a file, of which the ring moves one byte",
    "ATTACH": "blz_fd_attach and blz_fd_attach_to in src/process",
    "READABLE": "blz_fd_readable in src/process: is so at once",
}

PROTOTYPE = re.compile(
    r"^(?P<type>[a-z_][\w *]*?[ *])(?P<name>[a-z]\w+)\((?P<params>.*)\)$", re.DOTALL)


class Call:
    """One prototype."""

    def __init__(self, text, header):
        match = PROTOTYPE.match(text)
        if not match:
            sys.exit(f"{header}: this is no prototype that calls.py understands: {text}")
        self.type = match["type"].strip()
        self.name = match["name"]
        self.params = " ".join(match["params"].split())
        self.errors = []

    @property
    def can_fail(self):
        """By the rules of the contract: negative errors, NULL for no memory, false for not."""
        if self.name in NEVER_FAIL:
            return False
        return self.type in ("int", "int64_t", "bool") or self.type.endswith("*")

    @property
    def faults(self):
        """Errors for tests to choose from. NULL and false do not tell which it was."""
        return self.errors if self.type.startswith("int") else ["ENOMEM"]

    @property
    def constant(self):
        if self.name.startswith("blz__"):
            return "FAULTY_" + self.name.removeprefix("blz__").upper()
        return "KERNEL_" + self.name.upper()

    @property
    def arguments(self):
        return ", ".join(argument(param) for param in split(self.params) if param != "void")

    def prototype(self, name):
        space = "" if self.type.endswith("*") else " "
        return f"{self.type}{space}{name}({self.params})"


def split(params):
    """The parameters, at the commas that are in no parentheses."""
    parts, depth = [""], 0
    for char in params:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def argument(param):
    """The name of a parameter."""
    pointer = re.search(r"\(\*(\w+)\)", param)
    return pointer[1] if pointer else re.search(r"(\w+)\s*(\[\w*\])?$", param)[1]


def errors(comment):
    """Two errors that the contract names, or two that any function may give."""
    named = [name for name in dict.fromkeys(re.findall(r"-(E[A-Z0-9]+)\b", comment))
             if name not in NO_FAILURE]
    return (named or ["ENOMEM", "EIO"])[:2]


def comments(text):
    """The comment in front of each function."""
    found = {}
    for match in re.finditer(r"/\*((?:(?!\*/).)*)\*/\n((?:[^/\n][^\n]*\n)+)", text, re.DOTALL):
        for name in re.findall(r"\b(blz__\w+)\(", match[2]):
            found.setdefault(name, match[1])
    return found


def outside_braces(text):
    """The declarations of a header, without the bodies of types and inline functions."""
    out, depth = "", 0
    for char in text:
        depth += char == "{"
        if depth == 0:
            out += char
        if char == "}":
            depth -= 1
            out += ";" if depth == 0 else ""
    return out


def declarations(text):
    """The statements of a header, without comments and directives."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", "", text, flags=re.MULTILINE)
    return [part.strip() for part in outside_braces(text).split(";") if part.strip()]


def prototypes(text, where):
    calls = []
    for part in declarations(text):
        if re.match(r"(struct|enum|union)\b[^(]*$", part):
            continue
        if part.startswith(("typedef", "static inline", "_Static_assert")):
            continue
        if re.fullmatch(r"[\w, *]+", part) and "(" not in part:  # the name behind a type's body
            continue
        calls.append(Call(part, where))
    return calls


def contract(headers):
    """All functions of the contract."""
    calls = []
    for header in headers:
        text = pathlib.Path(header).read_text()
        told = comments(text)
        for call in prototypes(text, header):
            call.errors = errors(told.get(call.name, ""))
            calls.append(call)
    unknown = NEVER_FAIL.keys() - {call.name for call in calls}
    if unknown:
        sys.exit(f"calls.py: NEVER_FAIL names what no header has: {', '.join(sorted(unknown))}")
    return calls


def contract_hook(call):
    bad = {"bool": "false"}.get(call.type, "NULL" if call.type.endswith("*") else "-error")
    real = f"real_{call.name}({call.arguments})"
    note = "    fd_of_call = fd;\n" if call.params.startswith("blz_sysfd fd") else ""
    if call.name in FAIL_AFTERWARDS:
        body = (f"    {call.type} result = {real};\n    int error = error_of({call.constant});\n"
                f"\n    return error ? {bad} : result;\n")
    else:
        body = (f"    int error;\n\n{note}    error = error_of({call.constant});\n"
                f"    return error ? {bad} : {real};\n")
    return f"{call.prototype('real_' + call.name)};\n{call.prototype(call.name)}\n{{\n{body}}}\n"


def kernel_hook(call):
    name = "kernel_" + call.name
    if call.name.startswith("io_uring_"):
        body = (f"    int error = error_of({call.constant});\n\n"
                f"    return error ? -error : {call.name}({call.arguments});\n")
    else:
        bad = "NULL" if call.type.endswith("*") else "-1"
        body = f"    return fails({call.constant}) ? {bad} : {call.name}({call.arguments});\n"
    return f"{call.prototype(name)};\n{call.prototype(name)}\n{{\n{body}}}\n"


def enum(hooked, others):
    names = [call.constant for call in hooked] + ["NR_CONTRACT_CALLS"]
    names += [f"{others[0]} = NR_CONTRACT_CALLS"] + others[1:] + ["NR_FAULTY"]
    return "enum faulty {\n" + "".join(f"    {name},\n" for name in names) + "};\n"


def hooks(headers, hooked, kernel, uring):
    names = {call.constant: call.name for call in hooked + kernel + uring} | BY_HAND_FAULTS
    out = ['#include "faulty.h"\n', "#include <errno.h>\n#include <stddef.h>\n"]
    out += [f"#include <{name}>" for name in KERNEL_HEADERS]
    out += [f'#include "system/{pathlib.Path(header).name}"' for header in headers]
    out += ["", "const char *const faulty_names[NR_FAULTY] = {"]
    out += [f'    [{constant}] = "{name}",' for constant, name in names.items()]
    out += ["};\n", "const int faulty_errors[NR_CONTRACT_CALLS][2] = {"]
    out += [f"    [{call.constant}] = {{{', '.join(call.faults)}}}," for call in hooked]
    out += ["};\n"] + [contract_hook(call) for call in hooked]
    out += [kernel_hook(call) for call in kernel]
    out += ["#ifdef BLZ_HAVE_URING\n#include <liburing.h>\n"]
    out += [kernel_hook(call) for call in uring] + ["#endif"]
    return "\n".join(out) + "\n"


def renames(names, prefix):
    return "".join(f"#define {name} {prefix}{name}\n" for name in names)


def main():
    out, headers = pathlib.Path(sys.argv[1]), sorted(sys.argv[2:])
    hooked = [call for call in contract(headers) if call.can_fail]
    kernel, uring = prototypes(KERNEL, "KERNEL"), prototypes(URING, "URING")
    others = [call.constant for call in kernel + uring] + list(BY_HAND_FAULTS)
    redirected = [call.name for call in kernel + uring] + BY_HAND
    files = {
        "faulty_calls.h": enum(hooked, others),
        "faulty_contract.h": renames([call.name for call in hooked], "real_"),
        "faulty_kernel.h": UNIONS + renames(redirected, "kernel_"),
        "faulty_hooks.c": hooks(headers, hooked, kernel, uring),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (out / name).write_text("/* Written by calls.py. */\n" + text)


if __name__ == "__main__":
    main()
