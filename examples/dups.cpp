// SPDX-License-Identifier: Apache-2.0
//
// Finds files that have the same content, in C++17.
//
//     dups ~/pictures /mnt/backup
//
// Prints groups of equal files, the largest first, with an empty line between two groups.
//
// The async macros are C only, but calls are not: reading a file blocks, so each file is read by a
// function on the runtime's blocking pool, many at the same time, and the main thread waits for all
// of them. `call` below is such a call as a C++ object, with a lambda. An exception must not pass
// through the library, which is C: it is caught where the library calls the lambda, and thrown
// again where the call is waited for.
#include <algorithm>
#include <array>
#include <blitz.h>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace fs = std::filesystem;

// ---- the library, for C++ ----

[[noreturn]] static void fail(int64_t rc, const std::string &what)
{
    throw std::system_error(static_cast<int>(-rc), std::generic_category(), what);
}

class runtime {
  public:
    explicit runtime(const blz_options &options)
    {
        int rc = blz_rt_new(&rt_, &options);
        if (rc < 0)
            fail(rc, "runtime");
    }
    ~runtime()
    {
        blz_ignore(blz_rt_free(rt_));
    }
    runtime(const runtime &) = delete;
    runtime &operator=(const runtime &) = delete;
    blz_rt *get() const
    {
        return rt_;
    }

  private:
    blz_rt *rt_ = nullptr;
};

// A function that runs on the blocking pool from now on. Stays where it is: the library has its
// address. Must be waited for; the destructor does, if need be.
template <class F> class call {
  public:
    call(const runtime &rt, F fn) : fn_(std::move(fn))
    {
        int rc = blz_blocking_start(&op_, run, this, rt.get());
        if (rc < 0)
            fail(rc, "blocking call");
        started_ = true;
    }
    ~call()
    {
        if (started_)
            (void)blz_blocking_wait(&op_);
    }
    call(const call &) = delete;
    call &operator=(const call &) = delete;

    void wait()
    {
        int64_t rc = blz_blocking_wait(&op_);
        started_ = false;
        if (error_)
            std::rethrow_exception(error_);
        if (rc < 0)
            fail(rc, "blocking call");
    }

  private:
    static int64_t run(void *arg) noexcept
    {
        auto *self = static_cast<call *>(arg);
        try {
            self->fn_();
        } catch (...) {
            self->error_ = std::current_exception();
        }
        return 0;
    }

    blz_blocking_op op_ = {};
    F fn_;
    std::exception_ptr error_;
    bool started_ = false;
};

// ---- files ----

struct file {
    fs::path path;
    uintmax_t size = 0;
    uint64_t hash = 0;
    bool readable = true;
};

static bool complain(const fs::path &path, const std::string &what)
{
    std::fprintf(stderr, "dups: %s: %s\n", path.c_str(), what.c_str());
    return false;
}

// The regular files in a folder, and below it; or the file itself. False: not all could be seen.
static bool find_files(const fs::path &top, std::vector<file> &found)
{
    std::error_code error;
    auto add = [&](const fs::directory_entry &entry) {
        if (!entry.is_symlink(error) && entry.is_regular_file(error) && entry.file_size(error) > 0)
            found.push_back({entry.path(), entry.file_size(error), 0, true});
    };

    fs::directory_entry entry(top, error);
    if (error || !entry.exists(error))
        return complain(top, "No such file or directory");
    add(entry);
    if (!entry.is_directory(error))
        return true;
    fs::recursive_directory_iterator at(top, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error))
        add(*at);
    return !error || complain(top, error.message());
}

// Calls fn(data, len) with the pieces of a file.
template <class Fn> static void read_file(const fs::path &path, Fn fn)
{
    std::ifstream in(path, std::ios::binary);
    std::array<char, 65536> buffer;

    if (!in)
        throw std::system_error(errno, std::generic_category(), path.string());
    while (in.read(buffer.data(), buffer.size()) || in.gcount() > 0)
        fn(buffer.data(), static_cast<size_t>(in.gcount()));
    if (in.bad())
        throw std::system_error(EIO, std::generic_category(), path.string());
}

// FNV-1a: tells apart what is different, most of the time.
static uint64_t hash_of(const fs::path &path)
{
    uint64_t hash = 0xcbf29ce484222325u;

    read_file(path, [&](const char *data, size_t len) {
        for (size_t i = 0; i < len; i++)
            hash = (hash ^ static_cast<unsigned char>(data[i])) * 0x100000001b3u;
    });
    return hash;
}

static bool are_equal(const fs::path &a, const fs::path &b)
{
    std::ifstream other(b, std::ios::binary);
    std::vector<char> piece;
    bool equal = true;

    read_file(a, [&](const char *data, size_t len) {
        piece.resize(len);
        equal = equal && other.read(piece.data(), static_cast<std::streamsize>(len)) &&
                std::equal(piece.begin(), piece.end(), data);
    });
    return equal && other.peek() == std::ifstream::traits_type::eof();
}

// ---- all of it ----

static void keep_those_with_equals_in_size(std::vector<file> &files)
{
    std::map<uintmax_t, size_t> count;

    for (const file &f : files)
        count[f.size]++;
    files.erase(std::remove_if(files.begin(), files.end(),
                               [&](const file &f) { return count[f.size] < 2; }),
                files.end());
}

// All files are read at once, as far as the pool has threads. False: one could not be read.
static bool hash_all(const runtime &rt, std::vector<file> &files)
{
    auto hash = [](file &f) { return [&f] { f.hash = hash_of(f.path); }; };
    std::deque<call<decltype(hash(files[0]))>> calls; // does not move what is in it
    bool fine = true;

    for (file &f : files)
        calls.emplace_back(rt, hash(f));
    for (size_t i = 0; i < files.size(); i++) {
        try {
            calls[i].wait();
        } catch (const std::system_error &error) {
            files[i].readable = false;
            fine = complain(files[i].path, error.code().message());
        }
    }
    return fine;
}

// Prints the files that are equal to the first one, if there are any, and takes these out.
static void print_group(std::vector<file> &group, bool &first)
{
    std::vector<file> equal, others;

    for (file &f : group) {
        bool same = equal.empty() || are_equal(equal.front().path, f.path);
        (same ? equal : others).push_back(std::move(f));
    }
    if (equal.size() > 1) {
        if (!std::exchange(first, false))
            std::puts("");
        for (const file &f : equal)
            std::puts(f.path.c_str());
    }
    group = std::move(others);
}

static void print_groups(const std::vector<file> &files)
{
    std::map<std::pair<uintmax_t, uint64_t>, std::vector<file>, std::greater<>> groups;
    bool first = true;

    for (const file &f : files)
        if (f.readable)
            groups[{f.size, f.hash}].push_back(f);
    for (auto &[key, group] : groups)
        while (group.size() > 1)
            print_group(group, first);
}

int main(int argc, char **argv)
try {
    std::vector<file> files;
    blz_options options = {};
    bool fine = true;

    if (argc < 2) {
        std::fputs("usage: dups FOLDER...\n", stderr);
        return 2;
    }
    for (int i = 1; i < argc; i++)
        fine = find_files(argv[i], files) && fine;
    keep_those_with_equals_in_size(files);
    std::sort(files.begin(), files.end(),
              [](const file &a, const file &b) { return a.path < b.path; });
    options.max_blocking_threads = 2 * std::max(1u, std::thread::hardware_concurrency());
    runtime rt(options);
    fine = hash_all(rt, files) && fine;
    print_groups(files);
    return fine ? 0 : 1;
} catch (const std::exception &error) {
    std::fprintf(stderr, "dups: %s\n", error.what());
    return 1;
}
