/* layer_init.h: how a layer's weights or biases begin: torch.nn.init's functions, without their
 * underscore, with their arguments and defaults. A layer without one has PyTorch's own beginning.
 */
#ifndef PROTO_LAYER_INIT_H
#define PROTO_LAYER_INIT_H

#include <stdbool.h>

enum layer_init_type {
    LAYER_INIT_CONSTANT,
    LAYER_INIT_UNIFORM,
    LAYER_INIT_NORMAL,
    LAYER_INIT_XAVIER_UNIFORM,
    LAYER_INIT_XAVIER_NORMAL,
    LAYER_INIT_KAIMING_UNIFORM,
    LAYER_INIT_KAIMING_NORMAL,
    LAYER_INIT_TYPE_COUNT
};

enum nonlinearity {
    NONLINEARITY_LINEAR,
    NONLINEARITY_SIGMOID,
    NONLINEARITY_TANH,
    NONLINEARITY_RELU,
    NONLINEARITY_LEAKY_RELU,
    NONLINEARITY_COUNT
};

struct layer_init {
    enum layer_init_type type;
    double val;                     /* constant */
    double a, b;                    /* uniform: from a to b; kaiming: a is leaky_relu's slope */
    double mean, std;               /* normal */
    double gain;                    /* xavier */
    bool fan_out;                   /* kaiming: else fan_in */
    enum nonlinearity nonlinearity; /* kaiming */
};

#endif
