/* module.c: what engine-cuda.so exports. */
#include "config.h"

#include "engine/backend/cuda/cuda.h"
#include "engine/backend/cuda/layout.h"

static const struct kernel *const kernels[] = {
#define KERNEL(op) &kernel_##op,
#include "engine/backend/cuda/kernels.def"
#undef KERNEL
};

/* Older GPUs than those of Ampere multiply bf16 as well, if slowly. */
static int check_precision(enum precision precision, struct err *err)
{
    (void)precision;
    (void)err;
    return 0;
}

static const struct backend backend_cuda = {
    .name = "cuda",
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof kernels[0],
    .check_precision = check_precision,
    .layout_plain = cuda_layout_plain,
    .layout_bytes = cuda_layout_bytes,
    .layout_equal = cuda_layout_equal,
    .layout_name = cuda_layout_name,
    .device_open = cuda_device_open,
    .device_close = cuda_device_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .alloc_bytes = cuda_alloc_bytes,
    .free_bytes = cuda_free_bytes,
    .write = cuda_write,
    .read = cuda_read,
    .copy = cuda_copy,
    .set_step = cuda_set_step,
    .wait = cuda_wait,
    .collectives = &cuda_collectives,
};

extern const struct backend_module traind_backend_module;
__attribute__((visibility("default"))) const struct backend_module traind_backend_module = {
    .version = PACKAGE_VERSION,
    .backend = &backend_cuda,
    .probe = cuda_probe,
};
