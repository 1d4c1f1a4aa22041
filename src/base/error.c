/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts for errors, without the buffers of strerror. The system's texts say what an error means to
 * the system: a timeout is that of a connection, a bad handle is a number of a file. Those that
 * Blitz gives for reasons of its own have texts here that hold for both. All others are the
 * system's.
 */
#include <blitz/base.h>

#include <errno.h>
#include <limits.h>
#include <string.h>

static const struct {
    int error;
    const char *text;
} own_texts[] = {
    {EAGAIN, "Not ready now, try again"},
    {EBADF, "Bad handle or descriptor: it is closed, or was never open"},
    {EBUSY, "Busy: in use by another operation"},
    {ECANCELED, "Operation canceled"},
    {EDEADLK, "Would wait for itself"},
    {ENODATA, "No data, or less than was asked for"},
    {ENONET, "No such host"},
    {ENOTSUP, "Not supported here"},
    {ENXIO, "No runtime on this thread, or no such device or reader"},
    {EOVERFLOW, "Too many, or too large a value"},
    {EOWNERDEAD, "Belongs to the parent process"},
    {EPIPE, "Closed at the other end"},
    {EPROTONOSUPPORT, "Unknown service or protocol"},
    {EREMOTEIO, "Failure of the name server, or of another machine"},
    {ESHUTDOWN, "Shutting down"},
    {ETIMEDOUT, "Timed out"},
    {EXDEV, "Belongs to another runtime, or to another file system"},
};

static const char *own_text(int error)
{
    for (size_t i = 0; i < sizeof own_texts / sizeof *own_texts; i++)
        if (own_texts[i].error == error)
            return own_texts[i].text;
    return NULL;
}

const char *blz_strerror(int error)
{
    const char *text;

    if (error >= 0)
        return "success";
    if (error < -INT_MAX)
        return "unknown error";
    text = own_text(-error);
    if (!text)
        text = strerrordesc_np(-error);
    return text ? text : "unknown error";
}
