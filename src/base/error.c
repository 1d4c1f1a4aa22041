/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts for errors: one table, the same on every system. A system's own texts say what an error
 * means to the system: to it a timeout is that of a connection, and a bad handle the number of a
 * file. These hold for what the library means as well.
 */
#include <blitz/error.h>
#include <stddef.h>

static const struct {
    int error;
    const char *text;
} texts[] = {
    {E2BIG, "Argument list too long"},
    {EACCES, "Permission denied"},
    {EADDRINUSE, "Address already in use"},
    {EADDRNOTAVAIL, "Address not available on this machine"},
    {EAFNOSUPPORT, "Address family not supported"},
    {EAGAIN, "Not ready now, try again"},
    {EALREADY, "Already in progress"},
    {EBADF, "Bad handle or descriptor: it is closed, or was never open"},
    {EBADMSG, "Bad message"},
    {EBUSY, "Busy: in use by another operation"},
    {ECANCELED, "Operation canceled"},
    {ECHILD, "No such child process"},
    {ECONNABORTED, "Connection aborted"},
    {ECONNREFUSED, "Connection refused"},
    {ECONNRESET, "Connection reset by peer"},
    {EDEADLK, "Would wait for itself"},
    {EDESTADDRREQ, "Destination address required"},
    {EDOM, "Argument out of the domain"},
    {EDQUOT, "Disk quota exceeded"},
    {EEXIST, "File exists"},
    {EFAULT, "Bad address"},
    {EFBIG, "File too large"},
    {EHOSTDOWN, "Host is down"},
    {EHOSTUNREACH, "No route to host"},
    {EILSEQ, "Invalid sequence of bytes"},
    {EINPROGRESS, "Now in progress"},
    {EINTR, "Interrupted by a signal"},
    {EINVAL, "Invalid argument"},
    {EIO, "Input/output error"},
    {EISCONN, "Already connected"},
    {EISDIR, "Is a directory"},
    {ELOOP, "Too many symbolic links"},
    {EMFILE, "Too many open files in this process"},
    {EMLINK, "Too many links"},
    {EMSGSIZE, "Message too long"},
    {ENAMETOOLONG, "Name too long"},
    {ENETDOWN, "Network is down"},
    {ENETRESET, "Connection reset by the network"},
    {ENETUNREACH, "Network is unreachable"},
    {ENFILE, "Too many open files in the system"},
    {ENOBUFS, "No buffer space"},
    {ENODATA, "No data, or less than was asked for"},
    {ENODEV, "No such device"},
    {ENOENT, "No such file or directory"},
    {ENOEXEC, "Not an executable file"},
    {ENOLCK, "No locks available"},
    {ENOMEM, "Out of memory"},
    {ENONET, "No such host"},
    {ENOPROTOOPT, "Option not available"},
    {ENOSPC, "No space left on device"},
    {ENOSYS, "Function not implemented"},
    {ENOTBLK, "Not a block device"},
    {ENOTCONN, "Not connected"},
    {ENOTDIR, "Not a directory"},
    {ENOTEMPTY, "Directory not empty"},
    {ENOTRECOVERABLE, "State not recoverable"},
    {ENOTSOCK, "Not a socket"},
    {ENOTSUP, "Not supported here"},
    {ENOTTY, "Not a terminal"},
    {ENXIO, "No runtime on this thread, or no such device or reader"},
    {EOVERFLOW, "Too many, or too large a value"},
    {EOWNERDEAD, "Belongs to the parent process"},
    {EPERM, "Not permitted"},
    {EPFNOSUPPORT, "Protocol family not supported"},
    {EPIPE, "Closed at the other end"},
    {EPROTO, "Protocol error"},
    {EPROTONOSUPPORT, "Unknown service or protocol"},
    {EPROTOTYPE, "Wrong type of protocol for this socket"},
    {ERANGE, "Result out of range"},
    {EREMOTEIO, "Failure of the name server, or of another machine"},
    {EROFS, "File system is read-only"},
    {ESHUTDOWN, "Shutting down"},
    {ESOCKTNOSUPPORT, "Type of socket not supported"},
    {ESPIPE, "Cannot seek"},
    {ESRCH, "No such process"},
    {ESTALE, "Stale file handle"},
    {ETIME, "Time ran out"},
    {ETIMEDOUT, "Timed out"},
    {ETOOMANYREFS, "Too many references"},
    {ETXTBSY, "Program file is busy"},
    {EUSERS, "Too many users"},
    {EXDEV, "Belongs to another runtime, or to another file system"},
#if EOPNOTSUPP != ENOTSUP
    {EOPNOTSUPP, "Not supported here"}, /* in programs' own results */
#endif
#if EWOULDBLOCK != EAGAIN
    {EWOULDBLOCK, "Not ready now, try again"},
#endif
};

const char *blz_strerror(int64_t error)
{
    if (error >= 0)
        return "success";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (error == -texts[i].error)
            return texts[i].text;
    return "unknown error";
}
