/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers and writers with a buffer: lines and other parts of a stream, bytes that are looked at
 * before they are taken, and few system calls however small the pieces are.
 *
 *     struct count { BLZ_FRAME; blz_file file; blz_reader in; blz_split lines; int64_t rc;
 *                    uint64_t nr; };
 *
 *     BLZ_ASYNC(count)
 *     {
 *         blz_view line;
 *         BLZ_BEGIN;
 *         self->rc = blz_reader_init(&self->in, blz_file_stream(&self->file), NULL, 0);
 *         blz_lines_init(&self->lines, &self->in, 0);
 *         while (self->rc >= 0) {
 *             while (blz_split_next(&self->lines, &line))     // no await: they are there
 *                 self->nr += line.len > 0;
 *             BLZ_AWAIT(self->rc, blz_split_more(&self->lines));
 *             if (self->rc == 0)
 *                 break;                                      // the end
 *         }
 *         blz_reader_free(&self->in);
 *         BLZ_END(self->rc);
 *     }
 *
 * A reader, or a writer, belongs to one task at a time and does one thing at a time; the future of
 * what it does is in it, so it must stay where it is meanwhile. Views point into its buffer: they
 * hold until the next operation that is awaited, and not longer.
 *
 * Cancelling loses nothing: what has been read and not taken is in the buffer, and what has been
 * written and not sent is, too. The struct says how far an operation came (`done`).
 *
 * Errors of every operation that is awaited, beside those that it names: the errors of reading or
 * writing the stream (blitz/stream.h), and -ECANCELED.
 */
#ifndef BLITZ_BUFIO_H
#define BLITZ_BUFIO_H

#include <blitz/codec.h>
#include <blitz/fs.h>
#include <blitz/stream.h>
#include <string.h>

BLZ_BEGIN_DECLS

/* Bytes in memory that belongs to something else, such as a reader. */
typedef struct blz_view {
    const char *data;
    size_t len;
} blz_view;

/* ---- Reading [any thread; one at a time] ---- */

#define BLZ_READER_FOUND 32 /* delimiters that are looked for in one go */

/* A stream with a buffer for reading, used by one task at a time; it stays where it is. */
typedef struct blz_reader {
    blz_future future;
    uint64_t done;     /* bytes that the last operation has handed out */
    blz_stream stream; /* may be changed while the buffer is empty */
    char *buf;
    size_t size;
    size_t pos, end; /* unread: buf[pos, end) */
    size_t scanned_; /* up to here all delimiters are known: those in found_ */
    bool ended_;     /* the stream is at its end, as far as is known */
    bool owned_, cancelled_;
    unsigned char delimiter_;
    unsigned nr_found_, found_at_; /* places in found_, and which of them is next */
    const void *found_for_;
    int64_t (*step_)(struct blz_reader *reader, blz_cx *cx);
    void *out_, *more_;
    size_t len_;
    char *into_; /* where the read in flight reads to, if not to the buffer; or NULL */
    size_t room_, got_;
    blz_allocator allocator_;
    blz_io io_;
    uint64_t reserved[2];
    size_t found_[BLZ_READER_FOUND + 1]; /* behind the last one SIZE_MAX */
} blz_reader;

/*
 * Makes a reader with a buffer of `size` bytes (0: 64 KiB): the caller's memory, which stays; or
 * NULL, and it is allocated, with malloc or by `allocator`, which is copied. What is looked at at
 * once, such as a line, is no longer than the buffer. 0 or -ENOMEM. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_reader_init(blz_reader *reader, blz_stream stream, void *memory,
                                          size_t size);
BLZ_API BLZ_NODISCARD int blz_reader_init_with(blz_reader *reader, blz_stream stream, size_t size,
                                               const blz_allocator *allocator);

/* Frees allocated memory. The stream is not closed. All zero is allowed. [any thread] */
BLZ_API void blz_reader_free(blz_reader *reader);

/* The bytes that have been read and not been taken. Does not wait. */
static inline blz_view blz_reader_buffered(const blz_reader *reader)
{
    blz_view view = {reader->buf + reader->pos, reader->end - reader->pos};

    return view;
}

/* Takes the first `n` bytes of what blz_reader_buffered shows. Does not wait. */
static inline void blz_reader_consume(blz_reader *reader, size_t n)
{
    reader->pos += n;
    reader->scanned_ = 0;
    reader->nr_found_ = reader->found_at_ = 0;
    reader->found_[0] = SIZE_MAX;
}

/*
 * Awaits more bytes in the buffer: how many came; 0 is the end. -EMSGSIZE: the buffer is full.
 * Interruptible, if the stream is. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_reader_fill(blz_reader *reader);

/*
 * Awaits that there are `n` bytes in the buffer, and leaves them there: the number that there are,
 * which is less only at the end. -EMSGSIZE: the buffer is smaller than that. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_reader_peek(blz_reader *reader, size_t n);

/*
 * Reads what is there, up to `len` bytes, waiting for the first; what is in the buffer first: the
 * number of bytes; 0 is the end. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_reader_read(blz_reader *reader, void *buf, size_t len);

/*
 * Reads all of `len` bytes: `len`. -ENODATA: the end came first; `done` says how many there were.
 * [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_reader_read_exact(blz_reader *reader, void *buf, size_t len);

/* Passes over `n` bytes: the number, which is less only at the end. [task] */
BLZ_API BLZ_NODISCARD blz_future *blz_reader_skip(blz_reader *reader, uint64_t n);

/* Passes over everything up to a byte, and that byte: 1; 0: the end came first. [task] */
BLZ_API BLZ_NODISCARD blz_future *blz_reader_skip_until(blz_reader *reader, char delimiter);

