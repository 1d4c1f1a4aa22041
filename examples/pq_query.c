/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a PostgreSQL server, with libpq and without blocking: every query in a task and on a
 * connection of its own, all at the same time. Prints the rows of each as they come.
 *
 *     pq_query CONNINFO QUERY...
 *     pq_query 'hostaddr=127.0.0.1 user=me dbname=test' 'select 1' 'select pg_sleep(1), 2'
 *
 * libpq does its own system calls, on one socket, and says what to wait for. While it connects it
 * may close that socket and open another one (it tries several servers, or once more without TLS),
 * so the socket is borrowed for one wait at a time. Give hostaddr, not host, to a program that must
 * not block: libpq looks up names by itself.
 */
#include <blitz.h>
#include <libpq-fe.h>
#include <stdio.h>

enum { CONNECT_SECONDS = 10 };

struct query {
    BLZ_FRAME;
    const char *conninfo, *text;
    PGconn *pg;
    PGresult *result;
    int64_t deadline_ns;
    int64_t rc;
    blz_fd fd;
    blz_io io;
    blz_timeout limit;
};

/* ---- waiting ---- */

/* Waits once for the socket that the connection has right now: what is ready. */
struct wait {
    BLZ_FRAME;
    struct query *query;
    unsigned events;
    int64_t rc;
};

BLZ_ASYNC(wait)
{
    BLZ_BEGIN;
    self->rc = blz_fd_attach(&self->query->fd, PQsocket(self->query->pg));
    if (self->rc >= 0) {
        BLZ_AWAIT(self->rc, blz_with_deadline(&self->query->limit, self->query->deadline_ns,
                                              blz_fd_ready(&self->query->io, &self->query->fd,
                                                           self->events)));
        blz_fd_detach(&self->query->fd);
    }
    BLZ_END(self->rc);
}

/* ---- connecting, sending, receiving ---- */

struct connect {
    BLZ_FRAME;
    struct query *query;
    PostgresPollingStatusType state;
    int64_t rc;
    struct wait wait;
};

BLZ_ASYNC(connect)
{
    BLZ_BEGIN;
    self->query->deadline_ns = blz_deadline(CONNECT_SECONDS * BLZ_SEC);
    self->query->pg = PQconnectStart(self->query->conninfo);
    if (!self->query->pg)
        self->rc = -ENOMEM;
    else if (PQstatus(self->query->pg) == CONNECTION_BAD)
        self->rc = -ECONNREFUSED;
    self->state = PGRES_POLLING_WRITING;
    while (self->rc >= 0 && self->state != PGRES_POLLING_OK) {
        BLZ_CALL(self->rc, self->wait, wait, .query = self->query,
                 .events = self->state == PGRES_POLLING_READING ? BLZ_FD_READ : BLZ_FD_WRITE);
        if (self->rc >= 0)
            self->state = PQconnectPoll(self->query->pg);
        if (self->state == PGRES_POLLING_FAILED)
            self->rc = -ECONNREFUSED;
    }
    if (self->rc >= 0)
        PQsetnonblocking(self->query->pg, 1);
    self->query->deadline_ns = BLZ_NEVER;
    BLZ_END(self->rc);
}

/* Sends what is still to be sent, taking in what comes, so that both sides cannot get stuck. */
struct flush {
    BLZ_FRAME;
    struct query *query;
    int64_t rc;
    struct wait wait;
};

BLZ_ASYNC(flush)
{
    int left;

    BLZ_BEGIN;
    while (self->rc >= 0 && (left = PQflush(self->query->pg)) != 0) {
        if (left < 0) {
            self->rc = -EIO;
            break;
        }
        BLZ_CALL(self->rc, self->wait, wait, .query = self->query,
                 .events = BLZ_FD_READ | BLZ_FD_WRITE);
        if (self->rc >= 0 && (self->rc & BLZ_FD_READ) && !PQconsumeInput(self->query->pg))
            self->rc = -EIO;
    }
    BLZ_END(self->rc);
}

/* The next result, or NULL at the end, in query->result. */
struct receive {
    BLZ_FRAME;
    struct query *query;
    int64_t rc;
    struct wait wait;
};

BLZ_ASYNC(receive)
{
    BLZ_BEGIN;
    while (self->rc >= 0 && PQisBusy(self->query->pg)) {
        BLZ_CALL(self->rc, self->wait, wait, .query = self->query, .events = BLZ_FD_READ);
        if (self->rc >= 0 && !PQconsumeInput(self->query->pg))
            self->rc = -EIO;
    }
    if (self->rc >= 0)
        self->query->result = PQgetResult(self->query->pg);
    BLZ_END(self->rc);
}

/* ---- a query ---- */

static int print_result(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        fprintf(stderr, "%s", PQresultErrorMessage(result));
        return -EBADMSG;
    }
    for (int row = 0; row < PQntuples(result); row++)
        for (int column = 0; column < PQnfields(result); column++)
            printf("%s%c", PQgetvalue(result, row, column),
                   column + 1 < PQnfields(result) ? '\t' : '\n');
    fflush(stdout);
    return 0;
}

struct ask {
    BLZ_FRAME;
    struct query query;
    int64_t rc, failed;
    union { /* one after the other */
        struct connect connect;
        struct flush flush;
        struct receive receive;
    } call;
};

BLZ_ASYNC(ask)
{
    BLZ_BEGIN;
    BLZ_CALL(self->rc, self->call.connect, connect, .query = &self->query);
    if (self->rc >= 0 && !PQsendQuery(self->query.pg, self->query.text))
        self->rc = -EIO;
    if (self->rc >= 0)
        BLZ_CALL(self->rc, self->call.flush, flush, .query = &self->query);
    while (self->rc >= 0) {
        BLZ_CALL(self->rc, self->call.receive, receive, .query = &self->query);
        if (self->rc < 0 || !self->query.result)
            break;
        if (print_result(self->query.result) < 0)
            self->failed = -EBADMSG; /* and there may be more results */
        PQclear(self->query.result);
    }
    if (self->rc < 0 && self->query.pg && *PQerrorMessage(self->query.pg))
        fprintf(stderr, "%s", PQerrorMessage(self->query.pg));
    PQfinish(self->query.pg);
    BLZ_END(self->rc < 0 ? self->rc : self->failed);
}

struct ask_all {
    BLZ_FRAME;
    const char *conninfo;
    char **texts;
    int64_t rc, failed;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(ask_all)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (; *self->texts && self->failed == 0; self->texts++)
        self->failed = BLZ_SCOPE_SPAWN(&self->scope, ask,
                                       .query = {.conninfo = self->conninfo, .text = *self->texts});
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->failed < 0 ? self->failed : self->rc);
}

int main(int argc, char **argv)
{
    int64_t rc;

    if (argc < 3) {
        fprintf(stderr, "usage: pq_query CONNINFO QUERY...\n");
        return 2;
    }
    rc = BLZ_RUN(ask_all, .conninfo = argv[1], .texts = argv + 2);
    if (rc < 0)
        fprintf(stderr, "pq_query: %s\n", blz_strerror(rc));
    return rc < 0;
}
