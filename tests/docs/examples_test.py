#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples in the comments of the public headers compile.

    examples_test.py [COMPILER]

An example is what the reference shows as code. Its functions, structs and macros go to the top level; the
rest are statements of an async function, or of a plain one if they return and await nothing, in a block for each part that a line of dots ends. CONTEXT has
what an example takes for granted: declarations, and members of the frame. What looks like code and is
none, tables and the signatures of what a macro makes, is in NO_CODE, by its number.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "docs"))

# pylint: disable=wrong-import-position
import headers
import reference

FLAGS = """-std=gnu11 -fsyntax-only -Werror=implicit-function-declaration
-Werror=incompatible-pointer-types -Werror=int-conversion -x c -""".split()
INCLUDES = ["blitz.h", "ctype.h", "errno.h", "inttypes.h", "math.h", "pthread.h", "signal.h", "stdio.h", "unistd.h"]
PRELUDE = "static int rc, i;\nstatic size_t n;\nstatic blz_rt *rt;\n"

NO_CODE = {
    "addr": {2}, "broadcast": {2}, "channel": {2}, "codec": {2, 3}, "combine": {1, 3}, "dns": {2},
    "par": {3}, "par_group": {2, 3}, "par_scan": {2, 3, 4, 5}, "par_sort": {2, 3}, "rwlock": {2},
    "watch": {2},
}

