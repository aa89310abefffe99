/* layer_weights.h: the weight and bias of Linear, Conv2d, Embedding. Private to engine/ops. */
#ifndef ENGINE_OPS_LAYER_WEIGHTS_H
#define ENGINE_OPS_LAYER_WEIGHTS_H

#include "engine/graph/op.h"

struct layer_weights {
    struct value *parameter; /* "weight"; "weight_orig" under spectral_norm */
    struct value *weight;    /* what the layer uses: the parameter, or that over its norm */
    struct value *bias;      /* NULL: none */
};

/* Makes them, in the order of a PyTorch state_dict. `init` is the beginning of both, `shape` the
 * weight's; a bias has its first dimension. */
int layer_weights_build(struct build *build, const struct job_layer *layer, struct shape shape,
                        struct init_rule init, bool bias, struct layer_weights *ret_weights,
                        struct err *err);

#endif
