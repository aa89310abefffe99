/* bad_jobs.h: documents that break a rule, each the digits job with one value changed. */
#ifndef TESTS_PROTO_BAD_JOBS_H
#define TESTS_PROTO_BAD_JOBS_H

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"
#include "tests/lib/checks.h"
#include "tests/proto/jobs.h"

struct bad_job {
    const char *at, *value; /* what is put at a pointer (NULL: taken out) */
    int code;
    const char *path; /* NULL: the same as `at` */
    const char *fragment;
};

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

/* What one row of the tables says. */
static const struct bad_job bad_values[] = {
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
    {"/data/train/inputs", "3", INVALID, NULL, "inputs must be a string of 1 to 4095 bytes"},
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
    {"/model/layers/1/name", "\"a..b\"", INVALID, NULL, "parts between dots are not empty"},
    {"/model/layers/1/name", "\".a\"", INVALID, NULL, "parts between dots"},
    {"/model/layers/1/name", "\"a.\"", INVALID, NULL, "parts between dots"},
    {"/model/layers/1/name", "\"\"", INVALID, NULL, "parts between dots"},
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
    {"/model/freeze", "[]", LATER, NULL, "frozen layers are not"},
    {"/model/input/scatter", "false", LATER, NULL, "every replica whole"},
    {"/data/train/format", "\"csv\"", LATER, NULL, "csv files are not"},
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
    {"/train/checkpoint_activations", "1", INVALID, NULL, "false, true, or a list of 1 to"},
    {"/train/checkpoint_activations", "[]", INVALID, NULL, "found a list of 0"},
    {"/train/clip_grad_norm", "1", LATER, NULL, "clipped gradients are not"},
    {"/parallel/mode", "\"stages\"", LATER, NULL, "stages are not in this version"},
    {"/parallel/batch_norm", "\"synchronized\"", LATER, NULL, "synchronized BatchNorms are not"},
    {"/parallel/shards", "4", LATER, NULL, "shards are not"},
    {"/parallel/split", "[]", LATER, NULL, "stages are not"},
    {"/schedule", "{}", LATER, NULL, "learning-rate schedules are not"},
    {"/queue", "{}", LATER, NULL, "queue settings are not"},
    {"/sweep", "{}", LATER, NULL, "sweeps are not"},
    {"/command", "[]", LATER, NULL, "command jobs are not"},
};

/* Rules over several keys, and those that a schema cannot say. */
static const struct bad_job bad_rules[] = {
    {"/train/checkpoint_activations", "[\"conv9\"]", INVALID, "/train/checkpoint_activations/0",
     "no layer has the name \"conv9\""},
    {"/train/max_steps", "5", INVALID, "/train", "\"epochs\" or \"max_steps\", and not both"},
    {"/train/epochs", NULL, INVALID, "/train", "found neither"},
    {"/model/layers/1/name", "\"conv1\"", INVALID, NULL, "layer 0 has the name \"conv1\" already"},
    {"/model/layers/1/name", "\"4\"", INVALID, "/model/layers/4/name", "layer 1 has the name"},
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

#undef INVALID
#undef LATER

#endif
