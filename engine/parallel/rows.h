/* rows.h: consecutive samples of a batch on the host. PURE. */
#ifndef ENGINE_PARALLEL_ROWS_H
#define ENGINE_PARALLEL_ROWS_H

#include "engine/parallel/strategy.h"

/* Bytes of that many samples of an input, and of targets. */
size_t rows_data_bytes(const struct model *model, int input, int64_t samples);
size_t rows_target_bytes(const struct model *model, int64_t samples);

/* The n samples from `first` on. */
struct batch rows_of(const struct model *model, const struct batch *batch, int64_t first,
                     int64_t n);

#endif
