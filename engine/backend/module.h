/* module.h: a backend that is a shared object of its own, so that one build serves machines with
 * and without its libraries.
 *
 * engine-cuda.so lies beside the program, or where TRAIND_CUDA_MODULE says (for tests). It exports
 * one symbol, a struct backend_module, and shares no state with the program: what it uses of
 * engine/base is linked into it once more. It is never closed: the libraries below it keep state.
 */
#ifndef ENGINE_BACKEND_MODULE_H
#define ENGINE_BACKEND_MODULE_H

#include "engine/backend/backend.h"

/* A GPU as its driver describes it. */
struct gpu {
    char model[128];
    char uuid[48]; /* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" */
    char pci[32];  /* "0000:3b:00.0" */
    int64_t memory_bytes;
    int multiprocessors;
    int capability[2]; /* major, minor */
    uint64_t peers;    /* bit i: it reaches the memory of GPU i directly */
};

struct backend_module {
    const char *version; /* PACKAGE_VERSION: a module of another build is refused */
    const struct backend *backend;
    /* The GPUs that CUDA_VISIBLE_DEVICES shows, in the order of their PCI addresses; ret_gpus has
     * room for LIMIT_DEVICES. Errors: ERR_DEVICE_FAILED: none can be used, and why. */
    int (*probe)(struct gpu *ret_gpus, size_t *ret_n, struct err *err);
};

#define BACKEND_MODULE_SYMBOL "traind_backend_module"

/* The CUDA backend. Before other threads are started: it sets CUDA_DEVICE_ORDER and,
 * where the user does not, NCCL_ALGO. Errors:
 * ERR_DEVICE_FAILED: it is not installed, or its libraries are not, or it is of another build. */
int backend_module_cuda(const struct backend_module **ret_module, struct err *err);

#endif
