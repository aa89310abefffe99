/* job_fields.c: every key of a job document but those of the layers (job_layers.c), and of
 * loss, optimizer and schedule (job_learning.c). */
#include "proto/job_fields.h"

#include <string.h>

#include "proto/job.h"
#include "proto/job_rows.h"
#include "proto/preset.h"

static const struct field input_rows[] = {
    {"shape", FIELD_SHAPE, "Of one sample, without the batch", AT(job_input, shape), REQUIRED,
     RANGE(1, DIM_MAX)},
    {"dtype", FIELD_CHOICE, "Of the elements; int64 for token ids", AT(job_input, dtype),
     DEFAULT("\"float32\""), CHOICES(OPTION("float32", JOB_FLOAT32), OPTION("int64", JOB_INT64))},
    {"lengths", FIELD_BOOL, "The data says how many steps of each sample are valid",
     AT(job_input, lengths), DEFAULT("false")},
    {"scatter", FIELD_BOOL, "Each replica gets its samples; false: the whole, the same for all",
     AT(job_input, scatter), DEFAULT("true")},
    {0},
};

static const struct object_def input_object = {
    .what = "input", .fields = input_rows, .shared = "input"};

#define INPUTS_AT                                                                                  \
    .offset = offsetof(struct job_model, inputs), .size = sizeof(struct job_input),                \
    .aux = offsetof(struct job_model, n_inputs), .object = &input_object

static const struct field init_rows[] = {
    {"seed", FIELD_INT, "Of the initial weights; train's seed if left out", AT(job_init, seed),
     COMPUTED, RANGE(0, INT64_MAX)},
    {"weights", FIELD_PATH, "A safetensors file to begin with", AT(job_init, weights),
     RANGE(1, PATH_MOST)},
    {"strict", FIELD_BOOL, "Refuse weights with unexpected keys", AT(job_init, strict),
     DEFAULT("true")},
    {"fresh", FIELD_NAMES, "Layers that start random all the same, with all below them",
     .offset = offsetof(struct job_init, fresh), .aux = offsetof(struct job_init, n_fresh),
     RANGE(0, NAMED_MOST)},
    {0},
};

static const struct object_def init_object = {
    .what = "init", .fields = init_rows, .shared = "weights"};

static const struct field model_rows[] = {
    {"input", FIELD_SOLE, "What the model takes", INPUTS_AT},
    {"inputs", FIELD_MAP, "What it takes, by name; layers say which in their own inputs", INPUTS_AT,
     RANGE(1, LIMIT_INPUTS)},
    {"layers", FIELD_OBJECTS, "In order; a layer takes the one before it unless it names inputs",
     .offset = offsetof(struct job_model, layers), .size = sizeof(struct job_layer),
     .aux = offsetof(struct job_model, n_layers), REQUIRED, RANGE(1, LIMIT_LAYERS),
     .object = &job_layer_object},
    {"init", FIELD_OBJECT, "The weights at the beginning", AT(job_model, init), DEFAULT("{}"),
     .object = &init_object},
    {"freeze", FIELD_NAMES, "Layers that are not trained; a name stands for all below it too",
     .offset = offsetof(struct job_model, freeze), .aux = offsetof(struct job_model, n_freeze),
     RANGE(0, NAMED_MOST)},
    {0},
};

static const struct object_def model_object = {.what = "model",
                                               .fields = model_rows,
                                               .one_of = {"input", "inputs"},
                                               .shorthand = &preset_shorthand};

static const struct field early_stop_rows[] = {
    {"patience", FIELD_INT, "Validations without a smaller loss until training stops",
     AT(job_train, patience), REQUIRED, RANGE(1, COUNT_MAX)},
    {0},
};

static const struct object_def early_stop_object = {.what = "early_stop",
                                                    .fields = early_stop_rows};

