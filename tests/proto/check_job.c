/* job: what a document means, what is refused, and that a dump says it all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job.h"
#include "proto/json.h"
#include "tests/lib/checks.h"
#include "tests/proto/bad_jobs.h"
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
    ck_assert_int_eq(model->inputs[0].shape.rank, 3);
    ck_assert_int_eq(model->inputs[0].shape.dim[2], 8);
    ck_assert_int_eq((int)model->inputs[0].dtype, JOB_FLOAT32);
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
    json_t *expected = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:s, s:b}", "type",
                                 "Conv2d", "name", "conv1", "out_channels", 32, "kernel_size", 3,
                                 "stride", 1, "padding", 1, "dilation", 1, "groups", 1, "bias", 1,
                                 "padding_mode", "zeros", "spectral_norm", 0);
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

static void check_refused(const struct bad_job *bad)
{
    json_t *root = patched(jobs_digits, bad->at, bad->value);
    struct job *job = NULL;
    struct err err = ERR_INIT;
    int rc = job_from_json(root, &job, &err);
    json_decref(root);
    ck_assert_ptr_null(job);
    ck_assert_msg(rc == bad->code, "%d: %s", rc, err.message);
    ck_assert_str_eq(err.path, bad->path != NULL ? bad->path : bad->at);
    ck_assert_msg(strstr(err.message, bad->fragment) != NULL, "\"%s\" lacks \"%s\"", err.message,
                  bad->fragment);
    ck_assert_int_ne(err.message[strlen(err.message) - 1], '.');
}

START_TEST(bad_values_are_refused)
{
    check_refused(&bad_values[_i]);
}
END_TEST

START_TEST(bad_rules_are_refused)
{
    check_refused(&bad_rules[_i]);
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
    {"/data/transform", "{\"scale\": [0.5], \"mean\": 1e-300, \"std\": 1e30}"},
    {"/data/train", "{\"format\": \"random\", \"samples\": 9, \"classes\": 10}"},
    {"/model/layers/0/name", "\"layer1.0.conv1\""},
    {"/model/layers/0/inputs", "[\"input\"]"},
    {"/model/input", "{\"shape\": [7], \"dtype\": \"int64\"}"},
    {"/data/train/inputs", "{\"input\": \"a\"}"},
    {"/data/train", "{\"format\": \"npy\", \"inputs\": \"x.npy\", \"targets\": \"y.npy\"}"},
    {"/data/train", "{\"format\": \"safetensors\", \"path\": \"data.safetensors\"}"},
    {"/data/train",
     "{\"format\": \"safetensors\", \"path\": \"d\", \"inputs\": {\"input\": \"a.b\"}, "
     "\"targets\": \"y\"}"},
    {"/data/train", "{\"format\": \"cifar10\", \"path\": \"cifar-10-batches-bin\"}"},
    {"/data/train", "{\"format\": \"cifar100\", \"path\": \"train.bin\"}"},
    {"/data/train", "{\"format\": \"csv\", \"path\": \"t.csv.gz\"}"},
    {"/data/train",
     "{\"format\": \"csv\", \"path\": \"t.csv\", \"target\": \"price\", \"header\": true}"},
    {"/data/train", "{\"format\": \"csv\", \"path\": \"t.csv\", \"target\": 0, \"header\": false}"},
    {"/data/train", "{\"format\": \"image_folder\", \"path\": \"photos\"}"},
    {"/data/train", "{\"format\": \"tokens\", \"path\": \"train.bin\", \"context\": 256}"},
    {"/data/train",
     "{\"format\": \"tokens\", \"path\": \"t\", \"dtype\": \"uint32\", \"context\": 1}"},
    {"/data/train", "{\"format\": \"text\", \"path\": \"novel.txt\", \"context\": 64}"},
    {"/data/transform", "{\"random_crop\": {\"padding\": 4}, \"random_flip\": true}"},
    {"/data/workers", "4"},
    {"/model/layers/-", "{\"type\": \"Add\", \"inputs\": [\"fc\", \"fc\"]}"},
    {"/model/layers/0/groups", "32"},
    {"/model/layers/3/padding", "1"},
    {"/model/layers/0/padding", "\"same\""},
    {"/model/layers/0/padding", "\"valid\""},
    {"/model/layers/3", "{\"type\": \"Dropout\", \"p\": 1}"},
    {"/model/init", "{\"weights\": \"w.safetensors\", \"strict\": false}"},
    {"/parallel", NULL},
    {"/parallel", "{\"devices\": [\"cpu:3\"]}"},
    {"/parallel/devices", "\"all\""},
    {"/parallel/devices", "[\"cuda\", \"cuda\", \"cuda:0\"]"},
    {"/parallel", "{\"mode\": \"stages\", \"devices\": \"all\", \"replicas\": 2}"},
    {"/parallel", "{\"mode\": \"stages\", \"devices\": 6}"},
    {"/parallel", "{\"mode\": \"stages\", \"devices\": 2, \"schedule\": \"none\","
                  " \"split\": [\"fc\"]}"},
    {"/parallel", "{\"mode\": \"stages\", \"devices\": 1, \"microbatches\": \"auto\"}"},
    {"/parallel", "{\"mode\": \"stages\", \"devices\": 2, \"stages\": ["
                  "{\"begin\": \"conv1\", \"devices\": [\"cpu:1\"]},"
                  "{\"begin\": \"fc\", \"devices\": [\"cpu\"]}]}"},
    {"/parallel/devices", "64"},
    {"/optimizer/nesterov", "true"},
    {"/optimizer/lr", "0"},
    {"/optimizer", "{\"type\": \"Adam\", \"betas\": [0, 0.5], \"amsgrad\": true}"},
    {"/optimizer", "{\"type\": \"AdamW\", \"lr\": 1, \"no_decay\": [\"*.bias\", \"bn*\"]}"},
    {"/optimizer", "{\"type\": \"RMSprop\", \"centered\": true, \"no_decay\": []}"},
    {"/loss", "{\"type\": \"CrossEntropyLoss\", \"label_smoothing\": 0.1, \"weight\": [2]}"},
    {"/loss", "{\"type\": \"NLLLoss\", \"ignore_index\": 255, \"weight\": [1, 2.5]}"},
    {"/loss", "{\"type\": \"BCEWithLogitsLoss\", \"pos_weight\": 2, \"reduction\": \"sum\"}"},
    {"/loss", "{\"type\": \"L1Loss\"}"},
    {"/schedule", "{}"},
    {"/schedule", "{\"type\": \"StepLR\", \"step_size\": 3, \"warmup_steps\": 5}"},
    {"/schedule", "{\"type\": \"MultiStepLR\", \"milestones\": [9, 3], \"gamma\": 0.5}"},
    {"/schedule", "{\"type\": \"CosineAnnealingLR\", \"T_max\": 9, \"eta_min\": 0.5}"},
    {"/train/clip_grad_norm", "0.5"},
    {"/model/freeze", "[\"conv1\", \"bn1\"]"},
    {"/model/freeze", "[]"},
    {"/model/init", "{\"weights\": \"w.safetensors\", \"fresh\": [\"fc\"]}"},
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

/* The digits, with two inputs of which one has lengths. */
static json_t *two_inputs(const char *at, const char *value)
{
    static const char *const patches[][2] = {
        {"/model/input", NULL},
        {"/model/inputs", "{\"ids\": {\"shape\": [7], \"dtype\": \"int64\", \"lengths\": true},"
                          " \"image\": {\"shape\": [1, 8, 8]}}"},
        {"/model/layers/0/inputs", "[\"image\"]"},
        {"/data/validation", NULL},
        {"/data/train/inputs", "{\"image\": \"images\", \"ids\": \"ids.idx\"}"},
        {"/data/train/lengths", "\"lengths.idx\""},
    };
    json_t *root = patched(jobs_digits, patches[0][0], patches[0][1]);
    for (size_t i = 1; i <= sizeof patches / sizeof patches[0]; i++) {
        bool last = i == sizeof patches / sizeof patches[0];
        char *text = json_line(root);
        json_decref(root);
        root = patched(text, last ? at : patches[i][0], last ? value : patches[i][1]);
        free(text);
    }
    return root;
}

