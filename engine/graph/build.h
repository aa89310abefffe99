/* build.h: the graph under construction. Private to engine/graph; ops see op.h.
 *
 * Layers are built in the job's order every time, so their variables are met in the same order
 * every time: the first time (model_build) they are made, later they are only counted through.
 */
#ifndef ENGINE_GRAPH_BUILD_H
#define ENGINE_GRAPH_BUILD_H

#include "engine/graph/op.h"

struct build {
    const struct op_registry *ops;
    const struct job *job;
    struct graph *graph;
    struct model *found;      /* grows while the variables are found; NULL: they are known */
    size_t variable_capacity; /* of found->variables */
    size_t next_variable;     /* the next parameter or buffer that a layer will ask for */
    struct value **variables; /* by variable: its value in this graph, NULL: not used yet */
    size_t variables_capacity;
    struct value *made[NODE_MAX_OUT][2]; /* gradients of the last node that are still to be added to
                                            their variables: variable, addition */
    int n_made;
    const struct value *written[NODE_MAX_OUT]; /* gradient variables that the last node wrote */
    int n_written;
    int first_layer, end_layer;       /* the stage's layers; the end without */
    int first_gradient, end_gradient; /* its gradients, where they are known */
    int bucket_first; /* the first gradient that no all-reduce has summed yet; -1: none is left */
    int layer;        /* of the nodes being made; -1: none */
    const char *name; /* of the nodes being made */
};

/* The value of a variable in this graph, made when it is first asked for. */
struct value *build_variable(struct build *build, int variable, struct err *err);
/* Puts a node behind the graph's last. */
int build_append(struct build *build, struct node *node, struct err *err);
/* A new value; `name` outlives the graph. Errors: also ERR_MODEL_SHAPE (too large). */
struct value *build_value(struct build *build, enum value_kind kind, const char *name,
                          struct shape shape, enum dtype dtype, struct err *err);
/* A new variable of the model that is being found; its index, or an error. */
int build_found(struct build *build, const struct variable *variable, struct err *err);
/* init_rule.c: what a layer's weight_init and bias_init make of a parameter's own beginning.
 * Errors: ERR_MODEL_SHAPE (a rule that counts inputs or outputs, of a parameter without). */
int init_rule_choose(const struct build *build, const struct job_layer *layer, const char *suffix,
                     const struct shape *shape, struct init_rule *rule, struct err *err);
/* The shape of a batch of such samples in this graph. */
struct shape build_batch_shape(const struct build *build, const struct shape *sample);
/* Sets what the next nodes belong to. */
void build_at(struct build *build, int layer, const char *name);

/* forward.c: data and layers up to graph->output; a layer that nothing reads leaves no node. What
 * graph->received names is there before. */
int forward_build(struct build *build, struct err *err);
/* fuse.c: makes one node of those of the forward graph that the registry's fusions name. What is
 * recorded, sent or read by somebody else stays a value, and its node a node. */
int fuse(struct build *build, struct err *err);
/* The target, the loss, the prediction, the output's gradient where one is needed. */
int forward_build_loss(struct build *build, struct err *err);
/* trim.c: marks the output of a layer that is as long as the longest sample of a chunk, notes in
 * the model that is being found who makes and who needs the whole of such a value; the same for the
 * model's output. */
void trim_layer(struct build *build, const struct job_layer *layer, struct value *const *in,
                int n_in, struct value *out);
void trim_output(struct build *build);
/* stage.c: what crosses to and from other stages: the values received, ahead of forward; a `send`
 * node for each layer whose output other stages read, behind it; these nodes' gradients, ahead of
 * autograd; a `send` node for each gradient that goes back, behind it. */
int stage_build_received(struct build *build, struct err *err);
int stage_build_sent(struct build *build, struct err *err);
int stage_build_seeds(struct build *build, struct err *err);
int stage_build_sent_grads(struct build *build, struct err *err);

/* autograd.c: gradients of all that needs one, back from the values that have one; all-reduce nodes
 * among them. */
int autograd_build(struct build *build, struct err *err);
/* The all-reduce nodes alone, of gradients that are there. */
int autograd_build_reduce(struct build *build, struct err *err);
/* Adds a contribution to a value's gradient, with an `add` of node's layer where there is one. */
int autograd_accumulate(struct build *build, const struct node *node, struct value *value,
                        struct value *contribution, struct err *err);
/* recompute.c: the forward nodes cut into segments for activation checkpointing; one segment where
 * nothing is recomputed. A segment is a run of nodes, the last one ends with the loss. */
struct segments {
    size_t *end; /* of segment i: the index of the node behind it */
    size_t n;
    size_t *last_reader;   /* by value: the last forward node that reads it */
    struct value **twin;   /* by value: what backward reads instead; NULL: itself */
    struct node **replica; /* by node: the one that backward takes the gradient of */
};
int recompute_cut(struct build *build, struct segments *ret_segments, struct err *err);
/* Appends the nodes of segment i a second time, without their side effects; what later segments
 * read is there still and is not made again. */
int recompute_segment(struct build *build, struct segments *segments, size_t i, struct err *err);
/* Removes recomputed nodes that backward does not need after all. */
int recompute_prune(struct build *build, struct err *err);

/* precision.c: gives each value of a finished graph its type, with casts between, where
 * train.precision is bf16. */
int precision_lower(struct build *build, struct err *err);
/* Which values it would give the type BF16, by value; none in fp32. NULL without memory. */
const bool *precision_find_low(const struct build *build, struct err *err);

/* prune.c: keeps the nodes that `is_root` names and those that they depend on. */
int prune(struct graph *graph, bool (*is_root)(const struct graph *graph, const struct node *node),
          struct err *err);

/* An op on all gradients as one run: "scale", "zero". */
int autograd_build_all(struct build *build, const char *op, enum phase phase, struct err *err);
/* Whether gradients are summed undivided and scaled at last: with several batches to a step the
 * divisor of the mean is known only when the last has been seen. */
bool step_scales(const struct job_train *train);
/* autograd.c: what a node writes for this gradient variable: itself, or an addition to it. */
struct value *autograd_gradient(struct build *build, struct value *variable, struct err *err);
/* update.c: an update node for each parameter that has a gradient. */
int update_build(struct build *build, struct err *err);

/* rest.c: of a step with samples, what is left for a replica that has none: gradients of zero, and
 * the ops that it owes to the others, in their order. */
int rest_strip(struct build *build, struct err *err);
/* record.c: what train.record asks for. Once, when the variables have been found and backward has
 * not been built, what is meant; behind backward, whether all of it is there. Errors:
 * ERR_JOB_INVALID (/train/record/I). */
int record_find(struct build *build, struct err *err);
int record_check(const struct model *model, struct err *err);
/* Append statistics: of the layer that has just been built; of the gradients of a forward node's
 * outputs, which `replica` has where it stands for a node that is recomputed; of the gradient
 * variables that the last node wrote. */
int record_layer(struct build *build, struct err *err);
int record_output_grads(struct build *build, const struct node *node, const struct node *replica,
                        struct err *err);
int record_gradients(struct build *build, struct err *err);
/* STEP_RECORD's: of parameters and their gradients as they are. */
int record_variables(struct build *build, struct err *err);

/* graph.c: an empty graph, as graph_build and model_build need it; freed with graph_free. */
int graph_new(const struct model *model, const struct graph_options *options,
              struct graph **ret_graph, struct err *err);
#endif
