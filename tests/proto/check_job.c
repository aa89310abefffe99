/* job: what a document means, what is refused, and that a dump says it all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job.h"
#include "proto/json.h"
#include "tests/lib/checks.h"
#include "tests/proto/jobs.h"

static struct job *parsed(const char *text)
{
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_msg(job_parse(text, strlen(text), &job, &err) == 0, "%s: %s", err.path, err.message);
    return job;
}

static void check_pair(const int64_t pair[2], int64_t first, int64_t second)
{
    ck_assert_int_eq(pair[0], first);
    ck_assert_int_eq(pair[1], second);
}

START_TEST(digits_layers)
{
    struct job *job = parsed(jobs_digits);
    const struct job_model *model = &job->model;
    ck_assert_int_eq(model->input.rank, 3);
    ck_assert_int_eq(model->input.dim[2], 8);
    ck_assert_int_eq((int)model->dtype, JOB_FLOAT32);
    ck_assert_uint_eq(model->n_layers, 6);
    const struct layer_conv2d *conv = &model->layers[0].conv2d;
    ck_assert_int_eq((int)model->layers[0].type, LAYER_CONV2D);
    ck_assert_int_eq(conv->out_channels, 32);
    ck_assert_int_eq(conv->in_channels, 0);
    check_pair(conv->kernel_size, 3, 3);
    check_pair(conv->stride, 1, 1);
    check_pair(conv->padding, 1, 1);
    check_pair(conv->dilation, 1, 1);
    ck_assert(conv->groups == 1 && conv->bias);
    ck_assert_double_eq(model->layers[1].batchnorm.eps, 1e-5);
    ck_assert_double_eq(model->layers[1].batchnorm.momentum, 0.1);
    ck_assert(model->layers[1].batchnorm.affine && model->layers[1].batchnorm.track_running_stats);
    ck_assert_str_eq(model->layers[2].name, "2");
    check_pair(model->layers[3].maxpool2d.stride, 2, 2);
    ck_assert_int_eq(model->layers[4].flatten.end_dim, -1);
    ck_assert_uint_eq(model->layers[5].n_inputs, 0);
    ck_assert_int_eq(model->init.seed, 1);
    ck_assert_ptr_null(model->init.weights);
    job_free(job);
}
END_TEST

START_TEST(digits_rest)
{
    struct job *job = parsed(jobs_digits);
    ck_assert_str_eq(job->name, "digits-cnn");
    ck_assert_int_eq((int)job->data.train.format, DATA_IDX);
    ck_assert_str_eq(job->data.train.targets, "digits-train-labels.gz");
    ck_assert(job->data.has_validation && job->data.shuffle && !job->data.drop_last);
    ck_assert_uint_eq(job->data.scale.n, 1);
    ck_assert_double_eq(job->data.scale.v[0], 0.0625);
    ck_assert_double_eq(job->data.mean.v[0], 0.0);
    ck_assert_double_eq(job->data.std.v[0], 1.0);
    ck_assert_int_eq((int)job->loss.reduction, REDUCTION_MEAN);
    ck_assert_double_eq(job->optimizer.momentum, 0.9);
    ck_assert_int_eq(job->train.epochs, 5);
    ck_assert_int_eq(job->train.max_steps, 0);
    ck_assert_int_eq(job->train.log_every, 1);
    ck_assert_int_eq((int)job->train.validate_every.unit, EVERY_EPOCHS);
    ck_assert_int_eq((int)job->parallel.mode, PARALLEL_REPLICATE);
    ck_assert_int_eq(job->parallel.n_devices, 2);
    ck_assert_ptr_null(job->parallel.devices);
    ck_assert_int_eq((int)job->parallel.device_type, DEVICE_DEFAULT);
    ck_assert_int_eq((int)job->checkpoint.every.unit, EVERY_EPOCHS);
    ck_assert_int_eq(job->checkpoint.keep, 2);
    ck_assert(job->checkpoint.resume);
    ck_assert_str_eq(job->output, "runs/digits-cnn");
    job_free(job);
}
END_TEST

START_TEST(full_values)
{
    struct job *job = parsed(jobs_full);
    const struct job_layer *layers = job->model.layers;
    check_pair(layers[0].conv2d.kernel_size, 3, 5);
    check_pair(layers[0].conv2d.stride, 1, 2);
    check_pair(layers[0].conv2d.dilation, 2, 2);
    ck_assert(layers[0].conv2d.groups == 3 && !layers[0].conv2d.bias);
    ck_assert_str_eq(layers[0].inputs[0], "input");
    ck_assert_uint_eq(layers[2].n_inputs, 2);
    ck_assert_str_eq(layers[2].inputs[1], "layer1.0.conv1");
    check_pair(layers[3].maxpool2d.stride, 1, 1);
    ck_assert(layers[3].maxpool2d.ceil_mode);
    check_pair(layers[4].adaptiveavgpool2d.output_size, 2, 3);
    ck_assert_int_eq(layers[5].flatten.end_dim, 3);
    ck_assert_double_eq(layers[8].dropout.p, 0.25);
    ck_assert_int_eq(job->model.init.seed, 0);
    ck_assert(!job->model.init.strict);
    ck_assert_int_eq(job->data.validation.classes, 4);
    ck_assert_uint_eq(job->data.mean.n, 3);
    ck_assert_double_eq(job->data.mean.v[1], -0.2);
    ck_assert_int_eq((int)job->loss.reduction, REDUCTION_SUM);
    ck_assert(job->optimizer.nesterov);
    ck_assert_int_eq(job->train.seed, INT64_MAX);
    ck_assert_int_eq(job->train.validate_every.n, 500);
    ck_assert(job->train.trace_shapes);
    ck_assert_int_eq(job->parallel.n_devices, 3);
    ck_assert_str_eq(job->parallel.devices[1], "cpu");
    ck_assert_int_eq((int)job->checkpoint.every.unit, EVERY_SECONDS);
    ck_assert_int_eq(job->checkpoint.every.n, 600);
    ck_assert(!job->checkpoint.resume);
    job_free(job);
}
END_TEST

/* Parsing the dump gives an equal job: its own dump is the same, key for key. */
static void check_dump(const char *text)
{
    struct job *job = parsed(text);
    json_t *dump = job_dump(job), *again_dump;
    char *line = json_line(dump);
    struct job *again = parsed(line);
    again_dump = job_dump(again);
    ck_assert(json_equal(dump, again_dump));
    char *again_line = json_line(again_dump);
    ck_assert_str_eq(line, again_line);
    free(line);
    free(again_line);
    json_decref(dump);
    json_decref(again_dump);
    job_free(job);
    job_free(again);
}

