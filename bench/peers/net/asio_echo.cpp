// SPDX-License-Identifier: Apache-2.0
// TCP echo server on Boost.Asio with C++20 coroutines: one io_context run by all threads.
// Usage: asio_echo PORT [THREADS]
#include <utility>  // Boost 1.74 forgets it
#include <boost/asio.hpp>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using asio::ip::tcp;

static asio::awaitable<void> session(tcp::socket socket)
{
    char buf[1024];
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    try {
        for (;;) {
            size_t n = co_await socket.async_read_some(asio::buffer(buf), asio::use_awaitable);
            co_await async_write(socket, asio::buffer(buf, n), asio::use_awaitable);
        }
    } catch (const std::exception &) {
        // the client has gone
    }
}

static asio::awaitable<void> listener(unsigned short port)
{
    auto executor = co_await asio::this_coro::executor;
    tcp::acceptor acceptor(executor, {asio::ip::address_v4::loopback(), port});
    for (;;) {
        tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
        co_spawn(executor, session(std::move(socket)), asio::detached);
    }
}

int main(int argc, char **argv)
{
    int port = argc > 1 ? atoi(argv[1]) : 7000;
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    asio::io_context io(threads);
    co_spawn(io, listener((unsigned short)port), asio::detached);
    std::vector<std::thread> others;
    for (int i = 1; i < threads; i++) others.emplace_back([&] { io.run(); });
    io.run();
}