/*
 * Appends to *out what comes, up to a byte and with it, or to the end: the number of bytes; 0 if
 * there are none any more. -EMSGSIZE: there would be more than `max` bytes in *out; so many are
 * there then. -ENOMEM. Free it with blz_bytes_free in any case. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_reader_read_until(blz_reader *reader, blz_bytes *out,
                                                        size_t max, char delimiter);

/*
 * Appends to *out all that comes up to the end: the number of bytes. -EMSGSIZE: there would be more
 * than `max` bytes in *out; so many are there then. -ENOMEM. Free it with blz_bytes_free in any
 * case. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_reader_read_to_end(blz_reader *reader, blz_bytes *out,
                                                         size_t max);

/*
 * Awaits the next record (blitz/codec.h): 1 and *record; 0: the end, behind the last one. Errors
 * are the codec's; -ENOBUFS: the buffer is smaller than blz_codec_room. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_reader_record(blz_reader *reader, blz_view *record,
                                                    blz_codec *codec);

/*
 * The reader as a stream, which reads what is in the buffer and then on. Writing goes to the
 * reader's stream. [any thread]
 */
BLZ_API blz_stream blz_reader_stream(blz_reader *reader);

/* ---- Lines, and other parts that end with a byte [any thread; one at a time] ---- */

/* Goes through the parts of what a reader reads. */
typedef struct blz_split {
    blz_reader *reader;
    size_t max; /* of a part, without the delimiter */
    unsigned char delimiter;
    bool crlf; /* a CR before the delimiter is no part of it */
    uint64_t reserved[2];
} blz_split;

/*
 * Prepares to go through lines, which end with LF, or CR LF. `max` 0: whatever fits into the
 * reader's buffer.
 */
BLZ_API void blz_lines_init(blz_split *lines, blz_reader *reader, size_t max);

/*
 * Prepares to go through parts that end with a byte. `max` 0: whatever fits into the reader's
 * buffer.
 */
BLZ_API void blz_split_init(blz_split *split, blz_reader *reader, char delimiter, size_t max);

BLZ_API bool blz_split_search_(blz_split *split, blz_view *part);

/*
 * The next part that is in the buffer, without its delimiter; false: none is, await blz_split_more.
 * What is behind the last delimiter of the stream is a part, unless it is empty. Does not wait.
 */
static inline bool blz_split_next(blz_split *split, blz_view *part)
{
    blz_reader *r = split->reader;
    size_t at, len;

    at = r->found_[r->found_at_];
    len = at - r->pos;
    if (blz_unlikely(len > split->max || r->found_for_ != split))
        return blz_split_search_(split, part); /* there are no more, too */
    part->data = r->buf + r->pos;
    part->len = split->crlf && len > 0 && r->buf[at - 1] == '\r' ? len - 1 : len;
    r->found_at_++;
    r->pos = at + 1;
    return true;
}

/*
 * Awaits that blz_split_next has another part: 1; 0 at the end. -EMSGSIZE: it is longer than the
 * limit, or the buffer; nothing has been taken, and blz_reader_skip_until passes over it. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_split_more(blz_split *split);

/* ---- Writing [any thread; one at a time] ---- */

/* A stream with a buffer for writing, used by one task at a time; it stays where it is. */
typedef struct blz_writer {
    blz_future future;
    uint64_t done; /* bytes of the last operation that have been taken */
    blz_stream stream;
    char *buf;
    size_t size;
    size_t pos, end; /* kept back: buf[pos, end) */
    bool owned_, cancelled_;
    uint8_t phase_;
    const blz_iovec *iov_;
    size_t count_;
    blz_iovec rest_, both_[2];
    blz_allocator allocator_;
    blz_io io_;
    uint64_t reserved[2];
} blz_writer;

/*
 * Makes a writer with a buffer of `size` bytes (0: 64 KiB): the caller's memory, which stays; or
 * NULL, and it is allocated, with malloc or by `allocator`, which is copied. 0; -ENOMEM. [any
 * thread]
 */
BLZ_API BLZ_NODISCARD int blz_writer_init(blz_writer *writer, blz_stream stream, void *memory,
                                          size_t size);
BLZ_API BLZ_NODISCARD int blz_writer_init_with(blz_writer *writer, blz_stream stream, size_t size,
                                               const blz_allocator *allocator);

/* Frees allocated memory. What has not been flushed is lost. [any thread] */
BLZ_API void blz_writer_free(blz_writer *writer);

/* Puts bytes into the buffer; false: there is no room for all of them. Does not wait. */
static inline bool blz_writer_put(blz_writer *writer, const void *data, size_t len)
{
    if (blz_unlikely(len > writer->size - writer->end))
        return false;
    if (len > 0)
        memcpy(writer->buf + writer->end, data, len);
    writer->end += len;
    return true;
}

/*
 * Writes all of `data`, into the buffer or, together with what is in there, to the stream: `len`.
 * After an error, or when it is cancelled, `done` says how much was taken. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_writer_write_all(blz_writer *writer, const void *data,
                                                       size_t len);

/*
 * Writes all of several pieces of memory, into the buffer or to the stream: the number of bytes.
 * After an error, or when it is cancelled, `done` says how much was taken. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_writer_writev_all(blz_writer *writer, const blz_iovec *iov,
                                                        size_t count);

/* Sends what is in the buffer, and flushes the stream: 0. [task] */
BLZ_API BLZ_NODISCARD blz_future *blz_writer_flush(blz_writer *writer);

/*
 * Sends what is in the buffer, flushes the stream, and ends what is written (blz_stream_shutdown):
 * 0. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_writer_shutdown(blz_writer *writer);

/*
 * The writer as a stream, which is written through the buffer. Reading reads the writer's stream.
 * [any thread]
 */
BLZ_API blz_stream blz_writer_stream(blz_writer *writer);

BLZ_END_DECLS
#endif
