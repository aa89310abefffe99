/* arena.h: memory that lives as long as its owner's job: allocated piece by piece, freed at once.
 * One thread at a time. */
#ifndef ENGINE_BASE_ARENA_H
#define ENGINE_BASE_ARENA_H

#include <stddef.h>

struct arena;

struct arena *arena_new(void); /* NULL without memory */
void arena_free(struct arena *arena);
/* Zeroed, aligned for every type; NULL without memory. */
void *arena_alloc(struct arena *arena, size_t size);
/* n * size with the overflow checked. */
void *arena_array(struct arena *arena, size_t n, size_t size);
/* Room for one more in an array of n items in the arena: `items` itself, or a copy twice as large,
 * *capacity then changed; NULL without memory. The old copy stays until the arena is freed. */
void *arena_grow(struct arena *arena, void *items, size_t n, size_t *capacity, size_t size);
char *arena_format(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