# header: (declarations, members of the frame)
CONTEXT = {
    "async": ("""struct echo { BLZ_FRAME; blz_tcp conn; };
        BLZ_ASYNC(echo) { BLZ_BEGIN; BLZ_END(0); }
        struct logger { BLZ_FRAME; int fd; };
        BLZ_ASYNC(logger) { BLZ_BEGIN; BLZ_END(0); }
        struct fetch { BLZ_FRAME; const char *url; };
        BLZ_ASYNC(fetch) { BLZ_BEGIN; BLZ_END(0); }
        static blz_mutex mutex; static blz_tcp conn; static const char *url; static int fd;""",
              "blz_mutex_op op; blz_timeout limit; struct fetch child;"),
    "barrier": ("static blz_barrier barrier; void compute(int part); void publish(int step);",
                "int step, part; blz_barrier *barrier; blz_barrier_op wait;"),
    "system": ("static int listener; int accept(int, void *, void *);", "blz_tcp conn;"),
    "error": ("struct serve { BLZ_FRAME; };\nBLZ_ASYNC(serve) { BLZ_BEGIN; BLZ_END(0); }", ""),
    "broadcast": ("struct price { int cents; };\nstatic struct price price;",
                  "blz_broadcast_receiver raw_; struct price price; void *after_;"),
    "channel": ("struct job { int number; };\nstatic struct job job;", "struct job job;"),
    "codec": ("static const char *buf; static size_t len; static blz_codec codec; static blz_cut cut;"
              "void use_line(const char *line, size_t len);", ""),
    "combine": ("void serve(blz_tcp *conn);",
                "blz_select_op select; blz_io io; blz_tcp_listener ln; blz_tcp conn; "
                "blz_interval beat;"),
    "dns": ("void print_address(const blz_addr *addr);", ""),
    "fd": ("""typedef struct pg PGconn; int PQsocket(PGconn *); int PQisBusy(PGconn *);
        int PQconsumeInput(PGconn *);
        typedef struct easy CURL; typedef struct multi CURLM; typedef int curl_socket_t;
        enum { CURL_POLL_IN = 1, CURL_POLL_OUT = 2, CURL_POLL_REMOVE = 4 };
        int curl_multi_socket_action(CURLM *, curl_socket_t, int, int *);
        int to_curl(unsigned events); static int running; static blz_fdset_event event;""",
           "PGconn *pg; blz_fd fd; blz_io io; CURLM *multi; blz_fdset set; blz_fdset_ready_op wait;"
           "int64_t deadline_ns;"),
    "future": ("static blz_semaphore semaphore; static blz_semaphore_op op;"
               "struct session { BLZ_FRAME; blz_tcp conn; }; BLZ_DECLARE_EXTERN(session);",
               "blz_tcp conn; struct session session;"),
    "records": ("void handle(const void *data, size_t len);", ""),
    "io": ("", "int64_t n; blz_tcp conn; blz_io io; char buf[4096];"),
    "wait_info": ("struct door; struct door_wait { blz_future future; struct door *door; };"
             "blz_poll door_poll(blz_future *self, blz_cx *cx); void door_cancel(blz_future *self, blz_cx *cx);",
             ""),
    "mutex": ("static const char *shared; blz_future *send_all(blz_io *io, const char *text);",
              "blz_mutex_op op; blz_io io;"),
    "notify": ("struct item; struct queue { struct item *first; }; static struct queue queue;"
               "static struct item *item; void push(struct queue *, struct item *);"
               "bool pop(struct queue *, struct item **);\n",
               "struct item *item; blz_notify_op wait; blz_future *next;"),
    "once": ("struct config { int port; }; void use(const struct config *config);"
             "struct load_config { BLZ_FRAME; };\nBLZ_ASYNC(load_config) { BLZ_BEGIN; BLZ_END(0); }",
             "blz_once_op get; struct load_config load;"),
    "oneshot": ("struct reply { int status; }; void use(int64_t value);"
                "struct worker { BLZ_FRAME; blz_oneshot *reply; };\n"
                "BLZ_ASYNC(worker) { BLZ_BEGIN; BLZ_END(0); }\nstatic struct reply answer_;",
                "blz_oneshot reply; blz_oneshot_op op; int64_t value;"),
    "par": ("static blz_pool *pool; static void *arg; static void fn(blz_par *par, void *arg) {}", ""),
    "par_find": ("static blz_par *par; static int *v; static size_t zeros;", ""),
    "par_for": ("""struct vectors { double *a, *b, *sum; }; struct images { int **in, **out; }; static struct vectors vectors;
        static blz_par *par; static double *v, *sum, **arrays; static size_t begin, end, size, lens[3];
        double sum_of(const double *begin, const double *end);""", ""),
    "par_group": ("""struct word { char text[8]; }; static struct word *text; static blz_par *par;
        static uint32_t *ids; static size_t *firsts, nr, *order, *offsets;""", ""),
    "par_per_thread": ("static blz_pool *pool; static blz_par *par; static uint64_t value, total;"
                  "static blz_par_per_thread sums;", ""),
    "par_reduce": ("""struct vectors { double *a, *b; }; static struct vectors vectors; static double result;
        struct person { int age; const char *name; }; static struct person *people; static blz_par *par;
        static size_t oldest;""", ""),
    "par_run": ("""struct row { int key; }; struct table { struct row *rows; size_t nr_rows; };
        int sort_row(blz_par *par, struct row *rows, size_t n, const blz_par_options *options);""", ""),
    "par_scan": ("struct numbers { uint64_t *in, *out; size_t n, nr; int rc; };", ""),
    "par_scope": ("""struct node { struct node *first, *next; blz_par_scope *scope; };
        int look_at(struct node *node); static struct node *root; static blz_par *par;
        static blz_par_scope scope;""", ""),
    "par_sort": ("""struct person { int age; }; static struct person *people; static blz_par *par;
        static uint64_t *numbers; static size_t m; static int *v;
        int compare(const void *a, const void *b, void *arg);""", ""),
    "pipe": ("", "int64_t n; blz_pipe out; blz_io io;"),
    "runtime": ("struct fetch { BLZ_FRAME; const char *url; };\nBLZ_ASYNC(fetch) { BLZ_BEGIN; BLZ_END(0); }\n"
                "static const char *url;", ""),
    "rwlock": ("struct entry; static struct entry *entry; struct entry *table_find(int key);",
               "blz_rwlock_op op; int key;"),
    "semaphore": ("static blz_semaphore limit;", "blz_semaphore_op op;"),
    "shutdown": ("""struct server { blz_shutdown *shutdown; };
        struct session { BLZ_FRAME; blz_tcp conn; blz_guard guard; };
        BLZ_ASYNC(session) { BLZ_BEGIN; BLZ_END(0); }
        struct talk { BLZ_FRAME; blz_tcp conn; };
        BLZ_ASYNC(talk) { BLZ_BEGIN; BLZ_END(0); }
        struct serve { BLZ_FRAME; blz_shutdown *shutdown; };
        BLZ_ASYNC(serve) { BLZ_BEGIN; BLZ_END(0); }""",
                 "blz_shutdown *shutdown; blz_guard guard; blz_guard_op run; struct talk talk; blz_tcp conn;"
                 "blz_shutdown_op op;"),
    "signal": ("""void reload(void);
        struct reload_on_hangup { BLZ_FRAME; blz_signal hangup; blz_signal_op op; int64_t rc; };
        struct serve { BLZ_FRAME; blz_tcp_listener ln; };
        BLZ_ASYNC(serve) { BLZ_BEGIN; BLZ_END(0); }
        struct run { BLZ_FRAME; blz_stop stop; blz_stop_op wait; blz_handle server;
                     blz_tcp_listener ln; blz_handle_join_op join; int64_t rc; };""", ""),
    "socket": ("static blz_tcp conn; static blz_udp socket_;\n#define socket socket_", ""),
    "stream": ("static blz_tcp conn;", ""),
    "task": ("""struct fetch { BLZ_FRAME; const char *url; };
        BLZ_ASYNC(fetch) { BLZ_BEGIN; BLZ_END(0); }
        struct sum; static const blz_future_ops sum_ops; static const char *urls[10];""",
             "blz_scope scope; blz_scope_op wait;"),
    "tcp": ("struct echo { BLZ_FRAME; blz_tcp conn; };\nBLZ_ASYNC(echo) { BLZ_BEGIN; BLZ_END(0); }",
            "blz_serve_op op; blz_tcp_listener listener;"),
    "time": ("struct night_shift { BLZ_FRAME; };\nBLZ_ASYNC(night_shift) { BLZ_BEGIN; BLZ_END(0); }",
             "blz_interval iv;"),
    "token": ("static blz_token *stop, *session;",
              "blz_token_guard_op guard; blz_token *session; blz_tcp conn; blz_io io; char buf[64];"),
    "unix": ("struct answer { BLZ_FRAME; blz_unix conn; };\nBLZ_ASYNC(answer) { BLZ_BEGIN; BLZ_END(0); }",
             "blz_serve_op op; blz_unix_listener listener; int64_t n; blz_unix_connect_op connect; "
             "blz_unix conn; blz_unix_cred who; blz_msg msg; int file;"),
    "wait_group": ("struct job; static struct job *jobs_[1]; void start(void *job, blz_wait_group *group);\n"
                   "static int jobs[8];",
                   "blz_wait_group group; blz_wait_group_op wait;"),
    "waker": ("struct door { blz_future future; pthread_mutex_t lock; bool open; blz_waker waker; };", ""),
    "watch": ("struct config { int port; };\nstatic struct config initial, changed;", "struct config config;"),
}
# Types that an example makes itself, and its frame then has.
MEMBERS = {
    "broadcast": "prices_receiver rx; prices_op op;",
    "channel": "jobs_sender tx; jobs_receiver rx; jobs_op op;",
    "oneshot": {2: "answer channel; answer_op op; struct reply reply;"},
    "watch": "config_op op; config_receiver rx;",
}

