/* op.h: what an op is: one row of engine/ops/ops.def, one file in engine/ops. */
#ifndef ENGINE_GRAPH_OP_H
#define ENGINE_GRAPH_OP_H

#include "engine/graph/graph.h"

/* The graph under construction, as a layer's build function sees it. */
struct build;

/* In which type an op runs where the job's precision is low (bf16): precision.c. */
enum low_rule {
    LOW_NEVER,    /* wants F32 */
    LOW_ALWAYS,   /* computes in low precision, its sums in F32: products; also where all that it
                     reads and writes is F32 */
    LOW_AS_FIRST, /* keeps the type in which in[0] comes */
    LOW_IF_ALL,   /* the same of several inputs; F32 where one of them is, as PyTorch promotes */
};

enum { LOW_EVERY = (1u << NODE_MAX_IN) - 1 };

struct op_def {
    const char *name; /* "conv2d"; a backend's kernel carries the same */

    /* A layer's op: makes the layer's variables and nodes and sets *ret_out. `in` holds n_in
     * values, as many as job_parse lets the layer have. Errors: ERR_MODEL_SHAPE
     * (build_shape_error), ERR_NOMEM.
     */
    int (*build)(struct build *build, const struct job_layer *layer, struct value *const *in,
                 int n_in, struct value **ret_out, struct err *err);

    /* Appends nodes that compute the gradients of `node` from those of its outputs (out_grad[i]
     * NULL: none flows). Sets in_grad[i] for each input that needs one; a parameter's gradient is
     * written to its gradient variable instead (build_gradient). NULL: nothing flows back. Where
     * weight gradient and input gradient are two nodes, the weight gradient comes first: then the
     * activation that it reads is dead before the input gradient needs memory, and its all-reduce
     * starts sooner. */
    int (*grad)(struct build *build, const struct node *node, struct value *const *out_grad,
                struct value **in_grad, struct err *err);

    double (*flops)(const struct node *node); /* NULL: not counted */

    bool integers;    /* a layer that takes DTYPE_I64; others are given DTYPE_F32 only */
    bool view;        /* out[0] is in[0]'s memory, in plain layout, with another shape; no kernel */
    bool send;        /* out[0] is in[0] where other stages find it; no kernel of its own */
    unsigned mutates; /* bit i: in[i] is written in place */
    bool shared;      /* every replica runs it, in its turn of one order: those that rest too; an
                         input that is an activation is absent then, and stands for zeros */
    bool kept;        /* its outputs are never made a second time */
    struct {
        enum low_rule rule;
        unsigned in, out; /* bit i: in[i], out[i] is low when the op is; the others (a norm's
                             statistics and parameters, gradients of parameters) stay F32 */
    } low;
};

/* A loss, the last op of forward. */
struct loss_def {
    /* Sets the model's target, target_dtype, classes and loss_terms from its output's shape.
     * Errors: ERR_MODEL_SHAPE. */
    int (*target)(struct model *model, struct err *err);
    /* What a mean over n samples of these targets (on the host) divides by. NULL: n *
     * model->loss_terms. */
    double (*divisor)(const struct model *model, const void *targets, int64_t n);
    /* Appends the loss of build_graph's output and target: *ret_loss as graph->loss; *ret_grad the
     * output's gradient where ret_grad is not NULL. */
    int (*build)(struct build *build, struct value *output, struct value *target,
                 struct value **ret_loss, struct value **ret_grad, struct err *err);
    /* Appends what the host reads as the prediction. NULL: there is none. */
    int (*predict)(struct build *build, struct value *output, struct value **ret_prediction,
                   struct err *err);
};

/* What an update has to do with. */
struct update {
    struct value *parameter, *gradient;
    struct value *scale; /* F32 [1]: what the gradient is multiplied by first; NULL: nothing */
    struct value *state[OPTIMIZER_MAX_STATE]; /* as the optimizer named it */
};

