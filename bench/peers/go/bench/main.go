// SPDX-License-Identifier: Apache-2.0
// Go micro-benchmarks: goroutines, channels, locks, timers, memory per goroutine.
//
// Usage: gobench BENCH|all|list [--threads T] [--reps R] [--scale S] [--peer NAME]
// T is GOMAXPROCS.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// outcome is the time of the measured part, and more key=value pairs for the line.
type outcome struct {
	elapsed time.Duration
	extra   string
}

func plain(start time.Time) outcome { return outcome{time.Since(start), ""} }

type bench struct {
	name string
	n    int // operations in one repetition
	run  func(int) outcome
}

func table() []bench {
	return []bench{
		{"spawn_join_in", 1000000, spawnJoinChan},
		{"spawn_join_wg", 1000000, spawnJoinWG},
		{"spawn_await_seq", 300000, spawnAwaitSeq},
		{"yield_1", 2000000, func(n int) outcome { return yieldTasks(n, 1) }},
		{"yield_1000", 4000000, func(n int) outcome { return yieldTasks(n, 1000) }},
		{"pingpong_oneshot", 200000, pingpongOneshot},
		{"pingpong_mpsc", 300000, pingpongChan},
		{"chained_spawn", 1000000, chainedSpawn},
		{"spawn_many_local", 1000000, spawnManyLocal},
		{"mpsc_1_1", 3000000, func(n int) outcome { return producersConsumers(n, 1, 1) }},
		{"mpsc_4_1", 3000000, func(n int) outcome { return producersConsumers(n, 4, 1) }},
		{"mpmc_4_4", 2000000, func(n int) outcome { return producersConsumers(n, 4, 4) }},
		{"oneshot", 2000000, oneshot},
		{"mutex_uncontended", 5000000, mutexUncontended},
		{"mutex_100tasks", 2000000, func(n int) outcome { return mutexTasks(n, 100, false) }},
		{"mutex_100tasks_yield", 500000, func(n int) outcome { return mutexTasks(n, 100, true) }},
		{"rwlock_read_1", 5000000, func(n int) outcome { return rwlockRead(n, 1) }},
		{"rwlock_read_8", 5000000, func(n int) outcome { return rwlockRead(n, 8) }},
		{"sem_uncontended", 5000000, semUncontended},
		{"sem_64tasks_4permits_yield", 500000, semContended},
		{"timer_insert_cancel", 100000, timerInsertCancel},
		{"timer_insert_expire", 100000, timerInsertExpire},
		{"timeout_ready", 1000000, timeoutReady},
		{"mem_idle_tasks", 1000000, func(n int) outcome { return memTasks(n, false) }},
		{"mem_sleep_tasks", 1000000, func(n int) outcome { return memTasks(n, true) }},
	}
}

// cpuNs is the CPU time of all threads of this process.
func cpuNs() int64 {
	var r syscall.Rusage
	syscall.Getrusage(0, &r)
	return r.Utime.Nano() + r.Stime.Nano()
}

// machineBusyNs is busy and stolen time of the whole machine: user nice system irq softirq steal.
func machineBusyNs() int64 {
	b, _ := os.ReadFile("/proc/stat")
	fields := strings.Fields(strings.SplitN(string(b), "\n", 2)[0])
	var ticks int64
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		x, _ := strconv.ParseInt(fields[i], 10, 64)
		ticks += x
	}
	return ticks * 10000000
}

func repeat(b bench, n, reps, threads int, peer string) {
	for rep := 0; rep < reps; rep++ {
		busy0, cpu0, wall0 := machineBusyNs(), cpuNs(), time.Now()
		r := b.run(n)
		wall, cpu := time.Since(wall0), cpuNs()-cpu0
		other := float64(machineBusyNs()-busy0-cpu) / float64(wall)
		if other < 0 {
			other = 0
		}
		fmt.Printf("bench=%s peer=%s threads=%d n=%d rep=%d ns_per_op=%.2f cpu_ns=%.2f other=%.2f %s\n",
			b.name, peer, threads, n, rep, float64(r.elapsed)/float64(n), float64(cpu)/float64(n),
			other, r.extra)
		if strings.HasPrefix(b.name, "mem_") {
			return
		}
	}
}

func main() {
	which, args := "all", os.Args[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		which, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("gobench", flag.ExitOnError)
	threads := flags.Int("threads", 2, "GOMAXPROCS")
	reps := flags.Int("reps", 5, "repetitions")
	scale := flags.Float64("scale", 1, "factor on the operations of a repetition")
	peer := flags.String("peer", "go", "name to print")
	flags.Parse(args)
	runtime.GOMAXPROCS(*threads)
	found := false
	for _, b := range table() {
		if which == "list" {
			fmt.Println(b.name)
			found = true
		} else if which == b.name || (which == "all" && !strings.HasPrefix(b.name, "mem_")) {
			repeat(b, int(float64(b.n)**scale), *reps, *threads, *peer)
			found = true
		}
	}
	if !found {
		fmt.Fprintf(os.Stderr, "no benchmark named %s; try: list\n", which)
		os.Exit(2)
	}
}
