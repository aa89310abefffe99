/* collective.c: gather_replicas, sum_replicas, gather_parts: what a replica tells the others, and
 * what it hears. */
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/ops/attr.h"

static size_t count_of(const struct own *own)
{
    return (size_t)shape_count(&own->node->out[0]->shape);
}

/* A replica that rests has nothing to say. */
static void put(float *to, const float *from, size_t count)
{
    if (!from)
        memset(to, 0, count * sizeof *to);
    else if (to != from)
        memcpy(to, from, count * sizeof *to);
}

static int gather_replicas_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    struct collective *collective = args->collective;
    size_t count = count_of(own), share = count / (size_t)own->node->out[0]->shape.dim[0];
    float *all = args->out[0];
    if (!collective) {
        put(all, args->in[0], share);
        return 0;
    }
    put(all + (size_t)collective->rank * share, args->in[0], share);
    return collective->all_gather(collective, all, count, share, err);
}

static int sum_replicas_run(void *state, const struct kernel_args *args, struct err *err)
{
    size_t count = count_of(state);
    struct collective *collective = args->collective;
    put(args->out[0], args->in[0], count);
    return collective ? collective->all_reduce(collective, args->out[0], count, err) : 0;
}

static int gather_parts_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct node *node = ((const struct own *)state)->node;
    const struct gather_parts_attr *attr = node->attr;
    struct collective *collective = args->collective;
    size_t count = (size_t)shape_count(&node->in[0]->shape);
    return collective
               ? collective->all_gather(collective, args->in[0], count, (size_t)attr->share, err)
               : 0;
}

static int sum_replicas_query(const struct node *node, const struct layout *const *in,
                              struct arena *arena, struct kernel_choice *ret_choice,
                              struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0 && node->in[0])
        ret_choice->inplace[0] = 0;
    return rc;
}

const struct kernel kernel_gather_replicas = {"gather_replicas", own_query_plain, own_create,
                                              gather_replicas_run, own_destroy};
const struct kernel kernel_sum_replicas = {"sum_replicas", sum_replicas_query, own_create,
                                           sum_replicas_run, own_destroy};
const struct kernel kernel_gather_parts = {"gather_parts", own_query_plain, own_create,
                                           gather_parts_run, own_destroy};
