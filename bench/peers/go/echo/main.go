// SPDX-License-Identifier: Apache-2.0
// TCP echo server: a goroutine a connection, each with a 1 KiB buffer.
//
// Usage: goecho PORT [THREADS]     THREADS is GOMAXPROCS
package main

import (
	"net"
	"os"
	"runtime"
	"strconv"
)

func main() {
	port, th := "7000", 1
	if len(os.Args) > 1 {
		port = os.Args[1]
	}
	if len(os.Args) > 2 {
		th, _ = strconv.Atoi(os.Args[2])
	}
	runtime.GOMAXPROCS(th)
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		panic(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			continue
		}
		go func() {
			defer c.Close()
			var buf [1024]byte
			for {
				n, err := c.Read(buf[:])
				if err != nil {
					return
				}
				if _, err = c.Write(buf[:n]); err != nil {
					return
				}
			}
		}()
	}
}