START_TEST(dumps_give_equal_jobs)
{
    check_dump(jobs_digits);
    check_dump(jobs_full);
}
END_TEST

START_TEST(dump_writes_every_default)
{
    struct job *job = parsed(jobs_digits);
    json_t *dump = job_dump(job);
    json_t *expected =
        json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:s}", "type", "Conv2d", "name",
                  "conv1", "out_channels", 32, "kernel_size", 3, "stride", 1, "padding", 1,
                  "dilation", 1, "groups", 1, "bias", 1, "padding_mode", "zeros");
    const json_t *layers = json_object_get(json_object_get(dump, "model"), "layers");
    ck_assert(json_equal(json_array_get(layers, 0), expected));
    json_decref(expected);
    expected = json_pack("{s:s, s:i, s:s}", "every", "1 epoch", "keep", 2, "resume", "auto");
    ck_assert(json_equal(json_object_get(dump, "checkpoint"), expected));
    json_decref(expected);
    json_decref(dump);
    job_free(job);
}
END_TEST

/* The digits job, or with `base` another, with one value put at a pointer (NULL: taken out). */
static json_t *patched(const char *base, const char *pointer, const char *value)
{
    json_t *root = json_loads(base, 0, NULL), *at = root;
    char part[128];
    const char *rest = pointer + 1;
    for (;;) {
        size_t n = strcspn(rest, "/");
        ck_assert_uint_lt(n, sizeof part);
        memcpy(part, rest, n);
        part[n] = '\0';
        if (rest[n] == '\0')
            break;
        at = json_is_array(at) ? json_array_get(at, strtoul(part, NULL, 10))
                               : json_object_get(at, part);
        ck_assert_msg(at != NULL, "nothing at %s of %s", part, pointer);
        rest += n + 1;
    }
    json_t *put = value != NULL ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    ck_assert(value == NULL || put != NULL);
    if (json_is_array(at))
        ck_assert_int_eq(strcmp(part, "-") == 0
                             ? json_array_append_new(at, put)
                             : json_array_set_new(at, strtoul(part, NULL, 10), put),
                         0);
    else
        ck_assert_int_eq(
            value != NULL ? json_object_set_new(at, part, put) : json_object_del(at, part), 0);
    return root;
}

