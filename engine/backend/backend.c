/* backend.c: see backend.h. */
#include "engine/backend/backend.h"

#include <string.h>

const struct kernel *backend_kernel(const struct backend *backend, const char *op)
{
    for (size_t i = 0; i < backend->n_kernels; i++)
        if (strcmp(backend->kernels[i]->op, op) == 0)
            return backend->kernels[i];
    return NULL;
}
