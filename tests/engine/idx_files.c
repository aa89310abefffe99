#include "tests/engine/idx_files.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "tests/lib/checks.h"

static const char *place(const char *name)
{
    static char paths[8][512];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", checks_scratch(), name);
    return path;
}

const char *idx_file(const char *name, const void *data, size_t bytes)
{
    const char *path = place(name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, bytes, file), bytes);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

const char *idx_file_gz(const char *name, const void *data, size_t bytes)
{
    const char *path = place(name);
    gzFile file = gzopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(gzwrite(file, data, (unsigned)bytes), (int)bytes);
    ck_assert_int_eq(gzclose(file), Z_OK);
    return path;
}

size_t idx_make(uint8_t *to, int type, int rank, const uint32_t *dim, const void *elements,
                size_t bytes)
{
    const uint8_t magic[4] = {0, 0, (uint8_t)type, (uint8_t)rank};
    size_t used = sizeof magic;
    memcpy(to, magic, sizeof magic);
    for (int i = 0; i < rank; i++, used += 4) {
        uint32_t big = htobe32(dim[i]);
        memcpy(to + used, &big, sizeof big);
    }
    if (bytes > 0)
        memcpy(to + used, elements, bytes);
    return used + bytes;
}
