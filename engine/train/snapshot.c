/* snapshot.c: see snapshot.h. */
#include "engine/train/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"

enum { ALIGN = 8 };

static size_t variable_bytes(const struct variable *variable)
{
    return (size_t)shape_count(&variable->shape) * dtype_size(variable->dtype);
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static bool chosen(const struct variable *variable, unsigned kinds)
{
    return (kinds >> variable->kind & 1) != 0;
}

static int allocate(const struct model *model, unsigned kinds, struct snapshot *snapshot,
                    struct err *err)
{
    size_t n = 0, bytes = 0;
    for (size_t i = 0; i < model->n_variables; i++) {
        if (chosen(&model->variables[i], kinds)) {
            n++;
            bytes += aligned(variable_bytes(&model->variables[i]));
        }
    }
    snapshot->tensors = calloc(n + 1, sizeof *snapshot->tensors);
    snapshot->memory = malloc(bytes + 1);
    if (snapshot->tensors != NULL && snapshot->memory != NULL)
        return 0;
    return err_set(err, ERR_NOMEM, "no memory for %zu bytes of variables", bytes);
}

int snapshot_read(struct strategy *strategy, const struct model *model, unsigned kinds,
                  struct snapshot *ret_snapshot, struct err *err)
{
    struct snapshot snapshot = {.n = 0};
    int rc = allocate(model, kinds, &snapshot, err);
    char *to = snapshot.memory;
    for (size_t i = 0; i < model->n_variables && rc == 0; i++) {
        const struct variable *variable = &model->variables[i];
        if (!chosen(variable, kinds))
            continue;
        snapshot.tensors[snapshot.n++] = (struct safetensor){
            variable->name, variable->shape, variable->dtype, to, variable_bytes(variable)};
        rc = strategy_read(strategy, (int)i, to, err);
        to += aligned(variable_bytes(variable));
    }
    if (rc == 0)
        *ret_snapshot = snapshot;
    else
        snapshot_done(&snapshot);
    return rc;
}

void snapshot_done(struct snapshot *snapshot)
{
    free(snapshot->tensors);
    free(snapshot->memory);
    *snapshot = (struct snapshot){.n = 0};
}

uint64_t snapshot_hash(const struct safetensor *tensor)
{
    return hash64(tensor->data, tensor->bytes, hash64(tensor->name, strlen(tensor->name), 0));
}