START_TEST(several_inputs)
{
    struct job *job;
    struct err err = ERR_INIT;
    json_t *root = two_inputs("/name", "\"two\"");
    ck_assert_msg(job_from_json(root, &job, &err) == 0, "%s: %s", err.path, err.message);
    ck_assert_uint_eq(job->model.n_inputs, 2);
    ck_assert_str_eq(job->model.inputs[0].name, "ids");
    ck_assert_int_eq((int)job->model.inputs[0].dtype, JOB_INT64);
    ck_assert(job->model.inputs[0].lengths && !job->model.inputs[1].lengths);
    ck_assert_str_eq(job->model.inputs[1].name, "image");
    ck_assert_int_eq(job->model.inputs[1].shape.rank, 3);
    ck_assert_str_eq(job_texts_find(&job->data.train.inputs, "ids"), "ids.idx");
    ck_assert_str_eq(job_texts_find(&job->data.train.inputs, "image"), "images");
    ck_assert_ptr_null(job_texts_find(&job->data.train.inputs, "input"));
    ck_assert_str_eq(job_texts_find(&job->data.train.lengths, "ids"), "lengths.idx");
    job_free(job);
    char *text = json_line(root);
    check_dump(text);
    free(text);
    json_decref(root);
}
END_TEST

static const struct {
    const char *at, *value, *path, *says;
} bad_inputs[] = {
    {"/model/input", "{\"shape\": [1]}", "/model", "and not both; found both"},
    {"/model/inputs", NULL, "/model", "found neither"},
    {"/model/inputs", "{}", "/model/inputs", "an object of 1 to 8 names"},
    {"/model/inputs/ids", "3", "/model/inputs/ids", "must be an object, found the number 3"},
    {"/model/inputs/ids/shape", "[0]", "/model/inputs/ids/shape/0", "found the number 0"},
    {"/model/inputs/conv1", "{\"shape\": [1]}", "/model/layers/0/name",
     "an input has the name \"conv1\" already"},
    {"/model/layers/0/inputs", NULL, "/model/layers/0", "the model has 2 inputs"},
    {"/model/layers/0/inputs", "[\"input\"]", "/model/layers/0/inputs/0", "no layer has the name"},
    {"/data/train/inputs", "\"images\"", "/data/train/inputs", "the model has 2 inputs; say which"},
    {"/data/train/inputs/ids", NULL, "/data/train/inputs", "no samples for the input \"ids\""},
    {"/data/train/inputs/ids", "3", "/data/train/inputs/ids", "must be a string"},
    {"/data/train/inputs/mask", "\"m\"", "/data/train/inputs",
     "\"mask\" is none of the model's inputs"},
    {"/data/train/lengths", NULL, "/data/train/lengths", "no lengths for the input \"ids\""},
    {"/data/train/lengths", "{\"image\": \"l\"}", "/data/train/lengths",
     "\"image\" is none of the model's inputs with lengths"},
    {"/model/inputs/ids/lengths", "false", "/data/train/lengths", "the model has 0 inputs with"},
};

