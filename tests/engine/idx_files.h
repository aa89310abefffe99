/* idx_files.h: IDX files, whole and broken, for the checks of data. */
#ifndef TESTS_ENGINE_IDX_FILES_H
#define TESTS_ENGINE_IDX_FILES_H

#include <stddef.h>
#include <stdint.h>

/* Writes `bytes` as they are, or as one gz member, under the scratch directory; returns the path
 * (static, one of eight in turn). */
const char *idx_file(const char *name, const void *data, size_t bytes);
const char *idx_file_gz(const char *name, const void *data, size_t bytes);

/* An IDX header, then `bytes` of elements; returns the whole length. */
size_t idx_make(uint8_t *to, int type, int rank, const uint32_t *dim, const void *elements,
                size_t bytes);

#endif
