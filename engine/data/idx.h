/* idx.h: IDX files, the format of MNIST: http://yann.lecun.com/exdb/mnist, plain or gz.
 *
 * Two zero bytes, the element type, the rank, one big-endian uint32 a dimension, the elements,
 * nothing more. The elements are kept as the file has them and turned when they are read.
 */
#ifndef ENGINE_DATA_IDX_H
#define ENGINE_DATA_IDX_H

#include "engine/data/array.h"

/* Maps a plain file, reads a gz one whole. The memory asked for is bounded by what a file of its
 * size can hold. Errors: ERR_IO; ERR_DATA_INVALID naming path, what was found and what is wanted;
 * ERR_NOMEM. */
int idx_read(const char *path, struct array *ret_array, struct err *err);

#endif
