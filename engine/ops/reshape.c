/* reshape.c: another shape for the same elements: a view: torch.nn.Flatten, and Reshape,
 * which gives every sample another shape. */
#include <inttypes.h>

#include "engine/ops/grad.h"
#include "engine/ops/registry.h"

static int flatten_shape(const struct build *build, const struct job_layer *layer,
                         const struct shape *input, struct shape *ret_shape, struct err *err)
{
    int64_t start = layer->flatten.start_dim, end = layer->flatten.end_dim;
    char text[SHAPE_TEXT];
    if (end < 0)
        end += input->rank;
    if (start < 1 || start > end || end >= input->rank)
        return build_shape_error(build, layer, err,
                                 "start_dim %" PRId64 ", end_dim %" PRId64
                                 " are no range of its input %s behind the batch dimension",
                                 layer->flatten.start_dim, layer->flatten.end_dim,
                                 build_shape_text(input, text));
    *ret_shape = (struct shape){.rank = input->rank - (int)(end - start)};
    for (int from = 0, to = 0; from < input->rank; from++) {
        bool joins = from > start && from <= end;
        to += from > 0 && !joins;
        ret_shape->dim[to] = input->dim[from] * (joins ? ret_shape->dim[to] : 1);
    }
    return 0;
}

static int reshape_shape(const struct build *build, const struct job_layer *layer,
                         const struct shape *input, struct shape *ret_shape, struct err *err)
{
    const struct job_shape *wanted = &layer->reshape.shape;
    struct shape sample = {.rank = (int)wanted->rank}, shape = {.rank = sample.rank + 1};
    int64_t count = shape_count(input) / input->dim[0], *open = NULL;
    char from[SHAPE_TEXT], to[SHAPE_TEXT];
    shape.dim[0] = input->dim[0];
    for (int i = 0; i < sample.rank; i++) {
        shape.dim[1 + i] = sample.dim[i] = wanted->dim[i];
        if (wanted->dim[i] < 0)
            open = &shape.dim[1 + i];
    }
    int64_t rest = 1;
    for (int i = 0; i < sample.rank && rest > 0; i++)
        if (wanted->dim[i] > 0 && __builtin_mul_overflow(rest, wanted->dim[i], &rest))
            rest = 0;
    if (rest == 0 || (open == NULL ? rest != count : count % rest != 0))
        return build_shape_error(build, layer, err,
                                 "its input %s has %" PRId64 " elements a sample, and shape %s "
                                 "cannot hold them",
                                 build_shape_text(input, from), count, shape_format(&sample, to));
    if (open != NULL)
        *open = count / rest;
    *ret_shape = shape;
    return 0;
}

static int (*const shapes[LAYER_TYPE_COUNT])(const struct build *build,
                                             const struct job_layer *layer,
                                             const struct shape *input, struct shape *ret_shape,
                                             struct err *err) = {
    [LAYER_FLATTEN] = flatten_shape,
    [LAYER_RESHAPE] = reshape_shape,
};

static int reshape_build(struct build *build, const struct job_layer *layer,
                         struct value *const *in, int n_in, struct value **ret_out, struct err *err)
{
    (void)n_in;
    struct shape shape;
    int rc = shapes[layer->type](build, layer, &in[0]->shape, &shape, err);
    if (rc != 0)
        return rc;
    if (shape_equal(&shape, &in[0]->shape)) {
        *ret_out = in[0];
        return 0;
    }
    struct node *node = build_node(build, "reshape", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    build_in(node, in[0]);
    *ret_out = build_out(build, node, shape, in[0]->dtype, err);
    return *ret_out == NULL ? err->code : 0;
}

static int reshape_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                        struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "reshape", out_grad[0], NULL, in_grad, err);
}

const struct op_def op_reshape = {.name = "reshape",
                                  .build = reshape_build,
                                  .grad = reshape_grad,
                                  .view = true,
                                  .low = {LOW_AS_FIRST, 1, 1}};
