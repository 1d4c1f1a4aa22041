/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for growth, as docs/versioning.md promises it: structs that programs embed or fill have
 * reserved words, and those that sit in frames by the thousand are no larger than they have to be.
 * The compiler checks all of this.
 */
#include "harness.h"

#include <blitz.h>

/* The struct has a member `reserved`, behind all others. */
#define HAS_ROOM(type)                                                                         \
    _Static_assert(offsetof(type, reserved) + sizeof(((type *)0)->reserved) + _Alignof(type) > \
                       sizeof(type),                                                           \
                   #type ": the reserved words are not at its end")

/* What programs fill. */
HAS_ROOM(blz_allocator);
HAS_ROOM(blz_future_ops);
HAS_ROOM(blz_waker_ops);
HAS_ROOM(blz_spawn_args);
HAS_ROOM(blz_local);
HAS_ROOM(blz_resolver);
HAS_ROOM(blz_par_reducer);
HAS_ROOM(blz_options);
HAS_ROOM(blz_trace_options);
HAS_ROOM(blz_console_options);
HAS_ROOM(blz_shutdown_options);
HAS_ROOM(blz_channel_options);
HAS_ROOM(blz_broadcast_options);
HAS_ROOM(blz_open_options);
HAS_ROOM(blz_copy_options);
HAS_ROOM(blz_lines_options);
HAS_ROOM(blz_length_options);
HAS_ROOM(blz_delimiter_options);
HAS_ROOM(blz_tcp_options);
HAS_ROOM(blz_udp_options);
HAS_ROOM(blz_pool_options);
HAS_ROOM(blz_par_options);
HAS_ROOM(blz_lookup_hints);

/* What the library fills in memory of the program. */
HAS_ROOM(blz_stats);
HAS_ROOM(blz_worker_stats);
HAS_ROOM(blz_histogram);
HAS_ROOM(blz_par_stats);
HAS_ROOM(blz_stuck);
HAS_ROOM(blz_signal_info);
HAS_ROOM(blz_metadata);
HAS_ROOM(blz_dir_entry);
HAS_ROOM(blz_fs_change);
HAS_ROOM(blz_fdset_event);
HAS_ROOM(blz_unix_cred);
HAS_ROOM(blz_datagram);
HAS_ROOM(blz_cut);
HAS_ROOM(blz_shutdown_step);
HAS_ROOM(blz_shutdown_report);
HAS_ROOM(blz_trace_summary);

/* Operations and objects in frames. */
HAS_ROOM(blz_oneshot);
HAS_ROOM(blz_oneshot_op);
HAS_ROOM(blz_once);
HAS_ROOM(blz_once_op);
HAS_ROOM(blz_wait_group);
HAS_ROOM(blz_wait_group_op);
HAS_ROOM(blz_notify_op);
HAS_ROOM(blz_barrier_op);
HAS_ROOM(blz_mutex_op);
HAS_ROOM(blz_rwlock_op);
HAS_ROOM(blz_semaphore_op);
HAS_ROOM(blz_channel_op);
HAS_ROOM(blz_broadcast_op);
HAS_ROOM(blz_watch_op);
HAS_ROOM(blz_token_op);
HAS_ROOM(blz_token_callback);
HAS_ROOM(blz_handle_join_op);
HAS_ROOM(blz_box);
HAS_ROOM(blz_fd_op);
HAS_ROOM(blz_file_lock_op);
HAS_ROOM(blz_record_op);
HAS_ROOM(blz_interval);
HAS_ROOM(blz_par_per_thread);

/* The sizes of what there are thousands of, where pointers have eight bytes. */
#define SIZE(type, size) \
    _Static_assert(sizeof(void *) != 8 || sizeof(type) == (size), #type " is not " #size " bytes")

SIZE(blz_future, 32);
SIZE(blz_waker, 16);
SIZE(blz_waiter, 40);
SIZE(blz_mutex, 32);
SIZE(blz_rwlock, 32);
SIZE(blz_semaphore, 32);
SIZE(blz_wait_group, 32);
SIZE(blz_notify, 32);
SIZE(blz_once, 56);
SIZE(blz_oneshot, 56);
SIZE(blz_timer, 64);
SIZE(blz_sleep_op, 96);
SIZE(blz_mutex_op, 88);
SIZE(blz_channel_op, 96);
SIZE(blz_io, 152);
SIZE(blz_tcp, 16);
SIZE(blz_handle, 16);
SIZE(blz_par_job, 40);

/* Reserved words that are not zero would be options of a later version: nothing may set them. */
static void initialisers_leave_reserved_words_zero(void **state)
{
    blz_once once = BLZ_ONCE_INIT;
    blz_oneshot oneshot = BLZ_ONESHOT_INIT;
    blz_wait_group group = BLZ_WAIT_GROUP_INIT;

    (void)state;
    assert_int_equal(once.reserved, 0);
    assert_int_equal(oneshot.reserved, 0);
    assert_int_equal(group.reserved, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(initialisers_leave_reserved_words_zero),
    };
    return RUN_TESTS(tests);
}
