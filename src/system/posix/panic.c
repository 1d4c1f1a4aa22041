/* SPDX-License-Identifier: Apache-2.0 */
/* The last words of a program, by write(2). */
#include "system/panic.h"

#include <errno.h>
#include <unistd.h>

void blz__panic_write(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, text, len);
        if (n < 0 && errno != EINTR)
            return;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
}
