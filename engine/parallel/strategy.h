/* strategy.h: one step of a job on all of its devices, whatever the way it is spread: the job's
 * `parallel.mode` chooses (strategy_def.h has the ways). All shapes that the job will run are given
 * at the start and their plans built then. */
#ifndef ENGINE_PARALLEL_STRATEGY_H
#define ENGINE_PARALLEL_STRATEGY_H

#include "engine/backend/backend.h"
#include "engine/graph/model.h"
#include "engine/plan/plan.h"

struct strategy;
struct crew_patience;

struct strategy_batch {
    int64_t n; /* samples */
    enum step_part part;
};

struct strategy_config {
    const struct backend *backend;
    const struct model *model;
    const struct device_config *devices; /* the first is the controller */
    int n_devices;
    const struct strategy_batch *train_batches; /* the distinct batches to come */
    size_t n_train_batches;
    const int64_t *eval_batches; /* the distinct sizes */
    size_t n_eval_batches;
    const struct crew_patience *patience;               /* with devices, crew.h; NULL: the usual */
    void (*hang)(void *context, const struct err *err); /* crew.h; NULL: the usual */
    void *hang_context;
    bool keep_outputs; /* an evaluation gives the last layer's outputs */
};

struct strategy_memory { /* of one device */
    int64_t samples;     /* of the largest chunk */
    size_t variable_bytes, arena_bytes;
    size_t input_bytes;   /* the chunk's data and targets; of stages they are in the slots */
    size_t padding_bytes; /* what all its allocations take beyond what is asked for */
    /* Of stages; else 0. */
    int slots, outboxes;             /* micro-batches in flight; whose readers may be behind */
    size_t slot_bytes, outbox_bytes; /* of one */
};

struct batch { /* on the host */
    int64_t n;
    const void *inputs[MODEL_MAX_INPUTS]; /* as model->inputs: float or int64 [n, shape] */
    const void *targets;                  /* int64 or float [n, target shape] */
};

struct replica_result {
    int64_t samples; /* 0: rested */
    double loss_sum;
    double loss_divisor; /* of its own chunk: what its mean loss divides by; 0: no target counts */
};

struct strategy_record { /* what train.record asks for, of one device */
    int recorded;        /* index into model->recorded */
    int device;          /* index into strategy_config.devices */
    double statistics[STATISTIC_COUNT];
};

struct strategy_times {             /* of one device in one call, seconds */
    double sections[SECTION_COUNT]; /* of stages: that it computed */
    double waited;                  /* for other devices */
    double reduced;                 /* that it summed gradients with them */
};

struct strategy_result {
    double loss;    /* the batch's, mean or sum as the job says */
    int n_replicas; /* devices, or the job's shards: each is a replica of its own */
    struct replica_result replicas[LIMIT_DEVICES];
    const float *outputs; /* [n, output shape] after an evaluation with keep_outputs, valid until
                             the next call; else NULL */
    const double *losses; /* [n], each the sum of a sample's, after an evaluation under reduction
                             none, valid until the next call; else NULL */
    const int64_t *predictions; /* [n, target shape] after an evaluation whose loss predicts
                                   (loss_def.predict), valid until the next call; else NULL */
    const struct strategy_record *records; /* after a batch of training that ends a step where
                                              step->record asks, valid until the next call: in the
                                              order of model->recorded, then of devices */
    size_t n_records;
    struct strategy_times times[LIMIT_DEVICES]; /* by device */
};

/* The first of the largest batches of training; NULL: none is trained. */
const struct strategy_batch *strategy_largest(const struct strategy_config *config);

/* All of them. */
size_t strategy_bytes(const struct strategy_memory *memory);

/* Plans without touching a device: what strategy_open would allocate, a row a device, and a
 * training step's FLOPs. Errors: ERR_JOB_INVALID where a device has less memory. */
int strategy_plan(const struct strategy_config *config, struct strategy_memory *ret_memory,
                  double *ret_flops, struct err *err);

/* Plans as strategy_plan, then starts the device threads, allocates, builds every plan. `config`'s
 * pointers outlive the strategy. A device's failure is reported as «replica 1 on cpu:1: …». */
int strategy_open(const struct strategy_config *config, struct strategy **ret_strategy,
                  struct err *err);
void strategy_close(struct strategy *strategy); /* NULL is fine */

/* One batch of training, which ends an optimizer step unless `part` says that more batches
 * follow; one batch's evaluation. `step->first_sample` is that of the batch. All steps are called
 * from one thread; after an error a strategy can only be read and closed. */
int strategy_train(struct strategy *strategy, const struct batch *batch, enum step_part part,
                   const struct step *step, struct strategy_result *ret_result, struct err *err);
int strategy_evaluate(struct strategy *strategy, const struct batch *batch, const struct step *step,
                      struct strategy_result *ret_result, struct err *err);

/* A variable's elements in plain order: from the controller; to every device. */
int strategy_read(struct strategy *strategy, int variable, void *to, struct err *err);
int strategy_write(struct strategy *strategy, int variable, const void *from, struct err *err);

#endif
