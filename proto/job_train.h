/* job_train.h: how a job trains: its loss, its optimizer, the schedule of its rate, its steps. */
#ifndef PROTO_JOB_TRAIN_H
#define PROTO_JOB_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/job_values.h"

enum loss_type { LOSS_CROSS_ENTROPY, LOSS_MSE, LOSS_BCE_WITH_LOGITS, LOSS_L1, LOSS_NLL };
enum loss_reduction { REDUCTION_MEAN, REDUCTION_SUM, REDUCTION_NONE };
struct job_loss {
    enum loss_type type;
    enum loss_reduction reduction;
    double label_smoothing;        /* CrossEntropyLoss */
    int64_t ignore_index;          /* CrossEntropyLoss, NLLLoss */
    struct job_numbers weight;     /* the same: one a class; n 0: all 1 */
    struct job_numbers pos_weight; /* BCEWithLogitsLoss: one for all, or one an element of the
                                      output's last dimension; n 0: 1 */
};

enum optimizer_type { OPTIMIZER_SGD, OPTIMIZER_ADAM, OPTIMIZER_ADAMW, OPTIMIZER_RMSPROP };
struct job_optimizer {
    enum optimizer_type type;
    double lr, weight_decay;
    double momentum;          /* SGD, RMSprop */
    double dampening;         /* SGD */
    bool nesterov;            /* SGD */
    struct job_numbers betas; /* Adam, AdamW: two */
    bool amsgrad;             /* Adam, AdamW */
    double eps;               /* Adam, AdamW, RMSprop */
    double alpha;             /* RMSprop */
    bool centered;            /* RMSprop */
    char **no_decay;          /* fnmatch patterns of the parameters that weight_decay spares */
    size_t n_no_decay;
};

enum schedule_type {
    SCHEDULE_CONSTANT,
    SCHEDULE_STEP,
    SCHEDULE_MULTI_STEP,
    SCHEDULE_COSINE_ANNEALING
};
struct job_schedule {
    enum schedule_type type;
    int64_t step_size;          /* StepLR */
    struct job_ints milestones; /* MultiStepLR, in no order */
    double gamma;               /* StepLR, MultiStepLR */
    int64_t t_max;              /* CosineAnnealingLR */
    double eta_min;             /* the same */
    int64_t warmup_steps;       /* 0: none */
};

enum every_unit { EVERY_NEVER, EVERY_STEPS, EVERY_EPOCHS, EVERY_SECONDS };
struct job_every { /* "500 steps", "1 epoch", "10 min", "never" */
    enum every_unit unit;
    int64_t n;
};

struct job_segments { /* of layers, for activation checkpointing */
    bool automatic;   /* true: the engine cuts */
    char **names;     /* layers that end a segment */
    size_t n;
};

enum precision { PRECISION_FP32, PRECISION_BF16 };
enum accumulate_reduction { ACCUMULATE_MEAN, ACCUMULATE_SUM };

enum train_mode { MODE_TRAIN, MODE_EVALUATE, MODE_PREDICT, MODE_TUNE };

struct job_train {
    enum train_mode mode; /* of evaluate and predict batch_size and trace alone have an effect */
    int64_t epochs, max_steps; /* exactly one is > 0 */
    int64_t batch_size;        /* over all devices */
    int64_t seed;
    int64_t accumulate; /* batches an optimizer step */
    enum accumulate_reduction accumulate_reduction;
    enum precision precision;
    double clip_grad_norm; /* 0: gradients are not clipped */
    struct job_segments checkpoint_activations;
    int64_t log_every;               /* steps; default 1 */
    struct job_every validate_every; /* default 1 epoch; the unit is never seconds */
    bool has_early_stop;
    int64_t patience;  /* of early_stop: validations without a smaller loss */
    bool trace_shapes; /* "trace": ["shapes"] */
    char **record;     /* "conv1.output", "fc.weight.grad" */
    size_t n_record;
};

#endif
