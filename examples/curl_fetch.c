/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches URLs with libcurl, all at the same time, in one task.
 *
 *     curl_fetch URL...
 *
 * libcurl does its own system calls. In callbacks it says which sockets it wants to hear of, and
 * when it wants to be called at the latest; that is what a blz_fdset is for. All calls into libcurl
 * are made by the task that owns it, so nothing needs a lock, whatever thread the task runs on.
 */
#include <blitz.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_CONNECTIONS = 50 };

struct transfer {
    const char *url;
    CURL *easy;
    uint64_t bytes;
};

struct fetch {
    BLZ_FRAME;
    char **urls;
    CURLM *multi;
    blz_fdset set;
    int64_t deadline_ns; /* when libcurl wants to be called at the latest */
    int running;         /* transfers */
    int64_t failed;
    int64_t rc, closed;
    blz_fdset_ready_op wait;
};

/* ---- what libcurl calls ---- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *fetch, void *socket)
{
    struct fetch *self = fetch;
    unsigned events = 0;

    (void)easy, (void)socket;
    if (what == CURL_POLL_REMOVE) { /* it is about to close it; the number may come back at once */
        blz_fdset_remove(&self->set, fd);
        return 0;
    }
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        events |= BLZ_FD_READ;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        events |= BLZ_FD_WRITE;
    return blz_fdset_set(&self->set, fd, events, NULL) < 0 ? -1 : 0;
}

static int on_timer(CURLM *multi, long ms, void *fetch)
{
    struct fetch *self = fetch;

    (void)multi;
    self->deadline_ns = ms < 0 ? BLZ_NEVER : blz_deadline(ms * BLZ_MSEC);
    return 0;
}

static size_t on_data(char *data, size_t size, size_t count, void *transfer)
{
    (void)data; /* a program would keep it */
    ((struct transfer *)transfer)->bytes += size * count;
    return size * count;
}

/* ---- transfers ---- */

static int add_transfer(struct fetch *self, const char *url)
{
    struct transfer *t = calloc(1, sizeof *t);

    if (!t)
        return -ENOMEM;
    t->url = url;
    t->easy = curl_easy_init();
    if (!t->easy) {
        free(t);
        return -ENOMEM;
    }
    curl_easy_setopt(t->easy, CURLOPT_URL, url);
    curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
    curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L); /* there are threads */
    curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT, 10L);
    curl_multi_add_handle(self->multi, t->easy);
    return 0;
}

static void end_transfer(struct fetch *self, CURL *easy, CURLcode result)
{
    struct transfer *t;
    long status = 0;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (result == CURLE_OK)
        printf("%s: status %ld, %llu bytes\n", t->url, status, (unsigned long long)t->bytes);
    else
        printf("%s: %s\n", t->url, curl_easy_strerror(result));
    self->failed += result != CURLE_OK || status >= 400;
    curl_multi_remove_handle(self->multi, easy);
    curl_easy_cleanup(easy);
    free(t);
}

static void report(struct fetch *self)
{
    CURLMsg *msg;
    int left;

    while ((msg = curl_multi_info_read(self->multi, &left)))
        if (msg->msg == CURLMSG_DONE)
            end_transfer(self, msg->easy_handle, msg->data.result);
}

/* ---- the task ---- */

static int begin(struct fetch *self)
{
    int rc = 0;

    self->deadline_ns = BLZ_NEVER;
    self->multi = curl_multi_init();
    if (!self->multi)
        return -ENOMEM;
    curl_multi_setopt(self->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(self->multi, CURLMOPT_SOCKETDATA, self);
    curl_multi_setopt(self->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(self->multi, CURLMOPT_TIMERDATA, self);
    curl_multi_setopt(self->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)MAX_CONNECTIONS);
    for (; *self->urls && rc == 0; self->urls++) {
        rc = add_transfer(self, *self->urls);
        self->running += rc == 0;
    }
    return rc;
}

static void step(struct fetch *self)
{
    blz_fdset_event event;

    while (blz_fdset_next(&self->set, &event)) {
        int what = (event.events & BLZ_FD_READ ? CURL_CSELECT_IN : 0) |
                   (event.events & BLZ_FD_WRITE ? CURL_CSELECT_OUT : 0) |
                   (event.events & (BLZ_FD_ERR | BLZ_FD_HUP) ? CURL_CSELECT_ERR : 0);
        curl_multi_socket_action(self->multi, event.fd, what, &self->running);
    }
    if (blz_now() >= self->deadline_ns) {
        self->deadline_ns = BLZ_NEVER; /* unless it sets another one */
        curl_multi_socket_action(self->multi, CURL_SOCKET_TIMEOUT, 0, &self->running);
    }
    report(self);
}

BLZ_ASYNC(fetch)
{
    BLZ_BEGIN;
    self->rc = begin(self);
    while (self->rc >= 0 && self->running > 0) {
        BLZ_AWAIT(self->rc, blz_fdset_ready(&self->wait, &self->set, self->deadline_ns));
        if (self->rc >= 0)
            step(self);
    }
    if (self->multi)
        curl_multi_cleanup(self->multi); /* closes connections that were kept, and says so */
    BLZ_AWAIT(self->closed, blz_fdset_close(&self->wait, &self->set));
    BLZ_END(self->rc < 0 ? self->rc : self->failed);
}

int main(int argc, char **argv)
{
    int64_t rc;

    if (argc < 2) {
        fprintf(stderr, "usage: curl_fetch URL...\n");
        return 2;
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    rc = BLZ_RUN(fetch, .urls = argv + 1);
    curl_global_cleanup();
    if (rc < 0)
        fprintf(stderr, "curl_fetch: %s\n", blz_strerror(rc));
    return rc != 0;
}
