/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for errors, without the buffers of strerror. */
#include <blitz/base.h>

#include <string.h>

const char *blz_strerror(int error)
{
    const char *text = error >= 0 ? "success" : strerrordesc_np(-error);
    return text ? text : "unknown error";
}
