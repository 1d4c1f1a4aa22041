/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for errors, without the buffers of strerror. */
#include <blitz/base.h>

#include <limits.h>
#include <string.h>

const char *blz_strerror(int error)
{
    const char *text;

    if (error >= 0)
        return "success";
    text = error >= -INT_MAX ? strerrordesc_np(-error) : NULL;
    return text ? text : "unknown error";
}
