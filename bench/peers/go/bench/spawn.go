// SPDX-License-Identifier: Apache-2.0
// Spawning, joining and yielding goroutines.
package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// per-task join handle: a chan closed by the task
func spawnJoinChan(n int) outcome {
	t := time.Now()
	hs := make([]chan struct{}, n)
	for i := range hs {
		c := make(chan struct{})
		hs[i] = c
		go func() { close(c) }()
	}
	for _, c := range hs {
		<-c
	}
	return plain(t)
}

// WaitGroup based join (no result value)
func spawnJoinWG(n int) outcome {
	t := time.Now()
	var wg sync.WaitGroup
	wg.Add(n)
	for i := 0; i < n; i++ {
		go wg.Done()
	}
	wg.Wait()
	return plain(t)
}

func spawnAwaitSeq(n int) outcome {
	t := time.Now()
	for i := 0; i < n; i++ {
		c := make(chan struct{})
		go func() { close(c) }()
		<-c
	}
	return plain(t)
}

func spawnManyLocal(n int) outcome {
	t := time.Now()
	for r := 0; r < n/10000; r++ {
		var rem int64 = 10000
		done := make(chan struct{}, 1)
		for i := 0; i < 10000; i++ {
			go func() {
				if atomic.AddInt64(&rem, -1) == 0 {
					done <- struct{}{}
				}
			}()
		}
		<-done
	}
	return plain(t)
}

func chainedSpawn(n int) outcome {
	t := time.Now()
	done := make(chan struct{}, 1)
	var iter func(k int)
	iter = func(k int) {
		if k == 0 {
			done <- struct{}{}
		} else {
			go iter(k - 1)
		}
	}
	for r := 0; r < n/1000; r++ {
		go iter(1000)
		<-done
	}
	return plain(t)
}

func yieldTasks(n, k int) outcome {
	t := time.Now()
	var wg sync.WaitGroup
	wg.Add(k)
	for i := 0; i < k; i++ {
		go func() {
			for j := 0; j < n/k; j++ {
				runtime.Gosched()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	return plain(t)
}