#define INVALID ERR_JOB_INVALID
#define LATER ERR_JOB_UNSUPPORTED
#define NAME_257                                                                                   \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
    "aaaa"                                                                                         \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
    "aaaa"                                                                                         \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
    const char *at, *value;
    int code;
    const char *path; /* NULL: the same as `at` */
    const char *fragment;
} bad[] = {
    /* Keys. */
    {"/model/layers/0/kernal_size", "3", INVALID, NULL,
     "unknown key \"kernal_size\" in Conv2d; did you mean \"kernel_size\"?"},
    {"/model/layers/2/kernel_size", "3", INVALID, NULL,
     "unknown key \"kernel_size\" in ReLU; allowed are type, name, inputs, inplace"},
    {"/optimiser", "{}", INVALID, NULL, "did you mean \"optimizer\"?"},
    {"/a~b", "1", INVALID, "/a~0b", "unknown key \"a~b\" in a job"},
    {"/train/batchsize", "1", INVALID, NULL, "did you mean \"batch_size\"?"},
    {"/train/batch_size", NULL, INVALID, "/train",
     "train needs \"batch_size\": an integer from 1 to 2147483647"},
    {"/version", NULL, INVALID, "", "a job needs \"version\": 1"},
    {"/model", NULL, INVALID, "", "a job needs \"model\": an object"},
    {"/data/train", NULL, INVALID, "/data", "data needs \"train\""},
    {"/data/train/targets", NULL, INVALID, "/data/train", "idx needs \"targets\""},
    {"/model/layers/0/type", NULL, INVALID, "/model/layers/0",
     "a layer needs \"type\": \"Linear\""},
    {"/loss/type", NULL, INVALID, "/loss", "\"CrossEntropyLoss\" or \"MSELoss\""},
    {"/optimizer/lr", NULL, INVALID, "/optimizer", "SGD needs \"lr\": a number of at least 0"},
    /* Types. */
    {"/version", "2", INVALID, NULL, "version must be 1, found the number 2"},
    {"/version", "\"1\"", INVALID, NULL, "version must be 1, found the string \"1\""},
    {"/name", "7", INVALID, NULL, "name must be a string of 1 to 256 bytes"},
    {"/name", "null", INVALID, NULL, "found null"},
    {"/model", "[]", INVALID, NULL, "model must be an object, found a list of 0"},
    {"/model/layers", "{}", INVALID, NULL, "layers must be a list of 1 to 10000 objects"},
    {"/model/layers", "[]", INVALID, NULL, "found a list of 0"},
    {"/model/layers/1", "\"ReLU\"", INVALID, NULL, "must be an object, found the string \"ReLU\""},
    {"/model/layers/0/out_channels", "\"32\"", INVALID, NULL,
     "out_channels must be an integer from 1 to 2147483647, found the string \"32\""},
    {"/model/layers/0/out_channels", "32.0", INVALID, NULL, "must be an integer"},
    {"/model/layers/0/bias", "1", INVALID, NULL, "bias must be true or false, found the number 1"},
    {"/data/train/inputs", "3", INVALID, NULL, "inputs must be a string of 1 to 4096 bytes"},
    {"/optimizer/lr", "\"0.1\"", INVALID, NULL,
     "lr must be a number of at least 0, found the string"},
    {"/optimizer/lr", "true", INVALID, NULL, "found true"},
    {"/data/validation", "null", INVALID, NULL, "validation must be an object, found null"},
    {"/checkpoint", "\"1 epoch\"", INVALID, NULL, "checkpoint must be an object"},
    /* Ranges. */
    {"/model/layers/0/out_channels", "0", INVALID, NULL,
     "from 1 to 2147483647, found the number 0"},
    {"/model/layers/0/kernel_size", "[3]", INVALID, NULL, "or a list of two, found a list of 1"},
    {"/model/layers/0/kernel_size", "[3, 0]", INVALID, NULL, "an integer from 1 to"},
    {"/model/layers/0/padding", "-1", INVALID, NULL, "an integer from 0 to"},
    {"/model/layers/1/eps", "-1", INVALID, NULL, "eps must be a number from 0 to 1"},
    {"/model/layers/4/start_dim", "0", INVALID, NULL, "an integer from 1 to 5"},
    {"/model/input/shape", "[]", INVALID, NULL, "a list of 1 to 5 integers from 1 to"},
    {"/model/input/shape", "[1, 2, 3, 4, 5, 6]", INVALID, NULL, "found a list of 6"},
    {"/model/input/shape", "[1, 0, 8]", INVALID, "/model/input/shape/1", "found the number 0"},
    {"/model/input/shape", "8", INVALID, NULL, "found the number 8"},
    {"/train/epochs", "0", INVALID, NULL, "epochs must be an integer of at least 1"},
    {"/train/seed", "-1", INVALID, NULL, "seed must be an integer of at least 0"},
    {"/optimizer/lr", "-0.1", INVALID, NULL, "of at least 0, found the number -0.1"},
    {"/checkpoint", "{\"keep\": 0}", INVALID, "/checkpoint/keep", "of at least 1"},
    {"/data/transform/std", "0", INVALID, NULL, "a number above 0"},
    {"/data/transform/std", "[1, 0]", INVALID, "/data/transform/std/1", "above 0"},
    {"/data/transform/mean", "[]", INVALID, NULL, "found a list of 0"},
    {"/name", "\"\"", INVALID, NULL, "1 to 256 bytes"},
    {"/name", "\"" NAME_257 "\"", INVALID, NULL, "1 to 256 bytes"},
    {"/name", "\"a\\nb\"", INVALID, NULL, "without control characters"},
    /* Choices. */
    {"/model/layers/2/type", "\"Relu\"", INVALID, NULL, "did you mean \"ReLU\"?"},
    {"/model/layers/2/type", "\"Frob\"", INVALID, NULL, "type must be \"Linear\", \"Conv2d\","},
    {"/model/layers/2/type", "3", INVALID, NULL, "found the number 3"},
    {"/loss/type", "\"CrossEntropy\"", INVALID, NULL, "found the string \"CrossEntropy\""},
    {"/loss/reduction", "\"avg\"", INVALID, NULL, "reduction must be \"mean\" or \"sum\""},
    {"/train/trace", "[\"shape\"]", INVALID, "/train/trace/0", "did you mean \"shapes\"?"},
    {"/train/trace", "\"shapes\"", INVALID, NULL, "trace must be a list of \"shapes\""},
    {"/train/validate_every", "\"1 epok\"", INVALID, NULL, "a count and a unit"},
    {"/train/validate_every", "\"10 min\"", INVALID, NULL, "a count and a unit"},
    {"/train/validate_every", "5", INVALID, NULL, "found the number 5"},
    {"/checkpoint", "{\"every\": \"0 steps\"}", INVALID, "/checkpoint/every", "\"10 min\""},
    {"/checkpoint", "{\"every\": \"99999999999999 h\"}", INVALID, "/checkpoint/every", "a count"},
    {"/checkpoint", "{\"every\": \"1  epoch\"}", INVALID, "/checkpoint/every", "a count"},
    {"/checkpoint", "{\"resume\": true}", INVALID, "/checkpoint/resume", "\"auto\" or \"never\""},
    /* Not in this version. */
    {"/model/layers/2", "{\"type\": \"LSTM\", \"hidden_size\": 3}", LATER, "/model/layers/2/type",
     "LSTM layers are not in this version"},
    {"/model/layers/0/padding", "\"same\"", LATER, NULL, "paddings by name are not"},
    {"/model/layers/0/spectral_norm", "true", LATER, NULL, "spectral norms are not"},
    {"/model/layers/0/padding_mode", "\"circular\"", LATER, NULL, "other padding modes"},
    {"/model/layers/0/padding_mode", "\"square\"", INVALID, NULL, "must be \"zeros\""},
    {"/model/layers/2/inplace", "true", LATER, NULL, "in place"},
    {"/model/layers/1/momentum", "null", LATER, NULL, "cumulative"},
    {"/model/preset", "\"resnet50\"", LATER, NULL, "presets are not in this version"},
    {"/model/inputs", "{}", LATER, NULL, "several inputs are not"},
    {"/model/freeze", "[]", LATER, NULL, "frozen layers are not"},
    {"/model/input/dtype", "\"int64\"", LATER, NULL, "int64 inputs"},
    {"/model/input/scatter", "false", LATER, NULL, "every replica whole"},
    {"/data/train/format", "\"csv\"", LATER, NULL, "csv files are not"},
    {"/data/train/inputs", "{\"a\": \"b\"}", LATER, NULL, "several inputs are not"},
    {"/data/transform/resize", "8", LATER, NULL, "image transforms are not"},
    {"/loss/label_smoothing", "0.1", LATER, NULL, "smoothed labels are not"},
    {"/loss/reduction", "\"none\"", LATER, NULL, "without a reduction are not"},
    {"/loss/type", "\"L1Loss\"", LATER, NULL, "L1Loss losses are not"},
    {"/optimizer/type", "\"Adam\"", LATER, NULL, "Adam optimizers are not"},
    {"/optimizer/no_decay", "[]", LATER, NULL, "exemptions"},
    {"/train/accumulate", "4", LATER, NULL, "accumulated gradients are not"},
    {"/train/accumulate", "\"4\"", INVALID, NULL, "accumulate must be 1"},
    {"/train/precision", "\"bf16\"", LATER, NULL, "bf16 computations are not"},
    {"/train/precision", "\"fp33\"", INVALID, NULL, "precision must be \"fp32\""},
    {"/train/mode", "\"predict\"", LATER, NULL, "predicting jobs are not"},
    {"/train/checkpoint_activations", "true", LATER, NULL, "recomputed activations"},
    {"/train/clip_grad_norm", "1", LATER, NULL, "clipped gradients are not"},
    {"/parallel/mode", "\"stages\"", LATER, NULL, "stages are not in this version"},
    {"/parallel/batch_norm", "\"synchronized\"", LATER, NULL, "synchronized BatchNorms are not"},
    {"/parallel/shards", "4", LATER, NULL, "shards are not"},
    {"/parallel/split", "[]", LATER, NULL, "stages are not"},
    {"/schedule", "{}", LATER, NULL, "learning-rate schedules are not"},
    {"/queue", "{}", LATER, NULL, "queue settings are not"},
    {"/sweep", "{}", LATER, NULL, "sweeps are not"},
    {"/command", "[]", LATER, NULL, "command jobs are not"},
    /* Rules over several keys. */
    {"/train/max_steps", "5", INVALID, "/train", "\"epochs\" or \"max_steps\", and not both"},
    {"/train/epochs", NULL, INVALID, "/train", "found neither"},
    {"/model/layers/1/name", "\"conv1\"", INVALID, NULL, "layer 0 has the name \"conv1\" already"},
    {"/model/layers/1/name", "\"4\"", INVALID, "/model/layers/4/name", "layer 1 has the name"},
    {"/model/layers/1/name", "\"a..b\"", INVALID, NULL, "parts between dots are not empty"},
    {"/model/layers/1/name", "\".a\"", INVALID, NULL, "parts between dots"},
    {"/model/layers/1/name", "\"a.\"", INVALID, NULL, "parts between dots"},
    {"/model/layers/1/name", "\"\"", INVALID, NULL, "parts between dots"},
    {"/model/layers/1/name", "\"input\"", INVALID, NULL, "not \"input\""},
    {"/model/layers/1/inputs", "[\"fc\"]", INVALID, "/model/layers/1/inputs/0",
     "layer \"fc\" does not come before this one"},
    {"/model/layers/1/inputs", "[\"bn1\"]", INVALID, "/model/layers/1/inputs/0", "does not come"},
    {"/model/layers/1/inputs", "[\"conv9\"]", INVALID, "/model/layers/1/inputs/0",
     "no layer has the name \"conv9\""},
    {"/model/layers/1/inputs", "[]", INVALID, NULL, "a list of 1 to 10000 names"},
    {"/model/layers/1/inputs", "[3]", INVALID, "/model/layers/1/inputs/0", "must be a string"},
    {"/model/layers/1/inputs", "\"conv1\"", INVALID, NULL, "a list of"},
    {"/model/layers/1/inputs", "[\"conv1\", \"input\"]", INVALID, NULL,
     "BatchNorm2d takes one input, found 2"},
    {"/model/layers/2", "{\"type\": \"Add\"}", INVALID, NULL, "at least two names"},
    {"/model/layers/2", "{\"type\": \"Add\", \"inputs\": [\"bn1\"]}", INVALID,
     "/model/layers/2/inputs", "found 1"},
    {"/model/layers/0/groups", "5", INVALID, NULL, "groups must divide out_channels"},
    {"/model/layers/3/padding", "2", INVALID, NULL, "at most half of kernel_size, found 2 for 2"},
    {"/model/layers/3", "{\"type\": \"Dropout\", \"p\": 1.5}", INVALID, "/model/layers/3/p",
     "p must be a number from 0 to 1, found the number 1.5"},
    {"/optimizer", "{\"type\": \"SGD\", \"lr\": 1, \"nesterov\": true}", INVALID,
     "/optimizer/nesterov", "needs momentum above 0"},
    {"/optimizer",
     "{\"type\": \"SGD\", \"lr\": 1, \"nesterov\": true, \"momentum\": 1, \"dampening\": 0.5}",
     INVALID, "/optimizer/nesterov", "no dampening"},
    {"/data/train", "{\"format\": \"random\", \"samples\": 9}", INVALID, NULL,
     "CrossEntropyLoss needs labels"},
    {"/data/validation", "{\"format\": \"random\", \"samples\": 9}", INVALID, NULL,
     "CrossEntropyLoss needs labels"},
    {"/data/train", "{\"format\": \"random\"}", INVALID, NULL, "random needs \"samples\""},
    {"/parallel", "{\"devices\": 2}", INVALID, "/parallel/devices", "runs on one device"},
    {"/parallel", "{\"devices\": \"all\"}", INVALID, "/parallel/devices", "runs on one device"},
    {"/parallel", "{\"mode\": \"replicate\"}", INVALID, NULL, "replicate needs \"devices\""},
    {"/parallel/devices", "0", INVALID, NULL, "a count from 1 to 64"},
    {"/parallel/devices", "65", INVALID, NULL, "a count"},
    {"/parallel/devices", "\"cpu:0\"", INVALID, NULL, "\"all\", or a list"},
    {"/parallel/devices", "[]", INVALID, NULL, "found a list of 0"},
    {"/parallel/devices", "[0, 1]", INVALID, "/parallel/devices/0", "must be a string"},
    {"/parallel/devices", "[\"cpu:0\", \"tpu:0\"]", INVALID, "/parallel/devices/1",
     "\"tpu:0\" names no device"},
    {"/parallel/devices", "[\"cpu:0\", \"cpu:0\"]", INVALID, "/parallel/devices/1",
     "\"cpu:0\" is named twice"},
    {"/parallel/devices", "[\"cpu:0\", \"cuda:0\"]", INVALID, "/parallel/devices/1",
     "of another type"},
    {"/parallel", "{\"mode\": \"replicate\", \"device_type\": \"cuda\", \"devices\": [\"cpu:0\"]}",
     INVALID, "/parallel/device_type", "differs"},
    {"/parallel/device_type", "\"tpu\"", INVALID, NULL, "\"cpu\" or \"cuda\""},
};