static const struct field train_rows[] = {
    {"epochs", FIELD_INT, "How often the data is gone through", AT(job_train, epochs),
     RANGE(1, COUNT_MAX)},
    {"max_steps", FIELD_INT, "Optimizer steps, instead of epochs", AT(job_train, max_steps),
     RANGE(1, COUNT_MAX)},
    {"batch_size", FIELD_INT, "Samples a step, over all devices", AT(job_train, batch_size),
     REQUIRED, RANGE(1, DIM_MAX)},
    {"seed", FIELD_INT, "Of all that is random", AT(job_train, seed), DEFAULT("0"),
     RANGE(0, INT64_MAX)},
    {"accumulate", FIELD_INT, "Batches an optimizer step", AT(job_train, accumulate), DEFAULT("1"),
     RANGE(1, INT32_MAX)},
    {"accumulate_reduction", FIELD_CHOICE,
     "The mean over every sample of a step's batches, or the sum of the batches' means",
     AT(job_train, accumulate_reduction), DEFAULT("\"mean\""),
     CHOICES(OPTION("mean", ACCUMULATE_MEAN), OPTION("sum", ACCUMULATE_SUM))},
    {"checkpoint_activations", FIELD_SEGMENTS,
     "Recompute activations instead of keeping them: false, true, or the layers that end a segment",
     AT(job_train, checkpoint_activations), DEFAULT("false"), RANGE(1, LIMIT_LAYERS)},
    {"precision", FIELD_CHOICE,
     "Of the arithmetic; bf16: products and activations, while weights, sums and losses stay fp32",
     AT(job_train, precision), DEFAULT("\"fp32\""),
     CHOICES(OPTION("fp32", PRECISION_FP32), OPTION("bf16", PRECISION_BF16)),
     LATER({"tf32", "tf32 computations"})},
    {"mode", FIELD_CHOICE,
     "train; evaluate: measure given weights; predict: also write the outputs; tune: measure steps "
     "in stages with several split sizes",
     AT(job_train, mode), DEFAULT("\"train\""),
     CHOICES(OPTION("train", MODE_TRAIN), OPTION("evaluate", MODE_EVALUATE),
             OPTION("predict", MODE_PREDICT), OPTION("tune", MODE_TUNE))},
    {"clip_grad_norm", FIELD_NUMBER, "Most that the norm of all gradients together may be",
     AT(job_train, clip_grad_norm), REALS(0, REAL_MAX), .flags = FIELD_ABOVE},
    {"log_every", FIELD_INT, "Steps from one logged step to the next", AT(job_train, log_every),
     DEFAULT("1"), RANGE(1, COUNT_MAX)},
    {"validate_every", FIELD_EVERY, "\"1 epoch\", \"500 steps\", \"never\"",
     AT(job_train, validate_every), DEFAULT("\"1 epoch\""), RANGE(1, COUNT_MAX),
     .flags = FIELD_UNTIMED},
    {"early_stop", FIELD_OBJECT,
     "Stop when the validation loss stays; the best weights are best.safetensors",
     .aux = offsetof(struct job_train, has_early_stop), .flags = FIELD_OPTIONAL,
     .object = &early_stop_object},
    {"trace", FIELD_FLAGS, "What the log shows of each replica",
     .offset = offsetof(struct job_train, trace_shapes), DEFAULT("[]"),
     CHOICES(OPTION("shapes", 0))},
    {"record", FIELD_NAMES,
     "\"LAYER.output\", a parameter, or the \".grad\" of either, to write into record.jsonl",
     .offset = offsetof(struct job_train, record), .aux = offsetof(struct job_train, n_record),
     RANGE(0, NAMED_MOST)},
    {0},
};

static const struct object_def train_object = {.what = "train", .fields = train_rows};

#define DEVICES_ROW(...)                                                                           \
    {                                                                                              \
        "devices", FIELD_DEVICES,                                                                  \
            "A count, \"all\", or a list such as [\"cuda:1\", \"cuda:0\"]; the first is the "      \
            "controller",                                                                          \
            RANGE(1, LIMIT_DEVICES), __VA_ARGS__                                                   \
    }

static const struct field single_rows[] = {
    DEVICES_ROW(DEFAULT("1")),
    {0},
};

static const struct field replicate_rows[] = {
    DEVICES_ROW(REQUIRED),
    {"output_device", FIELD_NAME,
     "Where outputs are gathered, one of the list; the first if left out",
     AT(job_parallel, output_device), RANGE(1, LIMIT_NAME_BYTES)},
    {"dim", FIELD_FIXED, "The axis of the batch", DEFAULT("0"), LATER({"#", "other batch axes"})},
    {"batch_norm", FIELD_CHOICE,
     "per_replica: each replica normalises by its own chunk; synchronized: by the whole batch",
     AT(job_parallel, batch_norm), DEFAULT("\"per_replica\""),
     CHOICES(OPTION("per_replica", STATISTICS_PER_REPLICA),
             OPTION("synchronized", STATISTICS_SYNCHRONIZED))},
    {"shards", FIELD_INT,
     "Cut each batch in so many, whatever the devices: the same bits on any number of them",
     AT(job_parallel, shards), RANGE(1, LIMIT_DEVICES)},
    {"shard_optimizer", FIELD_BOOL,
     "Each replica keeps and updates its part of the optimizer's state; the same bits",
     AT(job_parallel, shard_optimizer), DEFAULT("false")},
    {0},
};

