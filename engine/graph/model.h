/* model.h: what of a model does not depend on the batch: its variables.
 *
 * A variable is a tensor that outlives a step: a parameter, a buffer, a parameter's gradient, the
 * optimizer's state for a parameter. They are numbered once, when the model is built; every graph
 * of the model (a batch size, training or evaluation) refers to them by that number, so that every
 * plan puts them at the same place.
 */
#ifndef ENGINE_GRAPH_MODEL_H
#define ENGINE_GRAPH_MODEL_H

#include "engine/base/arena.h"
#include "engine/base/dtype.h"
#include "engine/base/shape.h"
#include "proto/err.h"
#include "proto/job.h"

enum variable_kind { VARIABLE_PARAMETER, VARIABLE_BUFFER, VARIABLE_GRADIENT, VARIABLE_OPTIMIZER };

enum init_kind { INIT_ZERO, INIT_ONE, INIT_UNIFORM, INIT_NORMAL, INIT_CONSTANT, INIT_UNIT };
struct init_rule {
    enum init_kind kind;
    double
        bound; /* INIT_UNIFORM: U(center - bound, center + bound); INIT_NORMAL: N(center, bound²) */
    double center; /* INIT_CONSTANT: every element; INIT_UNIT: N(0, 1), divided by its L2 norm */
};

struct variable {
    const char *name; /* the state_dict's key: "conv1.weight"; "conv1.weight.grad";
                         "conv1.weight.momentum_buffer" */
    struct shape shape;
    enum dtype dtype;
    enum variable_kind kind;
    int layer;    /* a parameter's or buffer's: index into the job's layers; else -1 */
    int of;       /* the parameter that a gradient or optimizer state belongs to, else -1 */
    int gradient; /* a parameter's gradient; -1: none flows to it, it is never updated */
    int state;    /* a parameter's first variable of optimizer state; -1: none */
    struct init_rule init;
    bool padded; /* row padding_row begins as zero all the same */
    int64_t padding_row;
};

enum { OPTIMIZER_MAX_STATE = 3, MODEL_MAX_INPUTS = 2 * LIMIT_INPUTS };

/* An array of a batch: [N, shape]. */
struct model_input {
    const char *name;   /* the document's; "NAME.lengths" */
    struct shape shape; /* of one sample; [] for lengths */
    enum dtype dtype;   /* DTYPE_F32, DTYPE_I64 */
    bool shared;        /* every sample has the same: the document does not scatter it */
    int lengths;    /* the input that holds its lengths, 1 … shape.dim[0] each; -1: it has none */
    int of;         /* the input that these are the lengths of; -1: an input of the document */
    int64_t values; /* a layer looks its integers up in a table of that many rows: they lie in
                       [0, values); 0: none does */
    int trims; /* of lengths: a layer that pads to the longest of a chunk only; -1: none does */
    int whole; /* one that needs all steps of what such a layer makes; n_layers: the loss; -1 */
};

/* What train.record asks for: the statistics of a tensor as a hook of PyTorch's sees it, on each
 * device that has it: a layer's output and a parameter in forward; a gradient as the device's own
 * chunk makes it, before it is summed over the devices. */
enum recorded_kind {
    RECORDED_OUTPUT,
    RECORDED_OUTPUT_GRAD,
    RECORDED_PARAMETER,
    RECORDED_PARAMETER_GRAD
};
struct recorded {
    const char *name; /* the document's */
    enum recorded_kind kind;
    int index;  /* of the layer; of the parameter */
    bool flows; /* RECORDED_OUTPUT_GRAD: there is such a gradient */
};

enum statistic {
    STATISTIC_MEAN,
    STATISTIC_STD,  /* unbiased, as torch.std; NaN of one element */
    STATISTIC_NORM, /* L2 */
    STATISTIC_MAX,  /* the largest magnitude */
    STATISTIC_NANS, /* how many; all others are NaN unless it is 0 */
    STATISTIC_COUNT
};

/* A layer, as other layers and other stages see it. */
struct model_layer {
    int inputs[LIMIT_INPUTS]; /* a layer; -1 - i: input i of the model */
    int n_inputs;
    int first_variable;  /* of its parameters and buffers, which end where the next layer's begin */
    struct shape output; /* of one sample */
    enum dtype dtype;
    int lengths;     /* the input of the model that holds the output's lengths; -1: it has none */
    bool used;       /* the model's output depends on it */
    bool needs_grad; /* in training a gradient flows back to it: it is trained, or one before it */
};

struct loss_def;    /* engine/graph/op.h */
struct op_registry; /* engine/graph/op.h */

/* Parameters and buffers stand in the order of a PyTorch state_dict; then the gradients, in the
 * order in which backward makes them; then the optimizer's state. */
struct model {
    const struct job *job; /* borrowed, outlives the model */
    struct arena *arena;
    struct model_input *inputs; /* the document's in their order, then the lengths */
    int n_inputs;
    struct model_layer *layers; /* as many as the job's */
    struct variable *variables;
    size_t n_variables;
    int first_gradient, n_gradients; /* the gradients' run; 0: there is none */
    struct shape output;             /* of one sample: the last layer's */
    struct shape target;     /* of one sample: the output's, without its last dimension where
                                targets are class numbers */
    enum dtype target_dtype; /* DTYPE_I64: class numbers */
    int64_t classes; /* size of the output's class dimension where targets are class numbers (and of
                        a flat output else, where integer labels become one-hot rows); 0: none */
    int64_t n_parameters; /* elements of all parameters */
    const struct loss_def *loss;
    int64_t loss_terms;        /* terms of a sample: elements of its target */
    const int64_t *ignored;    /* the class number of targets that do not count; NULL: all do */
    struct recorded *recorded; /* in the document's order */
    int n_recorded;            /* 0: nothing is, or the job does not train */
};

/* The buckets in which gradients are all-reduced: a run of gradient variables in the order in which
 * backward makes them, at least bucket_bytes together but for the last. Returns the last variable
 * of the bucket that begins with gradient `first`, where the gradients end before `end`. A function
 * of the model alone, so that replicas with other batches, or resting, agree. */
int model_bucket_end(const struct model *model, int first, int end, size_t bucket_bytes);

/* Builds the layers once to find the variables and shapes. Errors: ERR_MODEL_SHAPE with the layer's
 * JSON Pointer, its name, what it got and what it wants; ERR_JOB_INVALID (/train/record/I);
 * ERR_NOMEM. */
int model_build(const struct job *job, const struct op_registry *ops, struct model **ret_model,
                struct err *err);
void model_free(struct model *model);

/* The layer that a variable belongs to, a gradient's or optimizer state's as its parameter's. */
int model_variable_layer(const struct model *model, int variable);

/* Of a variable that `parts` devices share: the elements that device `part` has, cut on cache
 * lines: `share`, but the last devices may have fewer, or none. */
struct variable_part {
    int64_t share, first, count;
} variable_part(const struct variable *variable, int parts, int part);

/* The variable of this name, or -1. */
int model_find(const struct model *model, const char *name);

#endif
