/* SPDX-License-Identifier: Apache-2.0 */
/* Words that the kernel clears in forked children. */
#include "system/fork.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The kernel clears the word in a child (MADV_WIPEONFORK, Linux 4.14), however the child was made.
 * Some systems do not know that, others say yes and do nothing; so fork() clears it, too. What it
 * needs for that is on a second page, which stays.
 */
struct fork_word {
    uint32_t *word;
    struct fork_word *next, **link;
};

enum { MAX_IN_CHILD = 8 };

static struct {
    pthread_mutex_t mutex;
    struct fork_word *first;
    bool watched;
    void (*in_child[MAX_IN_CHILD])(void);
} forks = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void before_fork(void)
{
    pthread_mutex_lock(&forks.mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&forks.mutex);
}

static void after_fork_in_child(void)
{
    for (struct fork_word *at = forks.first; at; at = at->next)
        *at->word = 0;
    pthread_mutex_unlock(&forks.mutex);
    for (int i = 0; i < MAX_IN_CHILD && forks.in_child[i]; i++)
        forks.in_child[i]();
}

static void watch_fork(void)
{
    forks.watched = pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0;
}

static void watch_fork_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_fork);
}

int blz__fork_in_child(void (*fn)(void))
{
    bool listed;
    int i = 0;

    watch_fork_once();
    pthread_mutex_lock(&forks.mutex);
    while (i < MAX_IN_CHILD && forks.in_child[i] && forks.in_child[i] != fn)
        i++;
    listed = forks.watched && i < MAX_IN_CHILD;
    if (listed)
        forks.in_child[i] = fn;
    pthread_mutex_unlock(&forks.mutex);
    return listed ? 0 : -ENOMEM;
}

/* False: fork() cannot be watched. */
static bool list_word(struct fork_word *at)
{
    watch_fork_once();
    pthread_mutex_lock(&forks.mutex);
    if (forks.watched) {
        at->next = forks.first;
        at->link = &forks.first;
        if (at->next)
            at->next->link = &at->next;
        forks.first = at;
    }
    pthread_mutex_unlock(&forks.mutex);
    return forks.watched;
}

static struct fork_word *entry_of(uint32_t *word)
{
    return (struct fork_word *)(void *)((char *)word + page_size());
}

uint32_t *blz__fork_word_new(void)
{
    uint32_t *word =
        mmap(NULL, 2 * page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool wiped, listed;

    if (word == MAP_FAILED)
        return NULL;
    entry_of(word)->word = word;
    wiped = madvise(word, page_size(), MADV_WIPEONFORK) == 0;
    listed = list_word(entry_of(word));
    if (!wiped && !listed) {
        munmap(word, 2 * page_size());
        return NULL;
    }
    *word = 1;
    return word;
}

void blz__fork_word_free(uint32_t *word)
{
    struct fork_word *at;

    if (!word)
        return;
    at = entry_of(word);
    pthread_mutex_lock(&forks.mutex);
    if (at->link)
        *at->link = at->next;
    if (at->next)
        at->next->link = at->link;
    pthread_mutex_unlock(&forks.mutex);
    munmap(word, 2 * page_size());
}
