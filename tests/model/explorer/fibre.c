/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibres: the threads of a model, each with its own stack, run one at a time in one system thread.
 *
 * A switch saves the registers that the calling convention preserves, exchanges stack pointers, and
 * restores: about two nanoseconds. There is no system call in it, since a model makes millions a
 * second. The address sanitizer is told of each switch, or it would take the other stack for a
 * wild one. Stacks are kept between executions; each has an unmapped page below it, so that an
 * overflow is a crash and not a riddle.
 */
#include "explorer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef MODEL_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_SIZE ((size_t)256 * 1024)
#define GUARD_SIZE ((size_t)16 * 1024)

/* Saves the registers on the stack, its top in *save, and continues where `load` was saved. */
void model__stack_switch(void **save, void *load);
void model__stack_first(void);

#if defined(__x86_64__)

__asm__(".text\n"
        ".p2align 4\n"
        ".globl model__stack_switch\n"
        ".type model__stack_switch, @function\n"
        "model__stack_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size model__stack_switch, . - model__stack_switch\n"
        ".globl model__stack_first\n"
        ".type model__stack_first, @function\n"
        "model__stack_first:\n"
        "    xorl %ebp, %ebp\n"
        "    callq *%rbx\n"
        "    ud2\n"
        ".size model__stack_first, . - model__stack_first\n");

enum { FRAME_WORDS = 9, FRAME_ENTRY = 4, FRAME_RETURN = 6 };

#elif defined(__aarch64__)

__asm__(".text\n"
        ".p2align 4\n"
        ".globl model__stack_switch\n"
        ".type model__stack_switch, %function\n"
        "model__stack_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size model__stack_switch, . - model__stack_switch\n"
        ".globl model__stack_first\n"
        ".type model__stack_first, %function\n"
        "model__stack_first:\n"
        "    mov x29, xzr\n"
        "    blr x19\n"
        "    brk #1\n"
        ".size model__stack_first, . - model__stack_first\n");

enum { FRAME_WORDS = 20, FRAME_ENTRY = 0, FRAME_RETURN = 11 };

#else
#error "the model explorer knows how to switch stacks on x86_64 and aarch64 only"
#endif

static void stack_map(struct fibre *fibre)
{
    char *memory = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED || mprotect(memory, GUARD_SIZE, PROT_NONE) != 0) {
        perror("model: no memory for a stack");
        exit(2);
    }
    fibre->stack = memory + GUARD_SIZE;
    fibre->stack_size = STACK_SIZE;
    fibre->mapped = true;
}

/* The next switch to the fibre calls entry, which never returns. */
void model__fibre_prepare(struct fibre *fibre, void (*entry)(void))
{
    if (!fibre->mapped)
        stack_map(fibre);
#ifdef MODEL_ASAN
    if (fibre->used)
        __asan_unpoison_memory_region(fibre->stack, fibre->stack_size);
#endif
    fibre->used = true;
    fibre->fake_stack = NULL;
    /* One word more than the registers, where that keeps the first call's stack aligned. */
    void **frame = (void **)(void *)(fibre->stack + fibre->stack_size) - FRAME_WORDS;
    memset(frame, 0, FRAME_WORDS * sizeof *frame);
    frame[FRAME_ENTRY] = (void *)(uintptr_t)entry;
    frame[FRAME_RETURN] = (void *)(uintptr_t)model__stack_first;
    fibre->stack_pointer = frame;
}

#ifdef MODEL_ASAN

static struct fibre *switched_from, *switched_to;

/* To be called first on a stack that was switched to. */
void model__fibre_entered(void)
{
    const void *bottom;
    size_t size;

    __sanitizer_finish_switch_fiber(switched_to->fake_stack, &bottom, &size);
    /* This is how the bounds of the system thread's own stack become known. */
    if (!switched_from->mapped) {
        switched_from->stack = (char *)(uintptr_t)bottom;
        switched_from->stack_size = size;
    }
}

static void announce_switch(struct fibre *from, struct fibre *to, bool from_is_done)
{
    switched_from = from;
    switched_to = to;
    __sanitizer_start_switch_fiber(from_is_done ? NULL : &from->fake_stack, to->stack,
                                   to->stack_size);
}

#else

void model__fibre_entered(void)
{
}

static void announce_switch(struct fibre *from, struct fibre *to, bool from_is_done)
{
    (void)from, (void)to, (void)from_is_done;
}

#endif

/* Returns when someone switches back. */
void model__fibre_switch(struct fibre *from, struct fibre *to, bool from_is_done)
{
    announce_switch(from, to, from_is_done);
    model__stack_switch(&from->stack_pointer, to->stack_pointer);
    model__fibre_entered();
}

bool model__fibre_owns(const struct fibre *fibre, uintptr_t address)
{
    return fibre->mapped && address - (uintptr_t)fibre->stack < fibre->stack_size;
}
