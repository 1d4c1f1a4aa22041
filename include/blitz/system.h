/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between operating systems in the public headers. No other public header names a
 * system.
 *
 *     blz_sysfd fd = accept(listener, NULL, NULL);
 *     self->rc = blz_tcp_from_fd(&self->conn, fd, NULL);
 */
#ifndef BLITZ_SYSTEM_H
#define BLITZ_SYSTEM_H

#include <stdint.h>

/* Around the prototypes of a header: functions of C. */
#ifdef __cplusplus
#define BLZ_BEGIN_DECLS extern "C" {
#define BLZ_END_DECLS   }
#else
#define BLZ_BEGIN_DECLS
#define BLZ_END_DECLS
#endif

/*
 * What the library exports. On Windows a program that links the static library defines BLZ_STATIC.
 */
#if !defined(_WIN32)
#define BLZ_API __attribute__((visibility("default")))
#elif defined(BLZ_BUILDING_DLL)
#define BLZ_API __declspec(dllexport)
#elif defined(BLZ_STATIC)
#define BLZ_API
#else
#define BLZ_API __declspec(dllimport)
#endif

/* A descriptor of the system: a socket, pipe or file. On Windows a SOCKET or a HANDLE. */
#if defined(_WIN32)
typedef intptr_t blz_sysfd;
#else
typedef int blz_sysfd;
#endif

/* No descriptor. */
#define BLZ_NO_SYSFD ((blz_sysfd)-1)

/* Bytes that an operation (blz_io) has for the system's own use: an OVERLAPPED on Windows. */
#if defined(_WIN32)
#define BLZ_IO_SYSTEM_BYTES 64
#else
#define BLZ_IO_SYSTEM_BYTES 0
#endif

#endif
