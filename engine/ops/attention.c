/* attention.c: torch.nn.MultiheadAttention of a sequence with itself, on [N, T, E].
 *
 * The projections are linear ops, so that their weight gradients can wait; the core between them is
 * an op of its own, which keeps no matrix of T by T: its gradient computes the attention weights
 * again, from the logarithm of each row's divisor. */
#include <inttypes.h>
#include <math.h>

#include "engine/ops/attr.h"
#include "engine/ops/grad.h"
#include "engine/ops/linear.h"
#include "engine/ops/registry.h"

struct parameters { /* NULL: absent */
    struct value *in_weight, *in_bias, *out_weight, *out_bias;
};

static int check(const struct build *build, const struct job_layer *layer,
                 const struct shape *input, struct err *err)
{
    const struct layer_selfattention *args = &layer->selfattention;
    char text[SHAPE_TEXT];
    build_shape_text(input, text);
    if (input->rank != 3)
        return build_shape_error(build, layer, err, "it takes [N, T, E], but its input is %s",
                                 text);
    if (args->embed_dim != 0 && args->embed_dim != input->dim[2])
        return build_shape_error(build, layer, err,
                                 "embed_dim is %" PRId64 ", but its input %s has %" PRId64,
                                 args->embed_dim, text, input->dim[2]);
    if (input->dim[2] % args->num_heads != 0)
        return build_shape_error(build, layer, err,
                                 "the %" PRId64 " features of its input %s cannot be parted in "
                                 "%" PRId64 " heads",
                                 input->dim[2], text, args->num_heads);
    return 0;
}

/* torch.nn.MultiheadAttention's, in the order and with the beginnings that it gives them. */
static int build_parameters(struct build *build, const struct job_layer *layer, int64_t size,
                            struct parameters *ret, struct err *err)
{
    const struct init_rule xavier = {.kind = INIT_UNIFORM,
                                     .bound = sqrt(6.0 / (4.0 * (double)size))};
    const struct init_rule linear = {.kind = INIT_UNIFORM, .bound = 1.0 / sqrt((double)size)};
    const struct init_rule zero = {.kind = INIT_ZERO};
    const struct {
        const char *suffix;
        struct shape shape;
        struct init_rule init;
        bool bias;
        struct value **ret;
    } rows[] = {
        {"in_proj_weight", SHAPE(3 * size, size), xavier, false, &ret->in_weight},
        {"in_proj_bias", SHAPE(3 * size), zero, true, &ret->in_bias},
        {"out_proj.weight", SHAPE(size, size), linear, false, &ret->out_weight},
        {"out_proj.bias", SHAPE(size), zero, true, &ret->out_bias},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].bias && !layer->selfattention.bias)
            continue;
        *rows[i].ret =
            build_parameter(build, layer, rows[i].suffix, rows[i].shape, rows[i].init, err);
        if (*rows[i].ret == NULL)
            return err->code;
    }
    return 0;
}

static int build_core(struct build *build, const struct job_layer *layer, struct value *qkv,
                      struct value **ret_out, struct err *err)
{
    const struct layer_selfattention *args = &layer->selfattention;
    bool training = build_training(build);
    const struct attention_attr attr = {.heads = args->num_heads,
                                        .causal = args->causal,
                                        .dropout = training ? args->dropout : 0,
                                        .layer = build_layer(build)};
    struct shape shape = qkv->shape;
    shape.dim[2] /= 3;
    struct node *node = build_node(build, "attention", PHASE_FORWARD, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, qkv);
    *ret_out = build_out(build, node, shape, DTYPE_F32, err);
    if (*ret_out == NULL)
        return err->code;
    const struct shape rows = SHAPE(shape.dim[0], attr.heads, shape.dim[1]);
    return training && build_out(build, node, rows, DTYPE_F32, err) == NULL ? err->code : 0;
}

static int self_attention_build(struct build *build, const struct job_layer *layer,
                                struct value *const *in, int n_in, struct value **ret_out,
                                struct err *err)
{
    (void)n_in;
    struct parameters parameters = {0};
    struct value *qkv = NULL, *heads = NULL;
    int rc = check(build, layer, &in[0]->shape, err);
    if (rc == 0)
        rc = build_parameters(build, layer, in[0]->shape.dim[2], &parameters, err);
    if (rc == 0)
        rc = linear_apply(build, in[0], parameters.in_weight, parameters.in_bias, &qkv, err);
    if (rc == 0)
        rc = build_core(build, layer, qkv, &heads, err);
    if (rc == 0)
        rc = linear_apply(build, heads, parameters.out_weight, parameters.out_bias, ret_out, err);
    return rc;
}

static int attention_grad(struct build *build, const struct node *node,
                          struct value *const *out_grad, struct value **in_grad, struct err *err)
{
    struct node *grad = build_grad_node(build, "attention_grad", PHASE_INPUT_GRAD, node, err);
    if (grad == NULL)
        return err->code;
    build_in(grad, node->in[0]);
    build_in(grad, out_grad[0]);
    build_in(grad, node->out[0]);
    build_in(grad, node->out[1]);
    in_grad[0] = build_out(build, grad, node->in[0]->shape, DTYPE_F32, err);
    return in_grad[0] == NULL ? err->code : 0;
}

/* Of one product of T by E with E by T, in all heads; a causal one has half of the pairs. */
static double product_flops(const struct node *node)
{
    const struct attention_attr *attr = node->attr;
    const struct shape *qkv = &node->in[0]->shape;
    double pairs = (double)qkv->dim[1] * (double)(attr->causal ? qkv->dim[1] + 1 : qkv->dim[1]);
    return 2.0 * (double)qkv->dim[0] * pairs * (double)(qkv->dim[2] / 3) / (attr->causal ? 2 : 1);
}

static double attention_flops(const struct node *node)
{
    return 2 * product_flops(node);
}

static double attention_grad_flops(const struct node *node)
{
    return 5 * product_flops(node);
}

const struct op_def op_attention = {.name = "attention",
                                    .build = self_attention_build,
                                    .grad = attention_grad,
                                    .flops = attention_flops,
                                    .low = {LOW_ALWAYS, 1, 1}};
const struct op_def op_attention_grad = {
    .name = "attention_grad", .flops = attention_grad_flops, .low = {LOW_ALWAYS, 7, 1}};
