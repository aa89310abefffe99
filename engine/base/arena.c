/* arena.c: a list of blocks; a piece is cut from the newest, or gets a block of its own if large.
 */
#include "engine/base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 1 << 10, BLOCK_BYTES = 64 << 10 };

struct block {
    struct block *next;
    size_t size, used;
    max_align_t data[];
};

struct arena {
    struct block *blocks; /* the first one is being filled */
    size_t next_bytes;    /* of the next block: twice the last, for there are many small arenas */
};

struct arena *arena_new(void)
{
    struct arena *arena = calloc(1, sizeof *arena);
    if (arena != NULL)
        arena->next_bytes = FIRST_BYTES;
    return arena;
}

void arena_free(struct arena *arena)
{
    if (arena == NULL)
        return;
    for (struct block *block = arena->blocks, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    free(arena);
}

/* A large block goes behind the one being filled, so that the latter's rest is not lost. */
static struct block *block_add(struct arena *arena, size_t size)
{
    bool large = size > BLOCK_BYTES / 4;
    while (!large && arena->next_bytes < size)
        arena->next_bytes *= 2;
    size_t block_size = large ? size : arena->next_bytes;
    struct block *block = calloc(1, sizeof *block + block_size);
    if (block == NULL)
        return NULL;
    block->size = block_size;
    if (!large && arena->next_bytes < BLOCK_BYTES)
        arena->next_bytes *= 2;
    if (large && arena->blocks != NULL) {
        block->next = arena->blocks->next;
        arena->blocks->next = block;
    } else {
        block->next = arena->blocks;
        arena->blocks = block;
    }
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    if (size > SIZE_MAX / 2)
        return NULL;
    size = size == 0 ? align : (size + align - 1) / align * align;
    struct block *block = arena->blocks;
    if (block == NULL || block->size - block->used < size)
        block = block_add(arena, size);
    if (block == NULL)
        return NULL;
    void *piece = (char *)block->data + block->used;
    block->used += size;
    return piece;
}

void *arena_array(struct arena *arena, size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : arena_alloc(arena, bytes);
}

void *arena_grow(struct arena *arena, void *items, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity)
        return items;
    size_t larger = *capacity == 0 ? 16 : *capacity * 2;
    void *grown = arena_array(arena, larger, size);
    if (grown == NULL)
        return NULL;
    if (n > 0)
        memcpy(grown, items, n * size);
    *capacity = larger;
    return grown;
}

char *arena_format(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return NULL;
    char *text = arena_alloc(arena, (size_t)length + 1);
    if (text == NULL)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}
