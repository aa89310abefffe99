/* job_learning.c: every key of loss, optimizer and schedule: PyTorch's arguments with PyTorch's
 * defaults. */
#include "proto/job.h"
#include "proto/job_rows.h"

#define CLASSES_MAX 100000 /* entries of a list that has one a class */
#define PATTERNS_MAX 1000

/* Loss */

#define REDUCTION_ROW                                                                              \
    {                                                                                              \
        "reduction", FIELD_CHOICE, "Of the losses to one; none, for evaluation: a loss a sample",  \
            AT(job_loss, reduction), DEFAULT("\"mean\""),                                          \
            CHOICES(OPTION("mean", REDUCTION_MEAN), OPTION("sum", REDUCTION_SUM),                  \
                    OPTION("none", REDUCTION_NONE))                                                \
    }
#define CLASS_WEIGHT_ROW                                                                           \
    {                                                                                              \
        "weight", FIELD_NUMBERS, "One a class; a mean divides by the targets' weights",            \
            AT(job_loss, weight), RANGE(1, CLASSES_MAX), REALS(0, REAL_MAX), .flags = FIELD_LIST   \
    }
#define IGNORE_INDEX_ROW                                                                           \
    {                                                                                              \
        "ignore_index", FIELD_INT, "Targets of this number do not count",                          \
            AT(job_loss, ignore_index), DEFAULT("-100"), RANGE(INT32_MIN, INT32_MAX)               \
    }

static const struct field cross_entropy_rows[] = {
    REDUCTION_ROW,
    {"label_smoothing", FIELD_NUMBER, "Share of a target that is spread over all classes",
     AT(job_loss, label_smoothing), DEFAULT("0"), REALS(0, 1)},
    IGNORE_INDEX_ROW,
    CLASS_WEIGHT_ROW,
    {0},
};

static const struct field nll_rows[] = {
    REDUCTION_ROW,
    IGNORE_INDEX_ROW,
    CLASS_WEIGHT_ROW,
    {0},
};

static const struct field bce_rows[] = {
    REDUCTION_ROW,
    {"pos_weight", FIELD_NUMBERS, "Weight of positive targets, one for all or one an output",
     AT(job_loss, pos_weight), RANGE(1, CLASSES_MAX), REALS(0, REAL_MAX)},
    {0},
};

static const struct field elementwise_rows[] = {
    REDUCTION_ROW,
    {0},
};

#define ELEMENT_WEIGHTS LATER_KEYS({"weight", "weights of elements"})

static const struct choice losses[] = {
    {"CrossEntropyLoss", LOSS_CROSS_ENTROPY, cross_entropy_rows, NULL},
    {"MSELoss", LOSS_MSE, elementwise_rows, NULL},
    {"BCEWithLogitsLoss", LOSS_BCE_WITH_LOGITS, bce_rows, ELEMENT_WEIGHTS},
    {"L1Loss", LOSS_L1, elementwise_rows, NULL},
    {"NLLLoss", LOSS_NLL, nll_rows, NULL},
    {0},
};

static const struct field loss_rows[] = {
    {"type", FIELD_CHOICE, "PyTorch's name of the loss", AT(job_loss, type), REQUIRED,
     .choices = losses},
    {0},
};

const struct object_def job_loss_object = {.what = "loss", .fields = loss_rows, .tagged = true};

/* Optimizer */

#define LR_ROW(...)                                                                                \
    {                                                                                              \
        "lr", FIELD_NUMBER, "The learning rate of step 1", AT(job_optimizer, lr),                  \
            REALS(0, REAL_MAX), __VA_ARGS__                                                        \
    }
#define NUMBER_ROW(name, fallback)                                                                 \
    {                                                                                              \
#name, FIELD_NUMBER, "As in PyTorch", AT(job_optimizer, name), DEFAULT(fallback),          \
            REALS(0, REAL_MAX)                                                                     \
    }
#define MAXIMIZE_ROW                                                                               \
    {                                                                                              \
        "maximize", FIELD_FIXED, "Losses are made small", DEFAULT("false"),                        \
            LATER({"true", "losses to be made large"})                                             \
    }

static const struct field sgd_rows[] = {
    LR_ROW(REQUIRED),
    NUMBER_ROW(momentum, "0"),
    {"dampening", FIELD_NUMBER, "As in PyTorch", AT(job_optimizer, dampening), DEFAULT("0"),
     REALS(-REAL_MAX, REAL_MAX)},
    {"nesterov", FIELD_BOOL, "Needs momentum and no dampening", AT(job_optimizer, nesterov),
     DEFAULT("false")},
    NUMBER_ROW(weight_decay, "0"),
    MAXIMIZE_ROW,
    {0},
};

