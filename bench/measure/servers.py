# SPDX-License-Identifier: Apache-2.0
"""Turns of the server benchmarks: a fresh server on one CPU, the load generator on another."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from . import jobs
from .jobs import BIN, Failed, Job

CPUS = sorted(os.sched_getaffinity(0))
SERVER_CPU, CLIENT_CPU = CPUS[0], CPUS[min(1, len(CPUS) - 1)]

# What the load generator is told: its mode, which is also the name in its line, and connections.
LOADS = {
    'echo': ('echo', 64), 'echo_1': ('echo', 1), 'echo_1024': ('echo', 1024),
    'accept': ('accept', 64), 'idle_conn_mem': ('idle', 10000), 'http': ('http', 64),
}

ECHO = [
    ('tokio', 'tokio-echo'), ('tokio-ct', 'tokio-echo'), ('go', 'goecho'), ('libuv', 'uv_echo'),
    ('libevent', 'event_echo'), ('asio', 'asio_echo'), ('epoll', 'epoll_echo'),
    ('epoll-spin', 'epoll_echo'), ('io_uring', 'uring_echo'),
]
HTTP = [
    ('hyper', 'hyper-hello'), ('hyper-ct', 'hyper-hello'), ('go', 'gohello'), ('nginx', 'nginx'),
]
ONE_THREAD = ('libuv', 'libevent', 'epoll-spin')


# ---- the server ----

def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def listening(port):
    suffix = f':{port:04X}'
    for path in ('/proc/net/tcp', '/proc/net/tcp6'):
        try:
            with open(path) as f:
                rows = [line.split() for line in f.readlines()[1:]]
        except OSError:
            continue
        if any(r[1].endswith(suffix) and r[3] == '0A' for r in rows):
            return True
    return False


class Server:
    """A server process, listening, pinned if it has one thread; ended on exit."""

    def __init__(self, command, port, threads):
        self.port = port
        pin = (lambda: os.sched_setaffinity(0, {SERVER_CPU})) if threads == 1 else None
        self.errors = tempfile.TemporaryFile()
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=pin,
                                            stdout=subprocess.DEVNULL, stderr=self.errors)
        except OSError as e:
            raise Failed(str(e))

    def __enter__(self):
        deadline = time.monotonic() + 10
        while not listening(self.port):
            status = self.process.poll()
            if status is not None or time.monotonic() > deadline:
                self.__exit__()
                self.errors.seek(0)
                lines = self.errors.read().decode(errors='replace').strip().splitlines()
                what = 'does not listen' if status is None else f'ended with status {status}'
                raise Failed(f'the server {what}' + (': ' + lines[-1] if lines else ''))
            time.sleep(0.02)
        time.sleep(0.15)  # let the other threads open their listeners too
        return self.process

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(2)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def nginx_command(threads, run_dir):
    def command(port):
        with open(os.path.join(jobs.PEERS, 'http', 'nginx.conf.in')) as f:
            text = f.read()
        for key, value in (('@PORT@', port), ('@THREADS@', threads), ('@RUN@', run_dir)):
            text = text.replace(key, str(value))
        path = os.path.join(run_dir, 'nginx.conf')
        with open(path, 'w') as f:
            f.write(text)
        return [find_nginx(), '-p', run_dir, '-e', '/dev/null', '-c', path]
    return command


def find_nginx():
    return shutil.which('nginx') or shutil.which('nginx', path='/usr/sbin')


# ---- the load ----

def load_turn(command, bench, threads, peer, options):
    """Our own load generator against an echo server."""
    mode, conns = LOADS[bench]

    def turn():
        port = free_port()
        with Server(command(port), port, threads) as server:
            text, _ = jobs.run_program([
                os.path.join(BIN, 'loadgen'), '--port', str(port), '--pid', str(server.pid),
                '--mode', mode, '--conns', str(options.conns or conns), '--size', str(options.size), '--secs',
                str(options.seconds or 1.5), '--cpu', str(CLIENT_CPU), '--peer', peer, '--threads',
                str(threads)])
            if server.poll() is not None:
                raise Failed('the server ended during the load')
        f = jobs.numbers(text, 'idle_conn_mem' if mode == 'idle' else mode)
        return jobs.sample(f, bench, other=f.get('other'), p50=f.get('p50_us'), p99=f.get('p99_us'),
                           rate=f.get('msgs_per_s', f.get('conns_per_s')))
    return turn


def tree_cpu(pid):
    """CPU seconds of a process and its children (nginx works in children)."""
    total = 0
    with open(f'/proc/{pid}/task/{pid}/children') as f:
        pids = [pid] + [int(x) for x in f.read().split()]
    for p in pids:
        try:
            with open(f'/proc/{p}/stat') as f:
                fields = f.read().rpartition(')')[2].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total / os.sysconf('SC_CLK_TCK')


def find(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    if not found:
        raise Failed(f'wrk printed nothing like {pattern}')
    return found.groups()


def percentile_us(text, percent):
    value, suffix = find(rf'^\s+{percent}%\s+([\d.]+)(us|ms|s|m)$', text)
    return float(value) * {'us': 1, 'ms': 1e3, 's': 1e6, 'm': 6e7}[suffix]


def wrk_turn(command, threads, options):
    """wrk with one thread against an HTTP server."""
    seconds = max(1, round(options.seconds or 2))

    def turn():
        port = free_port()
        with Server(command(port), port, threads) as server:
            busy, cpu0, own0 = jobs.machine_busy(), tree_cpu(server.pid), jobs.children_cpu()
            start = time.monotonic()
            text, _ = jobs.run_program([
                'taskset', '-c', str(CLIENT_CPU), 'wrk', '-t1', f'-c{options.conns or LOADS["http"][1]}',
                f'-d{seconds}s', '--latency', f'http://127.0.0.1:{port}/'])
            wall, cpu = time.monotonic() - start, tree_cpu(server.pid) - cpu0
            others = jobs.machine_busy() - busy - cpu - (jobs.children_cpu() - own0)
        requests = int(find(r'(\d+) requests in', text)[0])
        if not requests or 'Non-2xx' in text or 'Socket errors' in text:
            raise Failed('wrk saw errors or no answers')
        return {'figure': cpu * 1e6 / requests, 'cpu': None, 'other': max(0.0, others / wall),
                'rate': float(find(r'Requests/sec:\s+([\d.]+)', text)[0]),
                'p50': percentile_us(text, 50), 'p99': percentile_us(text, 99)}
    return turn


# ---- jobs ----

def server_jobs(bench, threads, options):
    """Jobs of all servers that the benchmark has, ours first."""
    found = []

    def add(peer, command):
        turn = (wrk_turn(command, threads, options) if bench == 'http'
                else load_turn(command, bench, threads, peer, options))
        found.append(Job(bench, threads, peer, turn))

    own = options.blitz_http if bench == 'http' else options.blitz_echo
    if own:
        add('blitz', lambda port: [own, str(port), str(threads)] + options.blitz_options)
    for peer, program in HTTP if bench == 'http' else ECHO:
        path = find_nginx() if peer == 'nginx' else os.path.join(BIN, program)
        alone = peer.endswith('-ct') or peer in ONE_THREAD
        if not jobs.wanted(peer, options) or not path or not os.path.exists(path):
            continue
        if alone and threads != 1:
            continue
        if peer == 'nginx':
            add(peer, nginx_command(threads, options.run_dir))
            continue
        tail = ['1', '1'] if peer == 'epoll-spin' else ['0' if peer.endswith('-ct') else str(threads)]
        add(peer, lambda port, path=path, tail=tail: [path, str(port)] + tail)
    return found
