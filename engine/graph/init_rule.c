/* init_rule.c: torch.nn.init's functions as rules: a parameter's shape decides the magnitude.
 *
 * https://pytorch.org/docs/stable/nn.init.html; fans as in _calculate_fan_in_and_fan_out. */
#include <math.h>
#include <string.h>

#include "engine/graph/build.h"

struct fans {
    double in, out;
};

/* Of a weight [out, in, kernel…]. */
static struct fans count_fans(const struct shape *shape)
{
    double receptive = 1;
    for (int i = 2; i < shape->rank; i++)
        receptive *= (double)shape->dim[i];
    return (struct fans){(double)shape->dim[1] * receptive, (double)shape->dim[0] * receptive};
}

static double gain(const struct layer_init *init)
{
    static const double gains[NONLINEARITY_COUNT] = {
        [NONLINEARITY_LINEAR] = 1,
        [NONLINEARITY_SIGMOID] = 1,
        [NONLINEARITY_TANH] = 5.0 / 3,
        [NONLINEARITY_RELU] = M_SQRT2,
    };
    if (init->nonlinearity == NONLINEARITY_LEAKY_RELU)
        return sqrt(2 / (1 + init->a * init->a));
    return gains[init->nonlinearity];
}

/* The standard deviation of the kaiming functions and of the xavier ones. */
static double kaiming(const struct layer_init *init, const struct fans *fans)
{
    return gain(init) / sqrt(init->fan_out ? fans->out : fans->in);
}

static double xavier(const struct layer_init *init, const struct fans *fans)
{
    return init->gain * sqrt(2 / (fans->in + fans->out));
}

static struct init_rule constant(const struct layer_init *init, const struct fans *fans)
{
    (void)fans;
    return (struct init_rule){INIT_CONSTANT, 0, init->val};
}

static struct init_rule uniform(const struct layer_init *init, const struct fans *fans)
{
    (void)fans;
    return (struct init_rule){INIT_UNIFORM, (init->b - init->a) / 2, (init->a + init->b) / 2};
}

static struct init_rule normal(const struct layer_init *init, const struct fans *fans)
{
    (void)fans;
    return (struct init_rule){INIT_NORMAL, init->std, init->mean};
}

/* U(-x, x) has the standard deviation x / √3. */
static struct init_rule xavier_uniform(const struct layer_init *init, const struct fans *fans)
{
    return (struct init_rule){INIT_UNIFORM, sqrt(3) * xavier(init, fans), 0};
}

static struct init_rule xavier_normal(const struct layer_init *init, const struct fans *fans)
{
    return (struct init_rule){INIT_NORMAL, xavier(init, fans), 0};
}

static struct init_rule kaiming_uniform(const struct layer_init *init, const struct fans *fans)
{
    return (struct init_rule){INIT_UNIFORM, sqrt(3) * kaiming(init, fans), 0};
}

static struct init_rule kaiming_normal(const struct layer_init *init, const struct fans *fans)
{
    return (struct init_rule){INIT_NORMAL, kaiming(init, fans), 0};
}

static const struct {
    struct init_rule (*rule)(const struct layer_init *init, const struct fans *fans);
    bool fans; /* it needs a matrix or more */
} functions[LAYER_INIT_TYPE_COUNT] = {
    [LAYER_INIT_CONSTANT] = {constant, false},
    [LAYER_INIT_UNIFORM] = {uniform, false},
    [LAYER_INIT_NORMAL] = {normal, false},
    [LAYER_INIT_XAVIER_UNIFORM] = {xavier_uniform, true},
    [LAYER_INIT_XAVIER_NORMAL] = {xavier_normal, true},
    [LAYER_INIT_KAIMING_UNIFORM] = {kaiming_uniform, true},
    [LAYER_INIT_KAIMING_NORMAL] = {kaiming_normal, true},
};

int init_rule_choose(const struct build *build, const struct job_layer *layer, const char *suffix,
                     const struct shape *shape, struct init_rule *rule, struct err *err)
{
    bool bias = strstr(suffix, "bias") != NULL; /* "bias", "bias_hh_l0", "in_proj_bias" */
    const struct layer_init *init = bias ? &layer->bias_init : &layer->weight_init;
    struct fans fans = {0, 0};
    if (bias ? !layer->has_bias_init : !layer->has_weight_init)
        return 0;
    if (functions[init->type].fans && shape->rank < 2)
        return build_shape_error(build, layer, err,
                                 "%s begins by its fan in and fan out, which only a parameter of 2 "
                                 "or more dimensions has: \"%s\" is %s",
                                 bias ? "bias_init" : "weight_init", suffix,
                                 shape_format(shape, (char[SHAPE_TEXT]){0}));
    if (functions[init->type].fans)
        fans = count_fans(shape);
    *rule = functions[init->type].rule(init, &fans);
    return 0;
}