static const struct field stage_rows[] = {
    {"begin", FIELD_NAME, "Its first layer: a name, or what the name starts with before a dot",
     AT(job_stage, begin), REQUIRED, RANGE(1, LIMIT_NAME_BYTES)},
    {"devices", FIELD_NAMES, "Those that share its work, such as [\"cuda:1\", \"cuda:2\"]",
     .offset = offsetof(struct job_stage, devices), .aux = offsetof(struct job_stage, n_devices),
     REQUIRED, RANGE(1, LIMIT_DEVICES)},
    {0},
};

static const struct object_def stage_object = {.what = "a stage", .fields = stage_rows};

static const struct choice schedules[] = {OPTION("none", PIPELINE_NONE),
                                          OPTION("gpipe", PIPELINE_GPIPE),
                                          OPTION("1f1b", PIPELINE_1F1B),
                                          OPTION("zero_bubble", PIPELINE_ZERO_BUBBLE),
                                          {0}};

const char *pipeline_schedule_name(enum pipeline_schedule schedule)
{
    return schedules[schedule].name;
}

static const struct field stages_rows[] = {
    DEVICES_ROW(COMPUTED),
    {"split", FIELD_NAMES, "The layers that begin a new stage; by balance if left out",
     .offset = offsetof(struct job_parallel, split), .aux = offsetof(struct job_parallel, n_split),
     RANGE(1, LIMIT_DEVICES - 1)},
    {"stages", FIELD_OBJECTS, "The same with the devices of each stage, the first one too",
     .offset = offsetof(struct job_parallel, stages), .size = sizeof(struct job_stage),
     .aux = offsetof(struct job_parallel, n_stages), RANGE(1, LIMIT_DEVICES),
     .object = &stage_object},
    {"split_size", FIELD_INT, "Samples in a micro-batch", AT(job_parallel, split_size),
     RANGE(1, DIM_MAX)},
    {"microbatches", FIELD_INT, "Micro-batches in a batch, instead of split_size",
     AT(job_parallel, microbatches), .flags = FIELD_AUTO, RANGE(1, DIM_MAX)},
    {"schedule", FIELD_CHOICE,
     "The order of micro-batches; none: one batch at a time, plain model parallelism",
     AT(job_parallel, schedule), DEFAULT("\"zero_bubble\""), .choices = schedules},
    {"replicas", FIELD_INT, "Pipelines, each with its part of the devices and of the batch",
     AT(job_parallel, replicas), DEFAULT("1"), RANGE(1, LIMIT_DEVICES)},
    {0},
};

static const struct choice modes[] = {
    {"single", PARALLEL_SINGLE, single_rows, NULL},
    {"replicate", PARALLEL_REPLICATE, replicate_rows, NULL},
    {"stages", PARALLEL_STAGES, stages_rows,
     LATER_KEYS({"output_device", "output devices of stages"},
                {"batch_norm", "statistics over the devices of a stage"},
                {"shard_optimizer", "parts of a stage's optimizer state"})},
    {0},
};

static const struct field parallel_rows[] = {
    {"mode", FIELD_CHOICE, "How devices share the work", AT(job_parallel, mode),
     DEFAULT("\"single\""), .choices = modes},
    {"device_type", FIELD_CHOICE, "cuda where there are GPUs, else cpu, if left out",
     AT(job_parallel, device_type),
     CHOICES(OPTION("cpu", DEVICE_CPU), OPTION("cuda", DEVICE_CUDA))},
    {"deterministic", FIELD_FIXED, "The same bits at every run", DEFAULT("true"),
     LATER({"false", "computations that may not repeat"})},
    {0},
};

static const struct object_def parallel_object = {
    .what = "parallel", .fields = parallel_rows, .tagged = true};

