/* job_init.c: the keys of a layer's weight_init and bias_init (layer_init.h). */
#include "proto/job.h"
#include "proto/job_rows.h"

static const struct field constant_rows[] = {
    {"val", FIELD_NUMBER, "Of every element", AT(layer_init, val), REQUIRED,
     REALS(-REAL_MAX, REAL_MAX)},
    {0},
};

static const struct field uniform_rows[] = {
    {"a", FIELD_NUMBER, "The least", AT(layer_init, a), DEFAULT("0"), REALS(-REAL_MAX, REAL_MAX)},
    {"b", FIELD_NUMBER, "The largest", AT(layer_init, b), DEFAULT("1"), REALS(-REAL_MAX, REAL_MAX)},
    {0},
};

static const struct field normal_rows[] = {
    {"mean", FIELD_NUMBER, "As in PyTorch", AT(layer_init, mean), DEFAULT("0"),
     REALS(-REAL_MAX, REAL_MAX)},
    {"std", FIELD_NUMBER, "As in PyTorch", AT(layer_init, std), DEFAULT("1"), REALS(0, REAL_MAX)},
    {0},
};

static const struct field xavier_rows[] = {
    {"gain", FIELD_NUMBER, "As in PyTorch", AT(layer_init, gain), DEFAULT("1"),
     REALS(-REAL_MAX, REAL_MAX)},
    {0},
};

static const struct field kaiming_rows[] = {
    {"a", FIELD_NUMBER, "leaky_relu's slope below 0", AT(layer_init, a), DEFAULT("0"),
     REALS(-REAL_MAX, REAL_MAX)},
    {"mode", FIELD_CHOICE, "Whether the forward or the backward pass keeps its magnitude",
     AT(layer_init, fan_out), DEFAULT("\"fan_in\""),
     CHOICES(OPTION("fan_in", false), OPTION("fan_out", true))},
    {"nonlinearity", FIELD_CHOICE, "What follows the layer", AT(layer_init, nonlinearity),
     DEFAULT("\"leaky_relu\""),
     CHOICES(OPTION("linear", NONLINEARITY_LINEAR), OPTION("sigmoid", NONLINEARITY_SIGMOID),
             OPTION("tanh", NONLINEARITY_TANH), OPTION("relu", NONLINEARITY_RELU),
             OPTION("leaky_relu", NONLINEARITY_LEAKY_RELU))},
    {0},
};

static const struct choice types[] = {
    {"constant", LAYER_INIT_CONSTANT, constant_rows, NULL},
    {"uniform", LAYER_INIT_UNIFORM, uniform_rows, NULL},
    {"normal", LAYER_INIT_NORMAL, normal_rows, NULL},
    {"xavier_uniform", LAYER_INIT_XAVIER_UNIFORM, xavier_rows, NULL},
    {"xavier_normal", LAYER_INIT_XAVIER_NORMAL, xavier_rows, NULL},
    {"kaiming_uniform", LAYER_INIT_KAIMING_UNIFORM, kaiming_rows, NULL},
    {"kaiming_normal", LAYER_INIT_KAIMING_NORMAL, kaiming_rows, NULL},
    {0},
};

static const struct field rows[] = {
    {"type", FIELD_CHOICE, "A function of torch.nn.init", AT(layer_init, type), REQUIRED,
     .choices = types},
    {0},
};

const struct object_def job_layer_init_object = {
    .what = "an initialisation", .fields = rows, .tagged = true, .shared = "initialisation"};
