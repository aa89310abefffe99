/* test_backend_cuda.c: this program tests the GPUs' kernels: those of the module that
 * TRAIND_CUDA_MODULE names, on this machine's GPUs, or else the build's, on simulated ones. */
#include "engine/backend/cuda/layout.h"
#include "engine/backend/module.h"
#include "tests/engine/test_backend.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

const int test_backend_teams[] = {1};
const int test_backend_n_teams = 1;

/* 1: with channels last. */
const int64_t test_backend_arrivals[] = {0, 1};
const int test_backend_n_arrivals = 2;

/* A library that is loaded serves whoever needs one of its name. */
static void simulate(const char *build)
{
    static const char *const libraries[] = {"libcudart.so.13", "libcublasLt.so.13", "libcudnn.so.9",
                                            "libnccl.so.2"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        snprintf(path, sizeof path, "%s/tests/cudasim/lib/%s", build, libraries[i]);
        dlopen(path, RTLD_NOW | RTLD_LOCAL); /* the module then says what is missing */
    }
    snprintf(path, sizeof path, "%s/engine/backend/cuda/engine-cuda.so", build);
    setenv("TRAIND_CUDA_MODULE", path, 0);
}

const struct backend *test_backend(const char **ret_missing)
{
    const char *build = getenv("TRAIND_TEST_BUILD");
    if (getenv("TRAIND_CUDA_MODULE") == NULL)
        simulate(build != NULL ? build : ".");
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
