# SPDX-License-Identifier: Apache-2.0
"""One peer on one benchmark: how a turn of it is run, and what the turns gave.

A turn is one repetition in a process of its own. The programs print a line for each repetition,
which bench/peers/README.md defines.
"""
import os
import resource
import statistics
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(os.path.dirname(HERE), 'peers')
CACHE = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
BIN = os.path.join(os.environ.get('PEERS_OUT') or os.path.join(CACHE, 'blitz-peers'), 'bin')
TURN_SECONDS = 120       # a turn that takes longer has failed
DISTURBED = 0.15         # cores used by other processes, above which a turn counts as disturbed

# Figure of a benchmark: field of the printed line, unit. Smaller is better. Others: ns_per_op.
FIGURES = {
    'echo': ('srv_us_per_msg', 'server CPU us per message'),
    'echo_1': ('srv_us_per_msg', 'server CPU us per message'),
    'echo_1024': ('srv_us_per_msg', 'server CPU us per message'),
    'accept': ('srv_us_per_conn', 'server CPU us per connection'),
    'http': ('srv_us_per_req', 'server CPU us per request'),
    'idle_conn_mem': ('rss_per_conn', 'server RSS bytes per idle connection'),
    'idle_cpu': ('cpu_percent', 'percent of a core while idle'),
    'mem_idle_tasks': ('rss_per_task', 'RSS bytes per task'),
    'mem_sleep_tasks': ('rss_per_task', 'RSS bytes per task'),
}

# Micro and fork-join peers: name, program. "-ct" is Tokio's current_thread runtime.
MICRO = [
    ('tokio', 'tokio-bench'), ('tokio-ct', 'tokio-bench'), ('go', 'gobench'), ('libuv', 'uv_bench'),
    ('asio', 'asio_bench'), ('rayon', 'rayon-bench'), ('tbb', 'tbb'), ('openmp', 'omp'),
    ('serial', 'serial'),
]
# Channels of other crates, run by Tokio, as further peers of the generic benchmark.
VARIANTS = {'mpmc_4_4': [('async-channel', 'mpmc_4_4_async_channel'), ('flume', 'mpmc_4_4_flume')]}
# The peer is another program under the name of its own.
ALIASES = {'radix_u64': [('rayon', 'rayon-bench', 'sort_unstable_u64')]}


class Failed(Exception):
    """A turn that gave no figure; the text says why."""


class Job:
    """One peer on one benchmark with one thread count, and what its turns gave."""

    def __init__(self, bench, threads, peer, turn):
        self.bench, self.threads, self.peer, self.turn = bench, threads, peer, turn
        self.samples, self.error = [], None

    def values(self, field):
        return [s[field] for s in self.samples if s.get(field) is not None]

    def median(self, field):
        values = self.values(field)
        return statistics.median(values) if values else None


def figure_field(bench):
    return FIGURES.get(bench, ('ns_per_op',))[0]


def unit(bench):
    return FIGURES.get(bench, ('', 'ns per operation'))[1]


# ---- processes ----

def machine_busy():
    """Seconds of CPU used or stolen on the whole machine since it started."""
    with open('/proc/stat') as f:
        t = [int(x) for x in f.readline().split()[1:9]]
    return (t[0] + t[1] + t[2] + t[5] + t[6] + t[7]) / os.sysconf('SC_CLK_TCK')


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_program(command, seconds=TURN_SECONDS):
    """Output of a program that must succeed, and the cores that others used meanwhile."""
    busy, cpu, start = machine_busy(), children_cpu(), time.monotonic()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=seconds, text=True)
    except subprocess.TimeoutExpired:
        raise Failed(f'no result within {seconds} s')
    except OSError as e:
        raise Failed(str(e))
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        how = (f'killed by signal {-done.returncode}' if done.returncode < 0
               else f'exit status {done.returncode}')
        raise Failed(how + (': ' + lines[-1] if lines else ''))
    wall = time.monotonic() - start
    others = machine_busy() - busy - (children_cpu() - cpu)
    return done.stdout, max(0.0, others / wall) if wall > 0.2 else None


