// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 server on net/http that answers every request with "Hello, World!".
//
// Usage: gohello PORT [THREADS]     THREADS is GOMAXPROCS
package main

import (
	"net/http"
	"os"
	"runtime"
	"strconv"
)

func main() {
	port, th := "7100", 1
	if len(os.Args) > 1 {
		port = os.Args[1]
	}
	if len(os.Args) > 2 {
		th, _ = strconv.Atoi(os.Args[2])
	}
	runtime.GOMAXPROCS(th)
	body := []byte("Hello, World!")
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write(body)
	})
	panic(http.ListenAndServe("127.0.0.1:"+port, nil))
}
