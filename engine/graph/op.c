#include "engine/graph/op.h"

#include <string.h>

const struct op_def *op_find(const struct op_registry *ops, const char *name)
{
    for (size_t i = 0; i < ops->n_ops; i++)
        if (strcmp(ops->ops[i]->name, name) == 0)
            return ops->ops[i];
    return NULL;
}