/* An optimizer. */
struct optimizer_def {
    /* Names of the state that a parameter needs under this job ("momentum_buffer"), its shape the
     * parameter's: sets [OPTIMIZER_MAX_STATE], NULL where one is not needed. */
    void (*state)(const struct job_optimizer *optimizer, const char **ret_names);
    /* Appends the update of a parameter. */
    int (*build)(struct build *build, const struct update *update, struct err *err);
};

struct op_registry {
    const struct op_def *const *ops;
    size_t n_ops;
    const struct op_def *const *layers;            /* by enum layer_type */
    const struct loss_def *const *losses;          /* by enum loss_type */
    const struct optimizer_def *const *optimizers; /* by enum optimizer_type */
    const struct op_fusion *fusions; /* fuse.h; none: every layer is a node of its own */
    size_t n_fusions;
    /* Appends what keeps the norm of the gradients from first to last (NULL: this stage has none),
     * together with those of other stages, within clip_grad_norm: struct update's scale. */
    int (*clip)(struct build *build, struct value *first, struct value *last,
                struct value **ret_scale, struct err *err);
    /* Appends what gives a replica that has updated its part of a parameter the others'. */
    int (*gather_parts)(struct build *build, struct value *parameter, int64_t share,
                        struct err *err);
    /* Appends the statistics of x, F64 [STATISTIC_COUNT], in the given phase. `scaled`: those of
     * step->gradient_scale * x. */
    int (*statistics)(struct build *build, struct value *x, enum phase phase, bool scaled,
                      struct value **ret_statistics, struct err *err);
};

const struct op_def *op_find(const struct op_registry *ops, const char *name); /* or NULL */

/* For the functions above. A pointer is NULL, with `err` set, where memory is short. */
const struct job *build_job(const struct build *build);
bool build_training(const struct build *build);
bool build_keeps_buffers(const struct build *build); /* as graph_options */
int build_replicas(const struct build *build);
int build_layer(const struct build *build); /* index of the layer that is being built */
struct value *build_parameter(struct build *build, const struct job_layer *layer,
                              const char *suffix, struct shape shape, struct init_rule init,
                              struct err *err);
struct value *build_buffer(struct build *build, const struct job_layer *layer, const char *suffix,
                           struct shape shape, enum dtype dtype, struct init_rule init,
                           struct err *err);
/* Row `row` of a parameter begins as zero, whatever its rule. */
void build_zero_row(struct build *build, const struct value *parameter, int64_t row);
/* The gradient variable of a parameter, about to be written by the next node. */
struct value *build_gradient(struct build *build, const struct value *parameter, struct err *err);
/* Appends a node; its inputs and outputs are still to be given. `attr` is copied into the arena;
 * NULL: none. */
struct node *build_node(struct build *build, const char *op, enum phase phase, const void *attr,
                        size_t attr_size, struct err *err);
/* The same for a gradient: layer, name and attributes are those of `forward`. */
struct node *build_grad_node(struct build *build, const char *op, enum phase phase,
                             const struct node *forward, struct err *err);
void build_in(struct node *node, struct value *value); /* value NULL: absent */
/* A new output. A forward node's has the lengths of the first input whose samples and steps
 * (dimensions 0 and 1) it keeps. */
struct value *build_out(struct build *build, struct node *node, struct shape shape,
                        enum dtype dtype, struct err *err);
/* An output that is a variable; NULL: not wanted. */
void build_out_value(struct node *node, struct value *value);
/* The integers of `value` are looked up in a table of that many rows: where it is an input of the
 * model, its data is checked for it. */
void build_lookup(struct build *build, const struct value *value, int64_t rows);
/* ERR_MODEL_SHAPE at /model/layers/I: "layer \"fc\" (Linear): …". */
int build_shape_error(const struct build *build, const struct job_layer *layer, struct err *err,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A shape with N for the batch, as errors show it: "[N, 128]"; returns `buf`. */
const char *build_shape_text(const struct shape *shape, char buf[static SHAPE_TEXT]);
#endif