START_TEST(bad_documents_are_refused)
{
    json_t *root = patched(jobs_digits, bad[_i].at, bad[_i].value);
    struct job *job = NULL;
    struct err err = ERR_INIT;
    int rc = job_from_json(root, &job, &err);
    json_decref(root);
    ck_assert_ptr_null(job);
    ck_assert_msg(rc == bad[_i].code, "%d: %s", rc, err.message);
    ck_assert_str_eq(err.path, bad[_i].path != NULL ? bad[_i].path : bad[_i].at);
    ck_assert_msg(strstr(err.message, bad[_i].fragment) != NULL, "\"%s\" lacks \"%s\"", err.message,
                  bad[_i].fragment);
    ck_assert_int_ne(err.message[strlen(err.message) - 1], '.');
}
END_TEST

static const struct {
    const char *at, *value;
} good[] = {
    {"/name", "\"Ünïcödé ☃\""},
    {"/name", NULL},
    {"/output", NULL},
    {"/checkpoint", "{\"every\": \"never\"}"},
    {"/checkpoint", "{\"every\": \"90 s\"}"},
    {"/checkpoint", "{\"every\": \"2 h\"}"},
    {"/checkpoint", "{\"every\": \"1 steps\"}"},
    {"/train/accumulate", "1"},
    {"/train/precision", "\"fp32\""},
    {"/train/trace", "[\"shapes\", \"shapes\"]"},
    {"/data/validation", NULL},
    {"/data/transform", "{\"scale\": [0.5], \"mean\": 1e-300, \"std\": 1e300}"},
    {"/data/train", "{\"format\": \"random\", \"samples\": 9, \"classes\": 10}"},
    {"/model/layers/0/name", "\"layer1.0.conv1\""},
    {"/model/layers/0/inputs", "[\"input\"]"},
    {"/model/layers/-", "{\"type\": \"Add\", \"inputs\": [\"fc\", \"fc\"]}"},
    {"/model/layers/0/groups", "32"},
    {"/model/layers/3/padding", "1"},
    {"/model/layers/3", "{\"type\": \"Dropout\", \"p\": 1}"},
    {"/model/init", "{\"weights\": \"w.safetensors\", \"strict\": false}"},
    {"/parallel", NULL},
    {"/parallel", "{\"devices\": [\"cpu:3\"]}"},
    {"/parallel/devices", "\"all\""},
    {"/parallel/devices", "[\"cuda\", \"cuda\", \"cuda:0\"]"},
    {"/parallel/devices", "64"},
    {"/optimizer/nesterov", "true"},
    {"/optimizer/lr", "0"},
};

