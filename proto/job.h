/* job.h: the job document, parsed.
 *
 * job_parse turns JSON text into `struct job`: every rule that needs no file and no device is
 * checked here, every default is filled in. What job.md describes but this version does not run is
 * refused by name (ERR_JOB_UNSUPPORTED); an unknown key is ERR_JOB_INVALID with the nearest known
 * key. job_dump writes the document back with every default written out. Parser, dump and
 * job.schema.json are driven by the one set of field tables in job_fields.c.
 *
 * No I/O; any thread; a job belongs to who called job_parse and is freed with job_free. Strings are
 * never NULL unless said so. Fields are PyTorch's.
 */
#ifndef PROTO_JOB_H
#define PROTO_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"
#include "proto/job_model.h"

enum data_format { DATA_RANDOM, DATA_IDX };

struct job_texts { /* one for the only input, or one an input */
    size_t n;      /* 0: not given */
    char **names;  /* of the inputs; NULL: there is only one */
    char **texts;
};

struct job_source {
    enum data_format format;
    int64_t samples, seed, classes; /* random; classes 0: targets of the output's shape */
    /* Paths are absolute or relative to the submission's directory. */
    struct job_texts inputs, lengths; /* idx: paths; lengths only of inputs that have them */
    char *targets;                    /* idx: a path */
};

struct job_numbers { /* one number for all, or one a channel */
    size_t n;        /* >= 1 */
    double *v;
};

struct job_data {
    struct job_source train, validation;
    bool has_validation;
    struct job_numbers scale, mean, std; /* (x * scale - mean) / std */
    bool shuffle, drop_last;
};

struct job_ints {
    size_t n; /* 0: not given */
    int64_t *v;
};

enum loss_type { LOSS_CROSS_ENTROPY, LOSS_MSE, LOSS_BCE_WITH_LOGITS, LOSS_L1, LOSS_NLL };
enum loss_reduction { REDUCTION_MEAN, REDUCTION_SUM };
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

enum accumulate_reduction { ACCUMULATE_MEAN, ACCUMULATE_SUM };

struct job_train {
    int64_t epochs, max_steps; /* exactly one is > 0 */
    int64_t batch_size;        /* over all devices */
    int64_t seed;
    int64_t accumulate; /* batches an optimizer step */
    enum accumulate_reduction accumulate_reduction;
    double clip_grad_norm; /* 0: gradients are not clipped */
    struct job_segments checkpoint_activations;
    int64_t log_every;               /* steps; default 1 */
    struct job_every validate_every; /* default 1 epoch; the unit is never seconds */
    bool trace_shapes;               /* "trace": ["shapes"] */
};

enum parallel_mode { PARALLEL_SINGLE, PARALLEL_REPLICATE };
enum device_type { DEVICE_DEFAULT, DEVICE_CPU, DEVICE_CUDA };
struct job_parallel {
    enum parallel_mode mode;
    int64_t n_devices; /* the count asked for; 0: "all" */
    char **devices;    /* the list in its order ("cpu:1", "cpu"), n_devices long, or NULL */
    enum device_type device_type;
};

struct job_checkpoint {
    struct job_every every; /* default 1 epoch */
    int64_t keep;           /* newest checkpoints kept; default 2 */
    bool resume;            /* "auto" (default) or "never" */
};

struct job {
    char *name; /* default: "job" */
    struct job_model model;
    struct job_data data;
    struct job_loss loss;
    struct job_optimizer optimizer;
    struct job_schedule schedule;
    struct job_train train;
    struct job_parallel parallel;
    struct job_checkpoint checkpoint;
    char *output; /* NULL: runs/ID */
};

/* Parses a document of `size` bytes. On success *ret_job is the caller's. Errors: ERR_JOB_INVALID
 * and ERR_JOB_UNSUPPORTED with a path, ERR_NOMEM. Broken JSON is ERR_JOB_INVALID with "line L,
 * column C" in the message. */
int job_parse(const char *text, size_t size, struct job **ret_job, struct err *err);
/* The same for a value that is parsed already (strictly, see json_load). `root` stays the caller's.
 */
int job_from_json(const json_t *root, struct job **ret_job, struct err *err);
void job_free(struct job *job);

/* The document with every default written out; a new reference, NULL without memory. Parsing it
 * again gives an equal job. */
json_t *job_dump(const struct job *job);

/* The text for the input of that name; NULL: there is none. */
const char *job_texts_find(const struct job_texts *texts, const char *name);
/* "L1Loss" for LOSS_L1, and so on. */
const char *loss_type_name(enum loss_type type);

/* The "input" and "layers" that {"preset": name, "args": args} stands for, `args` NULL for none. A
 * new reference. Errors: ERR_JOB_INVALID with a path ("/preset", "/args/width"), ERR_NOMEM. */
int job_preset(const char *name, json_t *args, json_t **ret_model, struct err *err);

#endif
