# SPDX-License-Identifier: Apache-2.0
"""docs/benchmarks/: tables of ratios with their spread, charts, and where Blitz loses."""
import collections
import os
import statistics

from . import plots
from .jobs import DISTURBED, number, plural

Group = collections.namedtuple('Group', 'key title benches')

GROUPS = [
    Group('tasks', 'Tasks', [
        'spawn_join_in', 'spawn_join_out', 'spawn_await_seq', 'spawn_many_local',
        'spawn_many_remote_idle', 'spawn_many_remote_busy', 'chained_spawn', 'yield_1',
        'yield_1000', 'mem_idle_tasks', 'mem_sleep_tasks']),
    Group('channels', 'Channels', [
        'pingpong_oneshot', 'pingpong_mpsc', 'oneshot', 'mpsc_1_1', 'mpsc_4_1',
        'mpsc_unbounded_1_1', 'mpmc_4_4', 'broadcast_1_4', 'watch_1_4']),
    Group('locks', 'Locks', [
        'mutex_uncontended', 'mutex_100tasks', 'mutex_100tasks_yield', 'rwlock_read_1',
        'rwlock_read_8', 'sem_uncontended', 'sem_64tasks_4permits_yield', 'notify_self',
        'notify_pingpong']),
    Group('time', 'Timers and blocking work', [
        'timer_insert_cancel', 'timer_insert_expire', 'timeout_ready', 'timeout_yield',
        'blocking_seq', 'blocking_batch']),
    Group('servers', 'TCP servers', ['echo_1', 'echo', 'echo_1024', 'accept', 'idle_conn_mem']),
    Group('http', 'HTTP servers', ['http']),
    Group('forkjoin', 'Fork-join', [
        'fib30', 'fib35', 'fib38', 'tree24', 'nqueens12', 'scope_spawn', 'parfor1000_hot',
        'install_empty_hot', 'sum_u64', 'sum_f64', 'mapreduce_splitmix', 'matmul1024',
        'sort_unstable_u64', 'sort_unstable_u32', 'sort_stable_u64', 'sort_stable_u32', 'radix_u64',
        'wake_empty_1ms', 'wake_rdv_1ms', 'wake_rdv_20ms', 'idle_cpu']),
]
TITLES = {
    'tokio': 'Tokio', 'hyper': 'hyper', 'go': 'Go', 'libevent': 'libevent', 'asio': 'Asio',
    'rayon': 'Rayon', 'tbb': 'oneTBB', 'openmp': 'OpenMP', 'serial': 'serial C',
    'epoll': 'raw epoll', 'epoll-spin': 'raw epoll, spinning', 'io_uring': 'raw io_uring',
}

# One peer on one line of a table: the median of the ratios of medians, the range turn by turn.
Ratio = collections.namedtuple('Ratio', 'peer value low high')
Line = collections.namedtuple('Line', 'bench threads unit own ratios failed disturbed')


# ---- from samples to ratios ----

def figures(result, field='figure'):
    return [s[field] for s in result['samples'] if s.get(field) is not None]


def ratio_of(own, other, peer):
    """Turn by turn, since the two stood beside each other in time; None if one has no figure."""
    pairs = [a / b for a, b in zip(own, other) if a > 0 and b > 0]
    if not pairs:
        return None
    value = statistics.median(own) / statistics.median(other)
    return Ratio(peer, value, min(pairs + [value]), max(pairs + [value]))


def merged(ratios):
    """Of NAME and NAME-ct (Tokio's schedulers) the better one, under the name of the first."""
    best = {}
    for r in ratios:
        name = r.peer.removesuffix('-ct')
        if name not in best or r.value > best[name].value:
            best[name] = r._replace(peer=name)
    return list(best.values())


def line_of(results):
    """All peers of one benchmark with one thread count; None without a figure of ours."""
    own = next((r for r in results if r['peer'] == 'blitz'), None)
    if not own or not figures(own):
        return None
    # CPU time where the wall time is that of sleeping.
    field = 'cpu' if own['bench'] == 'timer_insert_expire' else 'figure'
    ratios = [ratio_of(figures(own, field), figures(r, field), r['peer'])
              for r in results if r is not own]
    samples = [s for r in results for s in r['samples']]
    return Line(own['bench'], own['threads'], own['unit'], statistics.median(figures(own, field)),
                merged([r for r in ratios if r]), [r for r in results if r['error']],
                sum((s.get('other') or 0) > DISTURBED for s in samples) / max(1, len(samples)))


def lines_of(samples):
    """Keyed by benchmark and threads, in the order of the samples."""
    by_key = collections.defaultdict(list)
    for result in samples['results']:
        by_key[result['bench'], result['threads']].append(result)
    lines = {key: line_of(results) for key, results in by_key.items()}
    return {key: line for key, line in lines.items() if line and line.ratios}


