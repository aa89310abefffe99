/* npy.h: NumPy's .npy files, versions 1 to 3: numpy.lib.format. */
#ifndef ENGINE_DATA_NPY_H
#define ENGINE_DATA_NPY_H

#include "engine/data/array.h"

/* Maps a file. Errors: ERR_IO; ERR_DATA_INVALID naming path, what was found and what is wanted;
 * ERR_NOMEM. */
int npy_open(const char *path, struct array *ret_array, struct err *err);

#endif
