/* SPDX-License-Identifier: Apache-2.0 */
/* Blitz: all public headers. */
#ifndef BLITZ_H
#define BLITZ_H

#include <blitz/addr.h>
#include <blitz/async.h>
#include <blitz/barrier.h>
#include <blitz/base.h>
#include <blitz/blocking.h>
#include <blitz/broadcast.h>
#include <blitz/bufio.h>
#include <blitz/channel.h>
#include <blitz/codec.h>
#include <blitz/combine.h>
#include <blitz/connect.h>
#include <blitz/copy.h>
#include <blitz/dns.h>
#include <blitz/fd.h>
#include <blitz/file.h>
#include <blitz/frames.h>
#include <blitz/fs.h>
#include <blitz/future.h>
#include <blitz/io.h>
#include <blitz/mutex.h>
#include <blitz/notify.h>
#include <blitz/once.h>
#include <blitz/oneshot.h>
#include <blitz/par.h>
#include <blitz/par_find.h>
#include <blitz/par_for.h>
#include <blitz/par_reduce.h>
#include <blitz/par_run.h>
#include <blitz/par_scan.h>
#include <blitz/pipe.h>
#include <blitz/process.h>
#include <blitz/runtime.h>
#include <blitz/rwlock.h>
#include <blitz/semaphore.h>
#include <blitz/shutdown.h>
#include <blitz/signal.h>
#include <blitz/socket.h>
#include <blitz/stats.h>
#include <blitz/stdio.h>
#include <blitz/stream.h>
#include <blitz/task.h>
#include <blitz/tcp.h>
#include <blitz/time.h>
#include <blitz/token.h>
#include <blitz/udp.h>
#include <blitz/unix.h>
#include <blitz/version.h>
#include <blitz/wait_group.h>
#include <blitz/waiter.h>
#include <blitz/waker.h>
#include <blitz/watch.h>

#endif