#define ADAM_ROWS(decay)                                                                           \
    LR_ROW(DEFAULT("1e-3")),                                                                       \
        {"betas",                                                                                  \
         FIELD_NUMBERS,                                                                            \
         "Of the averages of gradients and of their squares",                                      \
         AT(job_optimizer, betas),                                                                 \
         DEFAULT("[0.9, 0.999]"),                                                                  \
         RANGE(2, 2),                                                                              \
         REALS(0, 1),                                                                              \
         .flags = FIELD_LIST | FIELD_BELOW},                                                       \
        NUMBER_ROW(eps, "1e-8"), NUMBER_ROW(weight_decay, decay),                                  \
        {"amsgrad", FIELD_BOOL, "As in PyTorch", AT(job_optimizer, amsgrad), DEFAULT("false")},    \
        MAXIMIZE_ROW, {0},

static const struct field adam_rows[] = {ADAM_ROWS("0")};
static const struct field adamw_rows[] = {ADAM_ROWS("1e-2")};

static const struct field rmsprop_rows[] = {
    LR_ROW(DEFAULT("1e-2")),
    {"alpha", FIELD_NUMBER, "Of the average of squared gradients", AT(job_optimizer, alpha),
     DEFAULT("0.99"), REALS(0, 1)},
    NUMBER_ROW(eps, "1e-8"),
    NUMBER_ROW(weight_decay, "0"),
    NUMBER_ROW(momentum, "0"),
    {"centered", FIELD_BOOL, "As in PyTorch", AT(job_optimizer, centered), DEFAULT("false")},
    MAXIMIZE_ROW,
    {0},
};

static const struct choice optimizers[] = {
    {"SGD", OPTIMIZER_SGD, sgd_rows, NULL},
    {"Adam", OPTIMIZER_ADAM, adam_rows, NULL},
    {"AdamW", OPTIMIZER_ADAMW, adamw_rows, NULL},
    {"RMSprop", OPTIMIZER_RMSPROP, rmsprop_rows, NULL},
    {0},
};

static const struct field optimizer_rows[] = {
    {"type", FIELD_CHOICE, "PyTorch's name of the optimizer", AT(job_optimizer, type), REQUIRED,
     .choices = optimizers},
    {"no_decay", FIELD_NAMES, "Patterns (*, ?, [abc]) of parameters that weight_decay spares",
     .offset = offsetof(struct job_optimizer, no_decay),
     .aux = offsetof(struct job_optimizer, n_no_decay), RANGE(0, PATTERNS_MAX)},
    {0},
};

const struct object_def job_optimizer_object = {
    .what = "optimizer", .fields = optimizer_rows, .tagged = true};

/* Schedule */

#define GAMMA_ROW                                                                                  \
    {                                                                                              \
        "gamma", FIELD_NUMBER, "What the rate is multiplied by", AT(job_schedule, gamma),          \
            DEFAULT("0.1"), REALS(0, REAL_MAX)                                                     \
    }

static const struct field step_rows[] = {
    {"step_size", FIELD_INT, "Optimizer steps between two changes", AT(job_schedule, step_size),
     REQUIRED, RANGE(1, COUNT_MAX)},
    GAMMA_ROW,
    {0},
};

static const struct field multi_step_rows[] = {
    {"milestones", FIELD_INTS, "Optimizer steps after which the rate changes",
     AT(job_schedule, milestones), REQUIRED, RANGE(0, COUNT_MAX)},
    GAMMA_ROW,
    {0},
};

static const struct field cosine_rows[] = {
    {"T_max", FIELD_INT, "Optimizer steps from the highest rate to the lowest",
     AT(job_schedule, t_max), REQUIRED, RANGE(1, COUNT_MAX)},
    {"eta_min", FIELD_NUMBER, "The lowest rate", AT(job_schedule, eta_min), DEFAULT("0"),
     REALS(0, REAL_MAX)},
    {0},
};

static const struct choice schedules[] = {
    {"constant", SCHEDULE_CONSTANT, NULL, NULL},
    {"StepLR", SCHEDULE_STEP, step_rows, NULL},
    {"MultiStepLR", SCHEDULE_MULTI_STEP, multi_step_rows, NULL},
    {"CosineAnnealingLR", SCHEDULE_COSINE_ANNEALING, cosine_rows, NULL},
    {0},
};

static const struct field schedule_rows[] = {
    {"type", FIELD_CHOICE, "PyTorch's name of the schedule", AT(job_schedule, type),
     DEFAULT("\"constant\""), .choices = schedules},
    {"warmup_steps", FIELD_INT, "The rate is multiplied by min(1, step / warmup_steps)",
     AT(job_schedule, warmup_steps), DEFAULT("0"), RANGE(0, COUNT_MAX)},
    {0},
};

const struct object_def job_schedule_object = {
    .what = "schedule", .fields = schedule_rows, .tagged = true};
