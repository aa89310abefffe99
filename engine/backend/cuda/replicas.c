/* replicas.c: gather_replicas, sum_replicas, gather_parts: what a replica tells the others, and
 * what it hears. */
#include "engine/backend/cuda/own.h"
#include "engine/ops/attr.h"

static size_t count_of(const struct own *own)
{
    return (size_t)shape_count(&own->node->out[0]->shape);
}

/* A replica that rests has nothing to say. */
static int put(const struct own *own, float *to, const float *from, size_t count, struct err *err)
{
    cudaStream_t stream = own->device->compute;
    if (to == from)
        return 0;
    return own_launched(
        from ? cudaMemcpyAsync(to, from, count * sizeof *to, cudaMemcpyDeviceToDevice, stream)
             : cudaMemsetAsync(to, 0, count * sizeof *to, stream),
        err);
}

static const float *given(const struct own *own, const struct kernel_args *args)
{
    return own_in(own->node, 0) ? args->in[0] : NULL;
}

static int gather_replicas_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    struct collective *collective = args->collective;
    size_t count = count_of(own), share = count / (size_t)own->node->out[0]->shape.dim[0];
    size_t mine = collective ? (size_t)collective->rank * share : 0;
    float *all = args->out[0];
    int rc = put(own, all + mine, given(own, args), share, err);
    return rc || !collective ? rc : collective->all_gather(collective, all, count, share, err);
}

static int sum_replicas_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    struct collective *collective = args->collective;
    int rc = put(own, args->out[0], given(own, args), count_of(own), err);
    return rc || !collective ? rc
                             : collective->all_reduce(collective, args->out[0], count_of(own), err);
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
    if (rc == 0 && own_in(node, 0))
        ret_choice->inplace[0] = 0;
    return rc;
}

const struct kernel kernel_gather_replicas = {"gather_replicas", own_query_plain, own_create,
                                              gather_replicas_run, own_destroy};
const struct kernel kernel_sum_replicas = {"sum_replicas", sum_replicas_query, own_create,
                                           sum_replicas_run, own_destroy};
const struct kernel kernel_gather_parts = {"gather_parts", own_query_plain, own_create,
                                           gather_parts_run, own_destroy};
