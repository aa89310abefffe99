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

enum init_kind { INIT_ZERO, INIT_ONE, INIT_UNIFORM };
struct init_rule {
    enum init_kind kind;
    double bound; /* INIT_UNIFORM: U(-bound, bound) */
};

struct variable {
    const char *name; /* the state_dict's key: "conv1.weight"; "conv1.weight.grad";
                         "conv1.weight.momentum_buffer" */
    struct shape shape;
    enum dtype dtype;
    enum variable_kind kind;
    int of; /* the parameter that a gradient or optimizer state belongs to, else -1 */
    struct init_rule init;
};

/* Parameters and buffers stand in the order of a PyTorch state_dict; then the gradients, in the
 * order in which backward makes them; then the optimizer's state. */
struct model {
    const struct job *job; /* borrowed, outlives the model */
    struct arena *arena;
    struct variable *variables;
    size_t n_variables;
    struct shape output;     /* of one sample: the last layer's */
    struct shape target;     /* of one sample: [] for class numbers, else the output's */
    enum dtype target_dtype; /* DTYPE_I64: class numbers */
    int64_t classes; /* size of the output's class dimension under CrossEntropyLoss (and of a flat
                        output under MSELoss, where integer labels become one-hot rows); 0: none */
    int64_t n_parameters; /* elements of all parameters */
};

struct op_registry; /* engine/graph/op.h */

/* Builds the layers once to find the variables and shapes. Errors: ERR_MODEL_SHAPE with the layer's
 * JSON Pointer, its name, what it got and what it wants; ERR_NOMEM. */
int model_build(const struct job *job, const struct op_registry *ops, struct model **ret_model,
                struct err *err);
void model_free(struct model *model);

/* The variable of this name, or -1. */
int model_find(const struct model *model, const char *name);

#endif
