/* npy.h: a .npy file of float32 rows (NumPy's format, version 1.0), written batch by batch. */
#ifndef ENGINE_TRAIN_NPY_H
#define ENGINE_TRAIN_NPY_H

#include "engine/base/shape.h"
#include "proto/err.h"
#include "proto/limits.h"

struct npy {
    int fd; /* -1: not open */
    char path[LIMIT_PATH_BYTES];
};

/* Makes `path` for an array [rows, row shape]; rows follow in order. */
int npy_create(const char *path, int64_t rows, const struct shape *row, struct npy *ret_npy,
               struct err *err);
int npy_write(struct npy *npy, const float *elements, size_t n, struct err *err);
/* Makes the file last. */
int npy_sync(struct npy *npy, struct err *err);
void npy_close(struct npy *npy);

#endif
