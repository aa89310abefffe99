/* weights_file.h: what people do with files of weights without a model: compare two, and add or
 * take away the `module.` that DataParallel's state_dict puts before every key. */
#ifndef ENGINE_TRAIN_WEIGHTS_FILE_H
#define ENGINE_TRAIN_WEIGHTS_FILE_H

#include "engine/base/safetensors.h"

struct weights_difference {
    double max_abs;  /* max |a - b|; NaN where only one of two elements is a number */
    double relative; /* max |a - b| / max |b|; 0 where both are equal */
};

/* Two tensors of the same shape, as numbers of whatever type. PURE. */
struct weights_difference weights_compare(const struct safetensor *a, const struct safetensor *b);

/* Writes the file `in` as `out`, which appears complete or not at all, with «module.» before every
 * key (`parallel`), or with one taken away. Metadata stay. *ret_keys is how many there are. Errors:
 * safetensors_open's and _write's; ERR_WEIGHTS_INVALID: keys with and without it in one file, none
 * to take away; ERR_NOMEM. */
int weights_convert(const char *in, const char *out, bool parallel, size_t *ret_keys,
                    struct err *err);

#endif