static const struct field checkpoint_rows[] = {
    {"every", FIELD_EVERY, "\"1 epoch\", \"500 steps\", \"10 min\", \"never\"",
     AT(job_checkpoint, every), DEFAULT("\"1 epoch\""), RANGE(1, COUNT_MAX)},
    {"keep", FIELD_INT, "The newest that are kept", AT(job_checkpoint, keep), DEFAULT("2"),
     RANGE(1, COUNT_MAX)},
    {"resume", FIELD_CHOICE, "Continue from the newest checkpoint in output, or start over",
     AT(job_checkpoint, resume), DEFAULT("\"auto\""),
     CHOICES(OPTION("auto", true), OPTION("never", false))},
    {0},
};

static const struct object_def checkpoint_object = {.what = "checkpoint",
                                                    .fields = checkpoint_rows};

static const struct field queue_rows[] = {
    {"priority", FIELD_INT, "The larger goes first; above 0 is an administrator's",
     AT(job_queue, priority), DEFAULT("0"), RANGE(-JOB_PRIORITY_MOST, JOB_PRIORITY_MOST)},
    {"time_limit", FIELD_DURATION,
     "Running time over all attempts: \"2h\", \"30m\", \"1-12:00:00\"",
     AT(job_queue, time_limit_s)},
    {"after", FIELD_INTS, "Jobs that must have completed; one that fails cancels this one",
     AT(job_queue, after), RANGE(1, INT64_MAX)},
    {"hold", FIELD_BOOL, "Wait until it is released", AT(job_queue, hold), DEFAULT("false")},
    {0},
};

static const struct object_def queue_object = {
    .what = "queue",
    .fields = queue_rows,
    .later = LATER_KEYS({"retries", "retries"}, {"preemptible", "preemptible jobs"})};

static const struct field job_rows[] = {
    {"version", FIELD_FIXED, "Of this format", REQUIRED, DEFAULT("1")},
    {"name", FIELD_NAME, "For people", AT(job, name), DEFAULT("\"job\""),
     RANGE(1, LIMIT_NAME_BYTES)},
    {"model", FIELD_OBJECT, "What is trained", AT(job, model), REQUIRED, .object = &model_object},
    {"data", FIELD_OBJECT, "What it is trained on", AT(job, data), REQUIRED,
     .object = &job_data_object},
    {"loss", FIELD_OBJECT, "What training makes small", AT(job, loss), REQUIRED,
     .object = &job_loss_object},
    {"optimizer", FIELD_OBJECT, "How a step changes the weights", AT(job, optimizer),
     .aux = offsetof(struct job, has_optimizer), .flags = FIELD_OPTIONAL,
     .object = &job_optimizer_object},
    {"schedule", FIELD_OBJECT, "How the learning rate changes, in optimizer steps",
     AT(job, schedule), DEFAULT("{}"), .object = &job_schedule_object},
    {"train", FIELD_OBJECT, "How long, in what batches", AT(job, train), REQUIRED,
     .object = &train_object},
    {"parallel", FIELD_OBJECT, "On what devices", AT(job, parallel), DEFAULT("{}"),
     .object = &parallel_object},
    {"checkpoint", FIELD_OBJECT, "When to save", AT(job, checkpoint), DEFAULT("{}"),
     .object = &checkpoint_object},
    {"output", FIELD_PATH, "Directory of the results; runs/ID if left out", AT(job, output),
     RANGE(1, PATH_MOST)},
    {"queue", FIELD_OBJECT, "When it may run", AT(job, queue), DEFAULT("{}"),
     .object = &queue_object},
    {0},
};

const struct object_def job_object = {
    .what = "a job",
    .fields = job_rows,
    .later = LATER_KEYS({"sweep", "sweeps"}, {"command", "command jobs"})};

const struct object_def *const job_shared_objects[] = {&input_object, &init_object,
                                                       &job_layer_init_object, NULL};

const struct every_unit_def job_every_units[] = {
    {"step", EVERY_STEPS, 1},   {"steps", EVERY_STEPS, 1},
    {"epoch", EVERY_EPOCHS, 1}, {"epochs", EVERY_EPOCHS, 1},
    {"h", EVERY_SECONDS, 3600}, {"min", EVERY_SECONDS, 60},
    {"s", EVERY_SECONDS, 1},    {0},
};

const struct choice *job_choice(const struct field *field, int value)
{
    const struct choice *choice = field->choices;
    while (choice->name != NULL && choice->value != value)
        choice++;
    return choice->name != NULL ? choice : NULL;
}
