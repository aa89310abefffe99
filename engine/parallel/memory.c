/* memory.c: see memory.h. */
#include "engine/parallel/memory.h"

int memory_alloc(const struct backend *backend, struct device *device, const char *name,
                 size_t bytes, const char *what, struct memory *ret_memory, struct err *err)
{
    if (bytes == 0)
        return 0;
    void *at = backend->alloc(device, bytes);
    if (at == NULL)
        return err_set(err, ERR_NOMEM, "%s has no memory for the %zu bytes of its %s", name, bytes,
                       what);
    *ret_memory = (struct memory){at, bytes};
    return 0;
}

void memory_free(const struct backend *backend, struct device *device, struct memory *memory)
{
    if (memory->at != NULL)
        backend->free(device, memory->at, memory->bytes);
    *memory = (struct memory){0};
}
