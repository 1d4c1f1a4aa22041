// SPDX-License-Identifier: Apache-2.0
// Mutex, RWMutex, and a buffered channel as a semaphore.
package main

import (
	"runtime"
	"sync"
	"time"
)

func mutexUncontended(n int) outcome {
	var m sync.Mutex
	x := 0
	t := time.Now()
	for i := 0; i < n; i++ {
		m.Lock()
		x++
		m.Unlock()
	}
	return plain(t)
}

func mutexTasks(n, k int, y bool) outcome {
	var m sync.Mutex
	var wg sync.WaitGroup
	x := 0
	t := time.Now()
	wg.Add(k)
	for i := 0; i < k; i++ {
		go func() {
			for j := 0; j < n/k; j++ {
				m.Lock()
				x++
				if y {
					runtime.Gosched()
				}
				m.Unlock()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	return plain(t)
}

func rwlockRead(n, k int) outcome {
	var m sync.RWMutex
	var wg sync.WaitGroup
	t := time.Now()
	wg.Add(k)
	for i := 0; i < k; i++ {
		go func() {
			for j := 0; j < n/k; j++ {
				m.RLock()
				m.RUnlock()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	return plain(t)
}

func semUncontended(n int) outcome {
	s := make(chan struct{}, 4)
	t := time.Now()
	for i := 0; i < n; i++ {
		s <- struct{}{}
		<-s
	}
	return plain(t)
}

func semContended(n int) outcome {
	s := make(chan struct{}, 4)
	var wg sync.WaitGroup
	t := time.Now()
	wg.Add(64)
	for i := 0; i < 64; i++ {
		go func() {
			for j := 0; j < n/64; j++ {
				s <- struct{}{}
				runtime.Gosched()
				<-s
			}
			wg.Done()
		}()
	}
	wg.Wait()
	return plain(t)
}
