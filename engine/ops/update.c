#include "engine/ops/update.h"

#include <fnmatch.h>

int update_node(struct build *build, const char *op, const void *attr, size_t attr_size,
                const struct update *update, struct err *err)
{
    struct node *node = build_node(build, op, PHASE_UPDATE, attr, attr_size, err);
    if (node == NULL)
        return err->code;
    build_in(node, update->parameter);
    build_in(node, update->gradient);
    build_in(node, update->scale);
    for (int i = 0; i < OPTIMIZER_MAX_STATE; i++)
        build_in(node, update->state[i]);
    while (node->in[node->n_in - 1] == NULL)
        node->n_in--;
    return 0;
}

double update_weight_decay(const struct build *build, const struct value *parameter)
{
    const struct job_optimizer *args = &build_job(build)->optimizer;
    for (size_t i = 0; i < args->n_no_decay; i++)
        if (fnmatch(args->no_decay[i], parameter->name, 0) == 0)
            return 0;
    return args->weight_decay;
}
