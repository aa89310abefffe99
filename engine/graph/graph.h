/* graph.h: one step of one replica as values and nodes, in the order in which they run.
 *
 * graph_build makes the forward nodes from the job's layers, the loss, then the gradient nodes that
 * each op's `grad` appends, then all-reduce nodes where there are replicas, then one update node a
 * parameter. Forward, input gradient and weight gradient are separate nodes, so that a schedule is
 * only another order. All memory is in the graph's arena. PURE.
 *
 * A graph may hold one stage of a model that is split: its layers alone. What they read of other
 * stages is received, what other stages read of them is sent, and gradients go the other way. The
 * loss is in the last stage.
 */
#ifndef ENGINE_GRAPH_GRAPH_H
#define ENGINE_GRAPH_GRAPH_H

#include <stdbool.h>

#include "engine/graph/model.h"
#include "engine/graph/split.h"

enum { NODE_MAX_IN = 10, NODE_MAX_OUT = 5 }; /* LIMIT_INPUTS of a layer, recurrent_grad */

enum value_kind {
    VALUE_DATA,       /* model->inputs[input], a batch of it */
    VALUE_TARGET,     /* the batch's targets */
    VALUE_VARIABLE,   /* model->variables[variable] */
    VALUE_ACTIVATION, /* made by a node, lives in the arena */
    VALUE_RECEIVED,   /* made by another stage, there before the section that reads it */
    VALUE_SENT,       /* out[0] of a `send` node: other stages read it, plain */
};

struct value {
    int id;           /* index into graph->values */
    const char *name; /* the variable's, the input's, "target", the layer's of a value received;
                         NULL: an activation, or a gradient */
    struct shape shape;
    enum dtype dtype;
    enum value_kind kind;
    int variable;  /* VALUE_VARIABLE */
    int64_t first; /* VALUE_VARIABLE: the element of the variable, as the device has it, with
                      which this begins: `shape` is then a run of its elements */
    int input;     /* VALUE_DATA */
    struct value *lengths; /* DTYPE_I64 [N]: how many of each sample's steps (dimension 1) are
                              valid; NULL: all */
    bool trimmed;          /* in PyTorch it has the steps of its longest sample alone; set where the
                              model is being found */
    struct node *producer; /* NULL for data, targets and variables */
    bool needs_grad;       /* a trained parameter is upstream */
    struct value *grad;    /* its gradient as the nodes so far make it; NULL: none */
    bool output;           /* the host reads it after the step */
};

enum phase {
    PHASE_FORWARD,
    PHASE_RECOMPUTE,
    PHASE_INPUT_GRAD,
    PHASE_WEIGHT_GRAD,
    PHASE_REDUCE,
    PHASE_UPDATE
};

struct node {
    int id; /* index into graph->nodes */
    const struct op_def *op;
    const void *attr; /* the op's struct in engine/ops/attr.h, or NULL */
    const char *name; /* its layer's name; the parameter's for an update */
    int layer;        /* index into the job's layers; -1: none */
    enum phase phase;
    bool low; /* it runs in low precision: precision.c */
    int n_in, n_out;
    struct value *in[NODE_MAX_IN]; /* NULL where an optional input is absent */
    struct value *out[NODE_MAX_OUT];
};

/* Where a batch stands among those that are accumulated to one optimizer step. */
enum step_part {
    STEP_WHOLE,
    STEP_FIRST,
    STEP_MIDDLE,
    STEP_LAST,
    STEP_RECORD, /* behind the last: no samples, statistics of variables alone */
    STEP_END     /* behind that: no samples, the all-reduce and the update alone */
};

/* The output of a layer, between the stage that makes it and one that reads it. */
struct carried {
    int layer;
    int stage;           /* the other one */
    struct value *value; /* received: VALUE_RECEIVED; sent: VALUE_SENT, one for all its readers */
    struct value *grad; /* received: VALUE_SENT, what this stage adds to the value's gradient; sent:
                           VALUE_RECEIVED, what that reader adds; NULL: none flows */
};

struct graph_options {
    int64_t batch; /* samples of this replica's chunk; 0: the replica rests: it adds zeros to the
                      all-reduce and makes the same update */
    bool training; /* false: forward, loss and prediction only, in evaluation mode */
    enum step_part part; /* first, middle: no all-reduce, no update; middle, last: gradients are
                           added  to those of the batches before */
    bool keeps_buffers;  /* buffers stay as they are: another chunk's are the model's */
    bool pieces;         /* of a batch: the statistics of variables are STEP_RECORD's */
    int n_replicas;      /* > 1: gradients are all-reduced */
    int optimizer_parts; /* > 1: the optimizer's state is cut in so many, this replica has and
                            updates one, and gets the others' parameters */
    int optimizer_part;
    size_t bucket_bytes;       /* least size of an all-reduce's bucket */
    const struct split *split; /* borrowed, outlives the graph; NULL: the whole model */
    int stage;                 /* of split */
};

struct graph {
    struct arena *arena;
    const struct model *model;
    struct graph_options options;
    struct node **nodes;
    size_t n_nodes, nodes_capacity;
    struct value **values;
    size_t n_values, values_capacity;
    struct value **data;      /* [model->n_inputs]; those that no node reads need not be there */
    struct value *target;     /* both NULL when the replica rests; NULL but in the last stage */
    struct value **layers;    /* by layer: its output; where nothing reads it, only a shape; NULL: a
                                 layer that this stage neither has nor reads */
    struct value *output;     /* the last layer's; the host reads it when not training */
    struct value *loss;       /* F64 [1]: the SUM over the targets that count; under reduction
                                 none F64 [N], of a sample's */
    struct value *prediction; /* I64 as the target: arg max, where targets are class numbers and it
                                 is no training; else NULL. These three are the last stage's */
    struct value **recorded;  /* by model->recorded: F64 [STATISTIC_COUNT], where step->record asks;
                                 an entry NULL, or the array: this graph has none */
    struct carried *received, *sent; /* by layer, then by the other stage */
    int n_received, n_sent;
};

/* Errors: ERR_MODEL_SHAPE (incl. a BatchNorm in training with one value a channel), ERR_NOMEM. */
int graph_build(const struct model *model, const struct op_registry *ops,
                const struct graph_options *options, struct graph **ret_graph, struct err *err);
void graph_free(struct graph *graph);

/* What the sum of the losses of n samples with these targets (on the host) is divided by: under
 * `mean` the elements, or the class numbers that count with their weights, which may be 0; 1 under
 * `sum`. */
double graph_loss_divisor(const struct model *model, const void *targets, int64_t n);

/* Whether gradients are added to what is there; whether the window ends with an update. */
bool step_part_adds(enum step_part part);
bool step_part_ends(enum step_part part);
double graph_flops(const struct graph *graph);
/* The nodes as text, one a line: for tests and for reading. To be freed with free(). */
char *graph_dump(const struct graph *graph);

#endif
