#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/compare and bench/report against programs whose figures are known."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[3]

# Prints the next of its figures each time that it is run, for any benchmark of its list.
PROGRAM = """#!/bin/sh
bench=$1 turns=$0.turns
case $bench in list | --list) echo mutex_uncontended notify_self; exit ;; esac
echo x >>"$turns"
set -- {figures}
shift $((($(wc -l <"$turns") - 1) % $#))
[ "$1" != fails ] || {{ echo no memory left >&2; exit 1; }}
echo "bench=$bench peer=x threads=1 n=10 rep=0 ns_per_op=$1 cpu_ns=$1"
"""


class Peers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.top = pathlib.Path(self.folder.name)
        (self.top / 'bin').mkdir()
        self.out = self.top / 'pages'

    def program(self, name, *figures):
        path = self.top / ('' if name == 'blitz-bench' else 'bin') / name
        path.write_text(PROGRAM.format(figures=' '.join(map(str, figures))))
        path.chmod(0o755)

    def run_tool(self, tool, *arguments):
        return subprocess.run([ROOT / 'bench' / tool, *arguments], text=True, cwd=self.top,
                              env={**os.environ, 'PEERS_OUT': str(self.top)},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def report(self, *arguments):
        done = self.run_tool('report', '--build', self.top, '--out', self.out, '--threads', '2',
                             '--groups', 'locks', *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.out / 'README.md').read_text().replace(' †', '')  # whatever else runs here

    def compare(self, *arguments):
        return self.run_tool('compare', 'mutex_uncontended', '--blitz', self.top / 'blitz-bench',
                             '--threads', '2', '--cycles', '3', *arguments)

    def test_ratios_are_of_medians_with_the_range_of_neighbours(self):
        self.program('blitz-bench', 10, 12, 11)
        self.program('tokio-bench', 20, 48, 22)
        text = self.report('--only', 'mutex', '--cycles', '3')
        self.assertIn('| mutex_uncontended, 2 threads | 11.00 ns | 0.50 (0.25 to 0.50) |', text)
        self.assertIn('In no benchmark that was measured', text)

    def test_a_loss_is_said_first_and_stands_in_bold(self):
        self.program('blitz-bench', 30)
        self.program('tokio-bench', 20)
        self.program('gobench', 60)
        text = self.report('--only', 'mutex', '--cycles', '2')
        self.assertIn('- mutex_uncontended, 2 threads: 1.50 times Tokio (1.50 to 1.50)', text)
        self.assertIn('| **1.50** (1.50 to 1.50) | 0.50 (0.50 to 0.50) |', text)

    def test_a_loss_in_some_turns_only_is_called_open(self):
        self.program('blitz-bench', 30, 10, 30)
        self.program('tokio-bench', 20)
        text = self.report('--only', 'mutex', '--cycles', '3')
        self.assertIn('faster in some turns and slower in others: mutex_uncontended, 2 threads '
                      'against Tokio (0.50 to 1.50)', text)

    def test_a_peer_that_fails_is_named_with_what_it_said(self):
        self.program('blitz-bench', 10)
        self.program('tokio-bench', 20)
        self.program('gobench', 'fails')
        text = self.report('--only', 'mutex', '--cycles', '2')
        self.assertIn('- mutex_uncontended, 2 threads, Go: exit status 1: no memory left', text)

    def test_samples_and_charts_are_well_formed_and_make_the_same_page_again(self):
        self.program('blitz-bench', 10)
        self.program('tokio-bench', 20)
        text = self.report('--cycles', '2')
        samples = json.loads((self.out / 'samples.json').read_text())
        self.assertEqual([r['peer'] for r in samples['results']],
                         ['blitz', 'tokio', 'blitz', 'tokio'])
        xml.etree.ElementTree.parse(self.out / 'locks.svg')
        self.run_tool('report', '--render', '--out', self.out)
        again = (self.out / 'README.md').read_text().replace(' †', '')
        self.assertEqual(text, again)

    def test_a_bar_decides_about_the_exit_status(self):
        self.program('blitz-bench', 10)
        self.program('tokio-bench', 20)
        self.assertEqual(self.compare('--bar', 'tokio<=0.5').returncode, 0)
        missed = self.compare('--bar', 'tokio<=0.4')
        self.assertEqual(missed.returncode, 1)
        self.assertIn('0.50 x tokio (t2): does not hold (tokio<=0.4)', missed.stdout)

    def test_a_missing_program_is_said_with_what_to_do(self):
        done = self.compare()
        self.assertEqual(done.returncode, 1)
        self.assertIn('run make build', done.stdout)


if __name__ == '__main__':
    sys.exit(unittest.main())