# ---- text ----

def title(peer):
    return TITLES.get(peer, peer)


def label(line):
    return f'{line.bench}, {plural(line.threads, "thread")}'


def cell(line, r):
    """A ratio with its range; bold where Blitz loses."""
    text = f'{r.value:.2f}'
    return (f'**{text}**' if loses(line, r) else text) + f' ({r.low:.2f} to {r.high:.2f})'


def table(lines):
    peers = list(dict.fromkeys(r.peer for line in lines for r in line.ratios))
    rows = [['benchmark', 'Blitz'] + [title(p) for p in peers], ['---'] * (2 + len(peers))]
    for line in lines:
        known = {r.peer: cell(line, r) for r in line.ratios}
        mark = ' †' if line.disturbed > 0.25 else ''
        rows.append([label(line) + mark, f'{number(line.own)} {short(line.unit)}'] +
                    [known.get(p, '') for p in peers])
    return '\n'.join('| ' + ' | '.join(row) + ' |' for row in rows)


def short(unit):
    if unit.startswith('ns'):
        return 'ns'
    return 'bytes' if 'bytes' in unit else '%' if 'percent' in unit else 'us'


def loses(line, r):
    """Not where all of them use as good as no CPU, nor against a loop that has no threads."""
    nothing = line.bench == 'idle_cpu' and line.own < 0.01
    return r.value >= 1.005 and r.peer != 'serial' and not nothing


def losses(lines):
    lost = sorted(((r.value, line, r) for line in lines for r in line.ratios if loses(line, r)),
                  key=lambda x: -x[0])
    clear = [f'- {label(line)}: {r.value:.2f} times {title(r.peer)} ({r.low:.2f} to {r.high:.2f})'
             for _, line, r in lost if r.low > 1]
    open_ = [f'{label(line)} against {title(r.peer)} ({r.low:.2f} to {r.high:.2f})'
             for _, line, r in lost if r.low <= 1]
    text = '\n'.join(clear) if clear else 'In no benchmark that was measured, whatever the turn.'
    if open_:
        text += '\n\nPerhaps, since it was faster in some turns and slower in others: ' + \
                '; '.join(open_) + '.'
    return text


def failures(samples):
    failed = [f'- {r["bench"]}, {plural(r["threads"], "thread")}, {title(r["peer"])}: {r["error"]}'
              for r in samples['results'] if r['error']]
    return '\n## What did not run\n\n' + '\n'.join(failed) + '\n' if failed else ''


PAGE = """# Benchmarks

Blitz divided by each peer, measured on {date} by `{command}`: below 1 Blitz is better. Each figure is
the median of up to {cycles} turns, all programs in turn, each turn in a process of its own; in
brackets the lowest and highest ratio of two turns that stood beside each other. Bold: Blitz loses by the
medians; not said of serial code, which has no threads, nor where an idle pool uses less than 0.01 % of a CPU. The
better one of Tokio's two schedulers stands for Tokio. †: during more than a quarter of the turns other processes
used the machine. What each benchmark does, and what its figure does not say, is in
[bench/peers](../../bench/peers/README.md); every sample is in [samples.json](samples.json).

## Where Blitz loses

{losses}

## The machine

{machine}
{sections}{failures}
## Repeat it

On a Debian 12 machine, with nothing installed:

    make bench                                   # half an hour; writes this page
    make bench ARGS='--groups locks --cycles 3'  # some of it
    bench/compare mutex_uncontended --cycles 9   # one of them, as a table in the terminal

`make bench` builds Blitz and the peers (`bench/peers/setup` installs what is missing, from Debian's packages). Nothing is
pinned but servers with one thread and their load generator; close other programs first.
"""


def write(samples, folder):
    lines = lines_of(samples)
    sections = ''
    for group in GROUPS:
        found = [line for key, line in lines.items() if key[0] in group.benches]
        if not found:
            continue
        marks = [(label(line), [(title(r.peer), r.value, r.low, r.high) for r in line.ratios])
                 for line in found]
        with open(os.path.join(folder, group.key + '.svg'), 'w') as f:
            f.write(plots.chart(group.title, marks))
        sections += f'\n## {group.title}\n\n![{group.title}: ratios]({group.key}.svg)\n\n{table(found)}\n'
    text = PAGE.format(
        date=samples['date'], command=samples['command'], cycles=samples['cycles'],
        losses=losses(lines.values()), sections=sections, failures=failures(samples),
        machine='\n'.join(f'- {k}: {v}' for k, v in samples['machine'].items() if v))
    with open(os.path.join(folder, 'README.md'), 'w') as f:
        f.write(text)