# Variables of such types, and those whose names the C library has.
VARIABLES = {
    "broadcast": "prices_sender tx;",
    "channel": "jobs_sender tx; jobs_receiver rx;",
    "notify": {2: "blz_notify ready;"},
    "oneshot": {2: "answer channel; struct reply reply;"},
    "par_find": "size_t index;",
    "watch": "config_sender tx; config_receiver rx;",
}

TOP = re.compile(r"(struct \w+ \{|static\b|typedef\b|#|int main\b|"
                 r"BLZ_(ASYNC|CHANNEL|ONESHOT|BROADCAST|WATCH|PAR_TASK|PAR_DEFINE_\w+)\()")


def parts(code):
    """(what goes to the top level, blocks of statements)"""
    code = re.sub(r"\{ \.\.\. \}", ";", code)
    code = re.sub(r"^( +)\.\.\.(?=\s|$)", r"\1;", code, flags=re.MULTILINE)
    top, blocks, item = [], [[]], []
    for line in code.split("\n"):
        if item or TOP.match(line):
            item.append(line)
            if is_whole("\n".join(item)):
                top, item = top + item, []
        elif re.match(r"\.\.\.(\s|$)", line):
            blocks.append([])
        else:
            blocks[-1].append(line)
    return "\n".join(top + item), ["\n".join(block) for block in blocks]


def is_whole(item):
    """Whether an item of the top level has come to its end."""
    bare = re.sub(r"//[^\n]*", "", item).rstrip()
    if bare.count("{") != bare.count("}") or bare.count("(") != bare.count(")"):
        return False
    is_function = re.match(r"static\b[^=]*\)$|BLZ_ASYNC\(\w+\)$|int main\(void\)$", bare)
    return not is_function


def of(table, header, number):
    found = table.get(header, "")
    return found.get(number, "") if isinstance(found, dict) else found


def source(header, number, code):
    declarations, members = CONTEXT.get(header, ("", ""))
    own, variables = of(MEMBERS, header, number), of(VARIABLES, header, number)
    top, blocks = parts(code)
    if "op;" in own:
        members = re.sub(r"\w+ (op|reply);", "", members)
    statements = "\n".join(f"{{\n{block}\n}}" for block in blocks if block.strip())
    frame = f"struct example_ {{ BLZ_FRAME; int64_t rc; {members} {own} }};"
    body = f"BLZ_ASYNC(example_)\n{{\n {variables}\n BLZ_BEGIN;\n{statements}\n goto out;\nout:\n BLZ_END(0);\n}}"
    if re.search(r"\breturn\b", statements) and "self->" not in statements:  # of a plain function
        body = f"int example_(void);\nint example_(void)\n{{\n {variables}\n{statements}\n return 0;\n}}"
    rest = "int main(void) { return 0; }" if "int main" not in top else ""
    includes = "".join(f"#include <{name}>\n" for name in INCLUDES)
    return f"{includes}{PRELUDE}{declarations}\n{top}\n{frame}\n{body}\n{rest}\n"


def examples(header):
    """(number, code)"""
    comments = [header.essay] + [group.comment for group in header.groups]
    found = [part for comment in comments for kind, part in reference.joined(reference.pieces(comment))
             if kind == "code" and reference.looks_like_c(part)]
    return [(number, code) for number, code in enumerate(found, 1)
            if number not in NO_CODE.get(header.name, ())]


def check(compiler, header, number, code):
    text = source(header, number, code)
    made = subprocess.run([compiler, *FLAGS, f"-I{ROOT / 'include'}"], input=text, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return None if made.returncode == 0 else f"example {number} of blitz/{header}.h\n{made.stdout}"


def main(compiler="cc"):
    jobs = [(compiler, header.name, number, code)
            for header in headers.public_headers(ROOT / "include") for number, code in examples(header)]
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        wrong = list(filter(None, threads.map(lambda job: check(*job), jobs)))
    print("\n".join(wrong) or f"{len(jobs)} examples compile")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
