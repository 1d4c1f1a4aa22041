/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records over a stream: messages, as a codec (blitz/codec.h) cuts them, read and written.
 *
 *     struct serve { BLZ_FRAME; blz_tcp conn; blz_records in; int64_t rc; };
 *
 *     BLZ_ASYNC(serve)
 *     {
 *         blz_codec codec;
 *         blz_view record;
 *         BLZ_BEGIN;
 *         self->rc = blz_codec_length(&codec, &(blz_length_options){.width = 4, .max = 1 << 24});
 *         if (self->rc == 0)
 *             self->rc = blz_records_init(&self->in, blz_tcp_stream(&self->conn), &codec, NULL);
 *         while (self->rc >= 0) {
 *             while ((self->rc = blz_records_take(&self->in, &record)) == 1)
 *                 handle(record.data, record.len);             // no await: they are there
 *             if (self->rc == 0)
 *                 BLZ_AWAIT(self->rc, blz_records_more(&self->in));
 *             if (self->rc == 0)
 *                 break;                                     // the end
 *         }
 *         blz_records_free(&self->in);
 *         blz_tcp_close(&self->conn);
 *         BLZ_END(self->rc);
 *     }
 *
 * The buffer begins small and grows with the bytes that come, never with a length that the peer has
 * sent: four bytes that announce a gigabyte cost the memory of four bytes. It is
 * never larger than the longest record that the codec allows and what is around it, and is small
 * again after a long one. For a buffer of a fixed size see blz_reader_record in blitz/bufio.h.
 */
#ifndef BLITZ_RECORDS_H
#define BLITZ_RECORDS_H

#include <blitz/bufio.h>
#include <blitz/codec.h>

BLZ_BEGIN_DECLS

/* Belongs to one task at a time, and stays where it is while `more` is in flight. */
typedef struct blz_records {
    blz_future future;
    blz_reader reader; /* for what follows the records: blz_records_rest */
    blz_codec codec;
    bool ended_;
    uint64_t reserved[3];
} blz_records;

/*
 * Begins to read records; `codec` says which, and is copied. Memory is from malloc, or from
 * `allocator`, which is copied. 0 or -ENOMEM. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_records_init(blz_records *records, blz_stream stream,
                                           const blz_codec *codec, const blz_allocator *allocator);

/* Frees the memory. The stream is not closed. All zero is allowed. [any thread] */
BLZ_API void blz_records_free(blz_records *records);

/*
 * Takes the next record that is in the buffer: 1 and *record, which is valid until `more` is
 * awaited; 0: none is, await blz_records_more. -EMSGSIZE, -EBADMSG and -ENODATA are the errors of
 * blz_codec_decode, and at the end of the stream of blz_codec_finish. Does not wait. [any thread;
 * one at a time]
 */
BLZ_API int blz_records_take(blz_records *records, blz_view *record);

/*
 * Awaits more bytes, after blz_records_take has given 0: 1, and it may have something to say; 0:
 * the stream is at its end, and has no more records. -ENOMEM, or what reading the stream says.
 * Interruptible, if the stream is: nothing is lost, and both may be called again. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_records_more(blz_records *records);

/*
 * The bytes behind the last record that was taken, for another protocol; blz_records_free frees
 * them. [any thread; one at a time]
 */
BLZ_API blz_view blz_records_rest(const blz_records *records);

/* ---- Writing ---- */

/* What goes around one record while it is being written. */
typedef struct blz_record_op {
    blz_future future;
    blz_envelope envelope;
    blz_iovec iov[3];
    uint64_t reserved;
} blz_record_op;

/*
 * Writes a record to a writer, whose buffer it goes through: as many as fit are sent at once, and
 * blz_writer_flush sends what there is. `prefix` as in blz_codec_encode; the codec, the payload and
 * *op stay until it is done. The number of bytes with all around; or -EMSGSIZE or -EINVAL, and
 * nothing was written; or what the stream says. After that, or when it is cancelled, a part of the
 * record may have been taken (writer->done): nothing more can be said on this stream then. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_writer_record(blz_record_op *op, blz_writer *writer,
                                                    const blz_codec *codec, const void *prefix,
                                                    const void *payload, size_t len);

BLZ_END_DECLS
#endif