START_TEST(good_documents_pass_and_dump)
{
    json_t *root = patched(jobs_digits, good[_i].at, good[_i].value);
    char *text = json_line(root);
    json_decref(root);
    check_dump(text);
    free(text);
}
END_TEST

START_TEST(seeds_follow_train)
{
    struct job *job = parsed(jobs_digits);
    ck_assert_int_eq(job->model.init.seed, 1);
    job_free(job);
    json_t *root = patched(jobs_digits, "/model/init", "{\"seed\": 0}");
    struct err err = ERR_INIT;
    ck_assert_int_eq(job_from_json(root, &job, &err), 0);
    ck_assert_int_eq(job->model.init.seed, 0);
    json_decref(root);
    job_free(job);
}
END_TEST

static const struct {
    const char *text, *fragment;
} broken[] = {
    {"", "line 1, column 0"},
    {"[]", "a job must be an object, found a list of 0"},
    {"\"job\"", "a job must be an object, found the string \"job\""},
    {"{\"version\": 1, \"version\": 1}", "duplicate object key"},
    {"{\"version\": NaN}", "invalid token"},
    {"{\"version\": 1,\n \"train\": {\"seed\": 9223372036854775808}}", "line 2, column"},
    {"{\"name\": \"a\\u0000b\"}", "not allowed"},
};