START_TEST(bad_inputs_are_refused)
{
    struct job *job = NULL;
    struct err err = ERR_INIT;
    json_t *root = two_inputs(bad_inputs[_i].at, bad_inputs[_i].value);
    ck_assert_int_eq(job_from_json(root, &job, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.path, bad_inputs[_i].path);
    ck_assert_msg(strstr(err.message, bad_inputs[_i].says) != NULL, "%s", err.message);
    json_decref(root);
}
END_TEST

START_TEST(optimizers_have_pytorchs_defaults)
{
    json_t *root = patched(jobs_digits, "/optimizer", "{\"type\": \"AdamW\"}");
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(job_from_json(root, &job, &err), 0);
    const struct job_optimizer *o = &job->optimizer;
    ck_assert(o->lr == 1e-3 && o->eps == 1e-8 && o->weight_decay == 1e-2 && !o->amsgrad);
    ck_assert(o->betas.n == 2 && o->betas.v[0] == 0.9 && o->betas.v[1] == 0.999);
    ck_assert(job->schedule.type == SCHEDULE_CONSTANT && job->schedule.warmup_steps == 0);
    ck_assert(job->loss.ignore_index == -100 && job->loss.weight.n == 0);
    json_decref(root);
    job_free(job);
}
END_TEST

/* A name is a layer's, or a module's around layers. */
START_TEST(freeze_and_fresh_mark_layers)
{
    json_t *root = patched(jobs_digits, "/model/freeze", "[\"layer1\", \"2\"]");
    json_t *model = json_object_get(root, "model");
    json_t *layers = json_object_get(model, "layers");
    const char *const names[] = {"layer1.0.conv1", "layer1.0", "2", "layer10.a", "layer1", "l"};
    const bool frozen[] = {true, true, true, false, true, false};
    const bool fresh[] = {true, true, false, false, false, false};
    for (size_t i = 0; i < 6; i++)
        json_object_set_new(json_array_get(layers, i), "name", json_string(names[i]));
    json_object_set_new(model, "init",
                        json_pack("{s:s, s:[s]}", "weights", "w.safetensors", "fresh", "layer1.0"));
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_msg(job_from_json(root, &job, &err) == 0, "%s", err.message);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_int_eq(job->model.layers[i].frozen, frozen[i]);
        ck_assert_int_eq(job->model.layers[i].fresh, fresh[i]);
    }
    json_decref(root);
    job_free(job);
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

/* The schema's test cannot know them: POSIX' patterns see bytes. */
START_TEST(c1_controls_are_controls)
{
    json_t *root = json_loads(jobs_digits, 0, NULL);
    struct job *job = NULL;
    struct err err = ERR_INIT;
    json_object_set_new(root, "name",
                        json_string("a\xc2\x9b"
                                    "31m"));
    ck_assert_int_eq(job_from_json(root, &job, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.path, "/name");
    json_object_set_new(root, "name", json_string("a\xc2\xa0\xc3\x9b")); /* no controls */
    ck_assert_int_eq(job_from_json(root, &job, &err), 0);
    job_free(job);
    json_decref(root);
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
    tcase_add_test(tcase, several_inputs);
    tcase_add_loop_test(tcase, bad_inputs_are_refused, 0,
                        (int)(sizeof bad_inputs / sizeof bad_inputs[0]));
    tcase_add_test(tcase, seeds_follow_train);
    tcase_add_test(tcase, optimizers_have_pytorchs_defaults);
    tcase_add_test(tcase, freeze_and_fresh_mark_layers);
    tcase_add_test(tcase, layer_names);
    tcase = checks_case(suite, "dump", 0);
    tcase_add_test(tcase, dumps_give_equal_jobs);
    tcase_add_test(tcase, dump_writes_every_default);
    tcase_add_loop_test(tcase, good_documents_pass_and_dump, 0, sizeof good / sizeof good[0]);
    tcase = checks_case(suite, "bad", 0);
    tcase_add_loop_test(tcase, bad_values_are_refused, 0, sizeof bad_values / sizeof bad_values[0]);
    tcase_add_loop_test(tcase, bad_rules_are_refused, 0, sizeof bad_rules / sizeof bad_rules[0]);
    tcase_add_loop_test(tcase, broken_json_has_a_place, 0, sizeof broken / sizeof broken[0]);
    tcase_add_test(tcase, c1_controls_are_controls);
    tcase_add_test(tcase, size_is_bounded);
    tcase_add_test(tcase, a_value_is_bounded_as_its_text);
    tcase_add_test(tcase, huge_keys_keep_the_pointer_whole);
    tcase_add_test(checks_case(suite, "mutations", 60), mutations_do_no_harm);
    return checks_run(suite);
}
