# SPDX-License-Identifier: Apache-2.0
"""What a reader must know of the machine and the programs behind figures."""
import os
import platform
import subprocess

PACKAGES = {
    'Tokio': 'librust-tokio-dev', 'hyper': 'librust-hyper-dev', 'Rayon': 'librust-rayon-dev',
    'libuv': 'libuv1-dev', 'libevent': 'libevent-dev', 'Asio': 'libboost-dev',
    'oneTBB': 'libtbb-dev', 'liburing': 'liburing-dev', 'nginx': 'nginx-light', 'wrk': 'wrk',
}


def first_line(*command):
    """The first line that a program prints; '' if there is no such program."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return ''
    return done.stdout.partition('\n')[0].strip()


def field(path, name):
    """The value of the first line `name : value` of a file."""
    try:
        with open(path) as f:
            for line in f:
                key, _, value = line.partition(':')
                if key.strip() == name:
                    return value.strip()
    except OSError:
        pass
    return ''


def word(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return ''


def upstream(version):
    """1:2.3-4+b1 -> 2.3"""
    return version.partition(':')[2].partition('-')[0] if ':' in version else version.partition('-')[0]


def peers():
    found = {}
    for name, package in PACKAGES.items():
        version = first_line('dpkg-query', '-W', '-f=${Version}', package)
        if version:
            found[name] = upstream(version)
    return found


def describe():
    """An ordered dictionary of short texts."""
    flags = field('/proc/cpuinfo', 'flags').split()
    memory = int((field('/proc/meminfo', 'MemTotal') or '0 kB').split()[0])
    governor = word('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor')
    cpus = len(os.sched_getaffinity(0))
    return {
        'Processor': f'{field("/proc/cpuinfo", "model name") or platform.machine()}, '
                     f'{cpus} CPUs' + (', virtual' if 'hypervisor' in flags else ''),
        'Governor': governor or 'not shown by the system',
        'Memory': f'{memory / 2**20:.0f} GiB',
        'Kernel': f'{platform.system()} {platform.release().split("-")[0]}',
        'C library': ' '.join(platform.libc_ver()),
        'Compilers': ', '.join(filter(None, (first_line('gcc', '--version'),
                                             first_line('rustc', '--version'),
                                             first_line('go', 'version')))),
        'Blitz': first_line('git', 'describe', '--always', '--dirty'),
        'Peers': ', '.join(f'{name} {version}' for name, version in peers().items()),
    }
