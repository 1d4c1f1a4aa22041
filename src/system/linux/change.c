/* SPDX-License-Identifier: Apache-2.0 */
/* Changes by inotify(7). A batch is a row of struct inotify_event, each with its name. */
#include "system/change.h"

#include "system/posix/retry.h"

#include <limits.h>
#include <sys/inotify.h>
#include <unistd.h>

_Static_assert(CHANGE_BATCH >= sizeof(struct inotify_event) + NAME_MAX + 1, "one change fits");
_Static_assert(_Alignof(struct inotify_event) <= CHANGE_BATCH_ALIGN, "a batch is aligned");

static const struct {
    uint32_t ours, system;
} event_words[] = {
    {BLZ_FS_MODIFIED, IN_MODIFY},
    {BLZ_FS_WRITTEN, IN_CLOSE_WRITE},
    {BLZ_FS_ATTRIBUTES, IN_ATTRIB},
    {BLZ_FS_CREATED, IN_CREATE},
    {BLZ_FS_REMOVED, IN_DELETE | IN_DELETE_SELF},
    {BLZ_FS_MOVED_FROM, IN_MOVED_FROM},
    {BLZ_FS_MOVED_TO, IN_MOVED_TO | IN_MOVE_SELF},
};

enum { NR_EVENT_WORDS = sizeof event_words / sizeof *event_words };

static uint32_t events_to_system(uint32_t ours)
{
    uint32_t mask = 0;

    for (int i = 0; i < NR_EVENT_WORDS; i++)
        mask |= ours & event_words[i].ours ? event_words[i].system : 0;
    return mask;
}

static uint32_t events_from_system(uint32_t mask)
{
    uint32_t ours = mask & IN_ISDIR ? BLZ_FS_OF_DIRECTORY : 0;

    for (int i = 0; i < NR_EVENT_WORDS; i++)
        ours |= mask & event_words[i].system ? event_words[i].ours : 0;
    ours |= mask & (IN_IGNORED | IN_UNMOUNT) ? BLZ_FS_GONE : 0;
    return ours | (mask & IN_Q_OVERFLOW ? BLZ_FS_OVERFLOW : 0);
}

uint32_t blz__change_events(void)
{
    return BLZ_FS_ALL;
}

int64_t blz__change_open(void)
{
    return sys_count(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
}

int64_t blz__change_add(blz_sysfd fd, const char *path, uint32_t events)
{
    int id;

    SYS_RETRY(id, inotify_add_watch(fd, path, events_to_system(events)));
    return sys_count(id);
}

int blz__change_remove(blz_sysfd fd, int id)
{
    int rc;

    SYS_RETRY(rc, inotify_rm_watch(fd, id));
    return rc < 0 && errno == EINVAL ? -ENOENT : sys_result(rc);
}

int64_t blz__change_fetch(blz_sysfd fd, void *batch, size_t size)
{
    ssize_t n;

    SYS_RETRY(n, read(fd, batch, size));
    return sys_count(n);
}

bool blz__change_take(const void *batch, size_t len, size_t *used, blz_fs_change *change)
{
    const struct inotify_event *e = (const void *)((const char *)batch + *used);

    if (*used >= len)
        return false;
    *used += sizeof *e + e->len;
    *change = (blz_fs_change){.id = e->wd,
                              .events = events_from_system(e->mask),
                              .cookie = e->cookie,
                              .name = e->len > 0 ? e->name : ""};
    return true;
}
