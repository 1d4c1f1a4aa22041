// SPDX-License-Identifier: Apache-2.0
// Timers and timeouts. xorshift64, so that every runtime draws the same delays.
package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

type rng uint64

func (r *rng) next() uint64 {
	x := uint64(*r)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = rng(x)
	return x
}

func timerInsertCancel(n int) outcome {
	r := rng(88172645463325252)
	v := make([]*time.Timer, n)
	t := time.Now()
	for i := range v {
		v[i] = time.AfterFunc(time.Duration(1000+r.next()%59000)*time.Millisecond, func() {})
	}
	ins := time.Since(t)
	for _, x := range v {
		x.Stop()
	}
	d := time.Since(t)
	perOp := func(d time.Duration) float64 { return float64(d) / float64(n) }
	return outcome{d, fmt.Sprintf("insert_ns=%.1f cancel_ns=%.1f", perOp(ins), perOp(d-ins))}
}

func timerInsertExpire(n int) outcome {
	r := rng(88172645463325252)
	var wg sync.WaitGroup
	wg.Add(n)
	c0 := cpuNs()
	t := time.Now()
	for i := 0; i < n; i++ {
		ms := 1 + r.next()%100
		go func() {
			time.Sleep(time.Duration(ms) * time.Millisecond)
			wg.Done()
		}()
	}
	wg.Wait()
	d := time.Since(t)
	return outcome{d, fmt.Sprintf("cpu_ns_per_op=%.1f", float64(cpuNs()-c0)/float64(n))}
}

func timeoutReady(n int) outcome {
	t := time.Now()
	for i := 0; i < n; i++ {
		_, c := context.WithTimeout(context.Background(), time.Second)
		c()
	}
	return plain(t)
}
