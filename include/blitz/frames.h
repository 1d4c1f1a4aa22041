/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over a stream: frames (blitz/codec.h) one after the other, read and written.
 *
 *     struct serve { BLZ_FRAME; blz_tcp conn; blz_frames in; int64_t rc; };
 *
 *     BLZ_ASYNC(serve)
 *     {
 *         blz_codec codec;
 *         blz_view frame;
 *         BLZ_BEGIN;
 *         self->rc = blz_codec_length(&codec, &(blz_length_options){.width = 4, .max = 1 << 24});
 *         if (self->rc == 0)
 *             self->rc = blz_frames_init(&self->in, blz_tcp_stream(&self->conn), &codec, NULL);
 *         while (self->rc >= 0) {
 *             while ((self->rc = blz_frames_take(&self->in, &frame)) == 1)
 *                 handle(frame.data, frame.len);             // no await: they are there
 *             if (self->rc == 0)
 *                 BLZ_AWAIT(self->rc, blz_frames_more(&self->in));
 *             if (self->rc == 0)
 *                 break;                                     // the end
 *         }
 *         blz_frames_free(&self->in);
 *         blz_tcp_close(&self->conn);
 *         BLZ_END(self->rc);
 *     }
 *
 * The buffer begins small and grows with the bytes that come, never with a length that somebody
 * has sent: who sends four bytes that announce a gigabyte has cost the memory of four bytes. It is
 * never larger than the longest frame that the codec allows and what is around it, and is small
 * again after a long one. For a buffer of a fixed size see blz_reader_frame in blitz/bufio.h.
 */
#ifndef BLITZ_FRAMES_H
#define BLITZ_FRAMES_H

#include <blitz/bufio.h>
#include <blitz/codec.h>

BLZ_BEGIN_DECLS

/* Belongs to one task at a time, and stays where it is while `more` is in flight. */
typedef struct blz_frames {
    blz_future future;
    blz_reader reader; /* for what follows the frames: blz_frames_rest */
    blz_codec codec;
    bool ended_;
    uint64_t reserved[3];
} blz_frames;

/*
 * Begins to read frames; `codec` says which, and is copied. Memory is from malloc, or from
 * `allocator`, which is copied. 0 or -ENOMEM. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_frames_init(blz_frames *frames, blz_stream stream,
                                          const blz_codec *codec, const blz_allocator *allocator);

/* Gives the memory back. The stream is not closed. All zero is fine. [any thread] */
BLZ_API void blz_frames_free(blz_frames *frames);

/*
 * The next frame that is in the buffer: 1 and *frame, which is valid until `more` is awaited; 0:
 * none is, await blz_frames_more. Errors are those of blz_codec_decode, and at the end of the
 * stream of blz_codec_finish: -EMSGSIZE, -EBADMSG, -ENODATA. Does not wait.
 */
BLZ_API int blz_frames_take(blz_frames *frames, blz_view *frame);

/*
 * Awaits more bytes, after blz_frames_take has given 0: 1, and it may have something to say; 0: the
 * stream is at its end, and has no more frames. -ENOMEM, or what reading the stream says.
 * Interruptible, if the stream is: nothing is lost, and both may be called again. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_frames_more(blz_frames *frames);

/* Bytes behind the last frame that was taken, for another protocol; blz_frames_free takes them. */
BLZ_API blz_view blz_frames_rest(const blz_frames *frames);

/* ---- Writing ---- */

/* What goes around one frame while it is being written. Needs no initialisation. */
typedef struct blz_frame_op {
    blz_future future;
    blz_envelope envelope;
    blz_iovec iov[3];
} blz_frame_op;

/*
 * Writes a frame to a writer, whose buffer it goes through: as many as fit are sent at once, and
 * blz_writer_flush sends what there is. `prefix` as in blz_codec_encode; the codec, the payload and
 * *op stay until it is done. The number of bytes with all around; or -EMSGSIZE or -EINVAL, and
 * nothing was written; or what the stream says. After that, or when it is cancelled, a part of the
 * frame may have been taken (writer->done): nothing more can be said on this stream then. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_writer_frame(blz_frame_op *op, blz_writer *writer,
                                                   const blz_codec *codec, const void *prefix,
                                                   const void *payload, size_t len);

BLZ_END_DECLS
#endif
