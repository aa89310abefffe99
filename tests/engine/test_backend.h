/* test_backend.h: the backend whose kernels a check program tests: the CPU's, or where it is linked
 * with test_backend_cuda.c the GPUs', on whatever CUDA's libraries the loader finds. */
#ifndef TESTS_ENGINE_TEST_BACKEND_H
#define TESTS_ENGINE_TEST_BACKEND_H

#include "engine/backend/backend.h"

/* Of the program; loads what has to be. NULL, and why in *ret_missing: there is none here. */
const struct backend *test_backend(const char **ret_missing);

/* Team sizes that its devices are tested with. */
extern const int test_backend_teams[];
extern const int test_backend_n_teams;

/* The layouts, beside plain, in which images arrive: numbers for test_backend_arrival; the first is
 * 0: plain. */
extern const int64_t test_backend_arrivals[];
extern const int test_backend_n_arrivals;
const struct layout *test_backend_arrival(struct arena *arena, const struct shape *shape,
                                          enum dtype dtype, int64_t arrival);

#endif
