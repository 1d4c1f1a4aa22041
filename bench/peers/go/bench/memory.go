// SPDX-License-Identifier: Apache-2.0
// Resident memory of a million parked goroutines. One repetition per process.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

func rss() int {
	b, _ := os.ReadFile("/proc/self/statm")
	n, _ := strconv.Atoi(strings.Fields(string(b))[1])
	return n * 4096
}

func memTasks(n int, sl bool) outcome {
	runtime.GC()
	r0 := rss()
	t := time.Now()
	var st int64
	block := make(chan struct{})
	for i := 0; i < n; i++ {
		if sl {
			go func() {
				atomic.AddInt64(&st, 1)
				time.Sleep(time.Hour)
			}()
		} else {
			go func() {
				atomic.AddInt64(&st, 1)
				<-block
			}()
		}
	}
	for atomic.LoadInt64(&st) < int64(n) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond)
	d := time.Since(t)
	return outcome{d, fmt.Sprintf("rss_per_task=%.1f", float64(rss()-r0)/float64(n))}
}
