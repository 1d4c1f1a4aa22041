/* SPDX-License-Identifier: Apache-2.0 */
/* The backends of Linux, the best one first. io_uring is there if the library is built with it. */
#include "io/io.h"

const blz__driver_ops *const blz__backends[] = {
#ifdef BLZ_HAVE_URING
    &blz__uring_driver,
#endif
    &blz__epoll_driver,
    &blz__poll_driver,
    NULL,
};