START_TEST(broken_json_has_a_place)
{
    struct job *job = NULL;
    struct err err = ERR_INIT;
    int rc = job_parse(broken[_i].text, strlen(broken[_i].text), &job, &err);
    ck_assert_int_eq(rc, ERR_JOB_INVALID);
    ck_assert_ptr_null(job);
    ck_assert_str_eq(err.path, "");
    ck_assert_msg(strstr(err.message, broken[_i].fragment) != NULL, "%s", err.message);
}
END_TEST

START_TEST(size_is_bounded)
{
    size_t size = LIMIT_DOCUMENT_BYTES + 1;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    memset(text, ' ', size);
    memcpy(text, jobs_digits, sizeof jobs_digits - 1);
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(job_parse(text, size, &job, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.message, "the document is larger than 4194304 bytes");
    ck_assert_int_eq(job_parse(text, size - 1, &job, &err), 0);
    job_free(job);
    free(text);
}
END_TEST

START_TEST(a_value_is_bounded_as_its_text)
{
    json_t *root = json_loads(jobs_digits, 0, NULL);
    json_t *deep = json_array();
    for (int i = 0; i < 1000; i++)
        deep = json_pack("[o]", deep);
    json_object_set_new(root, "name", deep);
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(job_from_json(root, &job, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.message, "the document is nested more than 64 deep");
    char *name = malloc(LIMIT_DOCUMENT_BYTES);
    memset(name, 'x', LIMIT_DOCUMENT_BYTES);
    json_object_set_new(root, "name", json_stringn(name, LIMIT_DOCUMENT_BYTES));
    free(name);
    ck_assert_int_eq(job_from_json(root, &job, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.message, "the document is larger than 4194304 bytes");
    json_decref(root);
}
END_TEST

/* A key that does not fit in the path: the pointer names the object that holds it. */
START_TEST(huge_keys_keep_the_pointer_whole)
{
    char key[3000];
    memset(key, '/', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    json_t *root = json_loads(jobs_digits, 0, NULL);
    json_object_set_new(json_object_get(root, "train"), key, json_true());
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(job_from_json(root, &job, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.path, "/train");
    json_decref(root);
}
END_TEST

/* Every prefix of a document is an error; every byte replaced by a few gives an error or a job. */
START_TEST(mutations_do_no_harm)
{
    const char replacements[] = "\0\xff\"\\[{]}:,-9e";
    char text[sizeof jobs_full];
    memcpy(text, jobs_full, sizeof text);
    int passed = 0;
    for (size_t i = 0; i < sizeof text - 1; i++) {
        struct job *job = NULL;
        struct err err = ERR_INIT;
        ck_assert_int_eq(job_parse(text, i, &job, &err), ERR_JOB_INVALID);
        char kept = text[i];
        for (size_t k = 0; k < sizeof replacements - 1; k++) {
            text[i] = replacements[k];
            if (job_parse(text, sizeof text - 1, &job, &err) != 0)
                continue;
            passed++;
            job_free(job);
        }
        text[i] = kept;
    }
    ck_assert_int_gt(passed, 0);
}
END_TEST

START_TEST(layer_names)
{
    ck_assert_str_eq(layer_type_name(LAYER_CONV2D), "Conv2d");
    ck_assert_str_eq(layer_type_name(LAYER_ADD), "Add");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proto/job");
    TCase *tcase = checks_case(suite, "values", 0);
    tcase_add_test(tcase, digits_layers);
    tcase_add_test(tcase, digits_rest);
    tcase_add_test(tcase, full_values);
    tcase_add_test(tcase, seeds_follow_train);
    tcase_add_test(tcase, layer_names);
    tcase = checks_case(suite, "dump", 0);
    tcase_add_test(tcase, dumps_give_equal_jobs);
    tcase_add_test(tcase, dump_writes_every_default);
    tcase_add_loop_test(tcase, good_documents_pass_and_dump, 0, sizeof good / sizeof good[0]);
    tcase = checks_case(suite, "bad", 0);
    tcase_add_loop_test(tcase, bad_documents_are_refused, 0, sizeof bad / sizeof bad[0]);
    tcase_add_loop_test(tcase, broken_json_has_a_place, 0, sizeof broken / sizeof broken[0]);
    tcase_add_test(tcase, size_is_bounded);
    tcase_add_test(tcase, a_value_is_bounded_as_its_text);
    tcase_add_test(tcase, huge_keys_keep_the_pointer_whole);
    tcase_add_test(checks_case(suite, "mutations", 60), mutations_do_no_harm);
    return checks_run(suite);
}
