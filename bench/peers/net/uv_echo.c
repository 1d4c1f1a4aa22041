// SPDX-License-Identifier: Apache-2.0
// TCP echo server on libuv, one thread: uv_read_start into one shared buffer, uv_try_write back.
// Usage: uv_echo PORT
#include <stdlib.h>
#include <uv.h>

static char g_buffer[1024];

static void on_close(uv_handle_t *handle)
{
    free(handle);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf)
{
    (void)handle;
    (void)hint;
    *buf = uv_buf_init(g_buffer, sizeof g_buffer);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    if (n == 0)
        return;
    uv_buf_t out = uv_buf_init(buf->base, n > 0 ? (unsigned)n : 0);
    if (n < 0 || uv_try_write(stream, &out, 1) != n)
        uv_close((uv_handle_t *)stream, on_close);
}

static void on_connection(uv_stream_t *listener, int status)
{
    if (status)
        return;
    uv_tcp_t *client = malloc(sizeof *client);
    uv_tcp_init(listener->loop, client);
    if (uv_accept(listener, (uv_stream_t *)client)) {
        uv_close((uv_handle_t *)client, on_close);
        return;
    }
    uv_tcp_nodelay(client, 1);
    uv_read_start((uv_stream_t *)client, on_alloc, on_read);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    uv_tcp_t listener;
    struct sockaddr_in addr;
    uv_ip4_addr("127.0.0.1", argc > 1 ? atoi(argv[1]) : 7000, &addr);
    uv_tcp_init(loop, &listener);
    uv_tcp_bind(&listener, (struct sockaddr *)&addr, 0);
    if (uv_listen((uv_stream_t *)&listener, 4096, on_connection))
        return 1;
    return uv_run(loop, UV_RUN_DEFAULT);
}
