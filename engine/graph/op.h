/* op.h: what an op is: one row of engine/ops/ops.def, one file in engine/ops. */
#ifndef ENGINE_GRAPH_OP_H
#define ENGINE_GRAPH_OP_H

#include "engine/graph/graph.h"

/* The graph under construction, as a layer's build function sees it. */
struct build;

struct op_def {
    const char *name; /* "conv2d"; a backend's kernel carries the same */

    /* The layer type that this op implements, or -1. build makes the layer's variables and nodes.
     * `in` holds n_in values. Errors: ERR_MODEL_SHAPE (build_shape_error). */
    int layer;
    int (*build)(struct build *build, const struct job_layer *layer, struct value *const *in,
                 int n_in, struct value **ret_out, struct err *err);

    /* Appends nodes that compute the gradients of `node` from those of its outputs (out_grad[i]
     * NULL: none flows). Sets in_grad[i] for each input that needs one; a parameter's gradient is
     * written to its gradient variable instead (build_gradient). NULL: nothing flows back. */
    int (*grad)(struct build *build, const struct node *node, struct value *const *out_grad,
                struct value **in_grad, struct err *err);

    double (*flops)(const struct node *node); /* NULL: not counted */

    bool view;        /* out[0] is in[0]'s memory, in plain layout, with another shape; no kernel */
    unsigned mutates; /* bit i: in[i] is written in place */
};

struct op_registry {
    const struct op_def *const *ops;
    size_t n_ops;
};

const struct op_def *op_find(const struct op_registry *ops, const char *name);

/* For build and grad functions. Each returns NULL with `err` set when memory is short. */
bool build_training(const struct build *build);
struct value *build_parameter(struct build *build, const struct job_layer *layer,
                              const char *suffix, struct shape shape, struct init_rule init,
                              struct err *err);
struct value *build_buffer(struct build *build, const struct job_layer *layer, const char *suffix,
                           struct shape shape, enum dtype dtype, struct init_rule init,
                           struct err *err);
/* The gradient variable of a parameter. */
struct value *build_gradient(struct build *build, const struct value *parameter, struct err *err);
/* A node with its output values still to be made. `attr` is copied into the arena. */
struct node *build_node(struct build *build, const char *op, enum phase phase, const void *attr,
                        size_t attr_size, struct err *err);
void build_in(struct node *node, struct value *value); /* value NULL: absent */
struct value *build_out(struct build *build, struct node *node, struct shape shape,
                        enum dtype dtype, struct err *err);
void build_out_value(struct node *node, struct value *value); /* a variable */
/* ERR_MODEL_SHAPE at /model/layers/I: "layer \"fc\" (Linear): …". */
int build_shape_error(const struct build *build, const struct job_layer *layer, struct err *err,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
