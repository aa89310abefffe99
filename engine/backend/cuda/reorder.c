/* reorder.c: the same tensor in another layout (the planner puts it where two kernels disagree) or,
 * cast, in another type as it lies. */
#include "engine/backend/cuda/own.h"

/* in[1] is the layout of the output. */
static int reorder_query(const struct node *node, const struct layout *const *in,
                         struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    (void)node;
    (void)arena;
    (void)err;
    *ret_choice = (struct kernel_choice){
        .in = {in[0]}, .out = {in[1]}, .inplace = {-1, -1, -1, -1, -1}, .impl = "own"};
    return 0;
}

/* [N, C, pixels] and [N, pixels, C], either way; between equal layouts a copy. */
static int reorder_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct layout *from = own->choice->in[0], *to = own->choice->out[0];
    cudaStream_t stream = own->device->compute;
    if (from->channels_last == to->channels_last)
        return own_launched(cudaMemcpyAsync(args->out[0], args->in[0], from->bytes,
                                            cudaMemcpyDeviceToDevice, stream),
                            err);
    int64_t n = from->shape.dim[0], channels = from->shape.dim[1];
    int64_t pixels = from->shape.dim[2] * from->shape.dim[3];
    int64_t rows = from->channels_last ? pixels : channels;
    return own_launched(launch_transpose(own_is_bf16(from), args->in[0], args->out[0], n, rows,
                                         channels * pixels / rows, stream),
                        err);
}

static int cast_query(const struct node *node, const struct layout *const *in, struct arena *arena,
                      struct kernel_choice *ret_choice, struct err *err)
{
    const struct layout *to =
        cuda_layout_image(arena, &node->out[0]->shape, node->out[0]->dtype, in[0]->channels_last);
    const struct layout *both[] = {in[0], to};
    if (!to)
        return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
    return reorder_query(node, both, arena, ret_choice, err);
}

static int cast_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct layout *to = own->choice->out[0];
    return own_launched(launch_cast(own_is_bf16(to), args->in[0], args->out[0], own_count(to),
                                    own->device->compute),
                        err);
}

const struct kernel kernel_cast = {"cast", cast_query, own_create, cast_run, own_destroy};
const struct kernel kernel_reorder = {"reorder", reorder_query, own_create, reorder_run,
                                      own_destroy};
