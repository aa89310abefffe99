/* test_backend_cuda.c: this program tests the GPUs' kernels. */
#include "engine/backend/cuda/layout.h"
#include "engine/backend/module.h"
#include "tests/engine/test_backend.h"

const int test_backend_teams[] = {1};
const int test_backend_n_teams = 1;

/* 1: with channels last. */
const int64_t test_backend_arrivals[] = {0, 1};
const int test_backend_n_arrivals = 2;

const struct backend *test_backend(const char **ret_missing)
{
    static struct err err;
    static const struct backend_module *module;
    struct gpu gpus[LIMIT_DEVICES];
    size_t n = 0;
    if (module == NULL && backend_module_cuda(&module, &err) != 0) {
        *ret_missing = err.message;
        return NULL;
    }
    if (module->probe(gpus, &n, &err) != 0) {
        *ret_missing = err.message;
        return NULL;
    }
    return module->backend;
}

const struct layout *test_backend_arrival(struct arena *arena, const struct shape *shape,
                                          enum dtype dtype, int64_t arrival)
{
    bool real = dtype == DTYPE_F32 || dtype == DTYPE_BF16;
    return cuda_layout_image(arena, shape, dtype, real && arrival != 0);
}
