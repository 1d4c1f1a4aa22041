// SPDX-License-Identifier: Apache-2.0
// Channels: ping-pong, producers and consumers, a one-slot channel as a oneshot.
package main

import (
	"sync"
	"time"
)

func pingpongOneshot(n int) outcome {
	t := time.Now()
	for r := 0; r < n/1000; r++ {
		var wg sync.WaitGroup
		wg.Add(1000)
		for i := 0; i < 1000; i++ {
			go func() {
				a, b := make(chan struct{}, 1), make(chan struct{}, 1)
				go func() { <-a; b <- struct{}{} }()
				a <- struct{}{}
				<-b
				wg.Done()
			}()
		}
		wg.Wait()
	}
	return plain(t)
}

func pingpongChan(n int) outcome {
	a, b := make(chan uint64, 1), make(chan uint64, 1)
	go func() {
		for x := range a {
			b <- x + 1
		}
	}()
	t := time.Now()
	for i := uint64(0); i < uint64(n); i++ {
		a <- i
		if <-b != i+1 {
			panic("x")
		}
	}
	r := plain(t)
	close(a)
	return r
}

func producersConsumers(n, p, c int) outcome {
	ch := make(chan uint64, 1024)
	t := time.Now()
	var wp, wc sync.WaitGroup
	wp.Add(p)
	wc.Add(c)
	for i := 0; i < p; i++ {
		go func() {
			for j := 0; j < n/p; j++ {
				ch <- uint64(j)
			}
			wp.Done()
		}()
	}
	for i := 0; i < c; i++ {
		go func() {
			for range ch {
			}
			wc.Done()
		}()
	}
	wp.Wait()
	close(ch)
	wc.Wait()
	return plain(t)
}

func oneshot(n int) outcome {
	t := time.Now()
	for i := 0; i < n; i++ {
		c := make(chan int, 1)
		c <- i
		if <-c != i {
			panic(1)
		}
	}
	return plain(t)
}
