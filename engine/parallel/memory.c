/* memory.c: see memory.h. */
#include "engine/parallel/memory.h"

#include <string.h>

#include "engine/base/rng.h"

static int refuse(const struct backend *backend, struct device *device, const char *name,
                  size_t bytes, const char *what, struct err *err)
{
    if (backend->free_bytes == NULL)
        return err_set(err, ERR_NOMEM, "%s has no memory for the %zu bytes of its %s", name, bytes,
                       what);
    return err_set(err, ERR_NOMEM,
                   "%s has no memory for the %zu bytes of its %s: %lld are free; a smaller batch, "
                   "recomputation or more devices would help",
                   name, bytes, what, (long long)backend->free_bytes(device));
}

int memory_alloc(const struct backend *backend, struct device *device, const char *name,
                 size_t bytes, const char *what, struct memory *ret_memory, struct err *err)
{
    if (bytes == 0)
        return 0;
    void *at = backend->alloc(device, bytes);
    if (at == NULL)
        return refuse(backend, device, name, bytes, what, err);
    *ret_memory = (struct memory){at, bytes};
    return 0;
}

size_t memory_padding(const struct backend *backend, size_t bytes)
{
    return bytes == 0 ? 0 : backend->alloc_bytes(bytes) - bytes;
}

enum { PATTERN = 4096 };

/* Both halves of a word hold the same BF16. */
static void make_pattern(float bound, float pattern[static PATTERN])
{
    struct rng_key key = rng_key(1, RNG_DATA, 0);
    for (uint32_t i = 0; i < PATTERN; i += 4) {
        uint32_t words[4];
        rng_block(key, 0, i, words);
        for (uint32_t k = 0; k < 4; k++) {
            float x = bound * (2 * rng_uniform(words[k]) - 1);
            uint32_t bits;
            memcpy(&bits, &x, sizeof bits);
            bits = (bits & 0xffff0000) | bits >> 16;
            memcpy(&pattern[i + k], &bits, sizeof bits);
        }
    }
}

int memory_fill(const struct backend *backend, struct device *device, const struct memory *memory,
                size_t offset, size_t bytes, float bound, struct err *err)
{
    float pattern[PATTERN];
    int rc = 0;
    make_pattern(bound, pattern);
    for (size_t done = 0; rc == 0 && done < bytes; done += sizeof pattern) {
        size_t left = bytes - done;
        rc = backend->write(device, (char *)memory->at + offset + done, pattern,
                            left < sizeof pattern ? left : sizeof pattern, err);
    }
    return rc;
}

void memory_free(const struct backend *backend, struct device *device, struct memory *memory)
{
    if (memory->at != NULL)
        backend->free(device, memory->at, memory->bytes);
    *memory = (struct memory){0};
}