def numbers(text, bench):
    """Numeric fields of the last line about a benchmark."""
    lines = [l for l in text.splitlines() if l.startswith(f'bench={bench} ')]
    if not lines:
        raise Failed(f'no line for {bench}')
    fields = {}
    for word in lines[-1].split():
        key, _, value = word.partition('=')
        try:
            fields[key] = float(value)
        except ValueError:
            pass
    return fields


def sample(fields, bench, **more):
    name = figure_field(bench)
    if name not in fields:
        raise Failed(f'{name}= is missing in the line')
    cpu = fields.get('cpu_ns', fields.get('cpu_ns_per_op'))
    return dict({'figure': fields[name], 'cpu': cpu, 'n': fields.get('n')}, **more)


# ---- turns of micro and fork-join benchmarks ----

_listed = {}


def benches_of(path, flag):
    """Names that a benchmark program offers; empty if it is not built."""
    if path not in _listed:
        try:
            _listed[path] = run_program([path, flag], 20)[0].split()
        except Failed:
            _listed[path] = []
    return _listed[path]


def micro_turn(command, bench, variant):
    def turn():
        text, other = run_program(command)
        return sample(numbers(text, variant), bench, other=other)
    return turn


def candidates(bench):
    """(peer, program, its name for the benchmark)."""
    found = [(name, program, bench) for name, program in MICRO] + ALIASES.get(bench, [])
    for name, variant in VARIANTS.get(bench, []):
        found += [(name, 'tokio-bench', variant), (name + '-ct', 'tokio-bench', variant)]
    return [(n, p, v) for n, p, v in found if v in benches_of(os.path.join(BIN, p), 'list')]


def makes_sense(bench, peer, threads):
    if peer.endswith('-ct'):
        return threads == 1 and bench != 'spawn_many_remote_busy'  # no worker to keep busy
    if peer == 'libuv':
        return threads == 1
    return threads > 1 or not bench.startswith('wake_rdv')


def micro_jobs(bench, threads, options):
    """Jobs of all programs that have the benchmark, ours first."""
    jobs, reps = [], ['--reps', str(1 + options.warmup)]
    if options.blitz and makes_sense(bench, 'blitz', threads):
        command = [options.blitz, bench, '--threads', str(threads)] + reps + options.blitz_options
        jobs.append(Job(bench, threads, 'blitz', micro_turn(command, bench, bench)))
    for peer, program, variant in candidates(bench):
        if not wanted(peer, options) or not makes_sense(bench, peer, threads):
            continue
        workers = '0' if peer.endswith('-ct') else str(threads)
        command = [os.path.join(BIN, program), variant, '--threads', workers] + reps
        jobs.append(Job(bench, threads, peer, micro_turn(command, bench, variant)))
    return jobs


def wanted(peer, options):
    return not options.peers or peer in options.peers or peer.removesuffix('-ct') in options.peers


# ---- running ----

def grouped(jobs):
    groups = {}
    for job in jobs:
        groups.setdefault((job.bench, job.threads), []).append(job)
    return groups


def turns_of(jobs, cycles):
    """All turns in their order: round-robin, and each cycle begins a group one peer further on."""
    for cycle in range(cycles):
        for group in grouped(jobs).values():
            at = cycle % len(group)
            for job in group[at:] + group[:at]:
                yield job


def take_turn(job):
    """Runs one turn; False if it failed, then the job says why and takes no more of them."""
    try:
        job.samples.append(job.turn())
        return True
    except Failed as e:
        job.error = str(e)
        return False


def ratio(a, b):
    return a / b if a is not None and b else None


def number(value):
    if value is None:
        return '-'
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f'{value:.{digits}f}'


def plural(count, word):
    return f'{count} {word}' + ('' if count == 1 else 's')
