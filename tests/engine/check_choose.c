/* What is chosen of stages where a document leaves it open. */
#include <stdlib.h>
#include <string.h>

#include "engine/ops/registry.h"
#include "engine/parallel/choose.h"
#include "engine/parallel/estimate.h"
#include "tests/engine/models.h"
#include "tests/lib/checks.h"

static const int64_t plenty = (int64_t)1 << 40;

/* Four layers of the same cost, each followed by one of nearly none. */
static const char *const even =
    "{'type': 'Linear', 'name': 'a', 'out_features': 512}, {'type': 'ReLU'},"
    "{'type': 'Linear', 'name': 'b', 'out_features': 512}, {'type': 'ReLU'},"
    "{'type': 'Linear', 'name': 'c', 'out_features': 512}, {'type': 'ReLU'},"
    "{'type': 'Linear', 'name': 'd', 'out_features': 512}";
static const char *const normed =
    "{'type': 'Linear', 'name': 'a', 'out_features': 64}, {'type': 'BatchNorm1d', 'name': 'n'},"
    "{'type': 'Linear', 'name': 'b', 'out_features': 64}";

static struct job *job_of(const char *layers, const char *parallel)
{
    char more[512];
    snprintf(more, sizeof more,
             "'loss': {'type': 'MSELoss'}, 'optimizer': {'type': 'SGD', 'lr': 0.1},"
             "'parallel': {'mode': 'stages', %s}",
             parallel);
    struct job *job = models_job("[512]", layers, more);
    job->train.batch_size = 64;
    return job;
}

static const struct choose_case {
    const char *parallel;
    size_t n_devices, n_split;
    const char *split[3];
} cases[] = {
    {"'devices': 2, 'split_size': 16", 2, 1, {"c"}},
    {"'devices': 'all', 'split_size': 16", 2, 1, {"c"}},
    {"'devices': 4, 'split_size': 16", 4, 3, {"b", "c", "d"}},
    {"'devices': 4, 'replicas': 2, 'split_size': 16", 4, 1, {"c"}},
    {"'devices': 2, 'split': ['d'], 'schedule': 'none'", 2, 1, {"d"}},
    {"'devices': 1", 1, 0, {NULL}},
};

START_TEST(the_split_is_even)
{
    const struct choose_case *c = &cases[_i];
    struct job *job = job_of(even, c->parallel);
    struct err err = ERR_INIT;
    size_t first[LIMIT_DEVICES];
    ck_assert_msg(choose_stages(job, c->n_devices, plenty, &err) == 0, "%s", err.message);
    ck_assert_uint_eq(job->parallel.n_split, c->n_split);
    ck_assert_uint_eq(job_stage_begins(job, first), c->n_split + 1);
    ck_assert_int_eq(job->parallel.n_devices, (int)c->n_devices);
    for (size_t i = 0; i < c->n_split; i++) {
        /* Before a Linear layer, or before the ReLU in front of it. */
        size_t wanted = (size_t)(c->split[i][0] - 'a') * 2;
        ck_assert_uint_ge(first[i + 1] + 1, wanted);
        ck_assert_uint_le(first[i + 1], wanted);
    }
    job_free(job);
}
END_TEST

static const struct count_case {
    const char *layers, *parallel;
    int64_t least, most; /* micro-batches */
} counts[] = {
    {NULL, "'devices': 2, 'microbatches': 5", 5, 5},
    {NULL, "'devices': 2, 'split_size': 20", 0, 0},
    {NULL, "'devices': 2, 'schedule': 'none'", 0, 0},
    {NULL, "'devices': 1", 0, 0},
    {NULL, "'devices': 2", 2, 64},
    {NULL, "'devices': 2, 'microbatches': 'auto'", 2, 64},
    {"normed", "'devices': 2", 0, 0},
    {"normed", "'devices': 2, 'microbatches': 'auto'", 1, 32},
};

START_TEST(micro_batches_are_chosen_where_they_are_open)
{
    const struct count_case *c = &counts[_i];
    struct job *job = job_of(c->layers != NULL ? normed : even, c->parallel);
    struct err err = ERR_INIT;
    ck_assert_msg(choose_stages(job, (size_t)job->parallel.n_devices, plenty, &err) == 0, "%s",
                  err.message);
    ck_assert_int_ge(job->parallel.microbatches, c->least);
    ck_assert_int_le(job->parallel.microbatches, c->most);
    job_free(job);
}
END_TEST

/* It normalises by its batch all the same. */
START_TEST(a_frozen_batchnorm_keeps_its_batch)
{
    struct job *job = job_of(normed, "'devices': 2");
    struct err err = ERR_INIT;
    job->model.layers[1].frozen = true;
    ck_assert_msg(choose_stages(job, 2, plenty, &err) == 0, "%s", err.message);
    ck_assert_int_eq(job->parallel.microbatches, 0);
    job_free(job);
}
END_TEST

START_TEST(what_no_device_holds_is_refused)
{
    struct job *job = job_of(even, "'devices': 2");
    struct err err = ERR_INIT;
    ck_assert_int_eq(choose_stages(job, 2, 1 << 20, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.path, "/parallel");
    job_free(job);
}
END_TEST

START_TEST(other_modes_have_nothing_to_choose)
{
    struct job *job = models_job("[512]", even, NULL);
    struct err err = ERR_INIT;
    ck_assert_int_eq(choose_stages(job, 1, 1, &err), 0);
    ck_assert_uint_eq(job->parallel.n_split, 0);
    job_free(job);
}
END_TEST

/* ResNet-50 on 3 x 128 x 128: forward, input and weight gradients are about a third each, and
 * two stages meet in layer3. */
START_TEST(resnet50_is_cut_in_layer3)
{
    static const char text[] =
        "{\"version\": 1, \"model\": {\"preset\": \"resnet50\", \"input\": {\"shape\": [3, 128, "
        "128]}},"
        "\"data\": {\"train\": {\"format\": \"random\", \"samples\": 120, \"classes\": 1000}},"
        "\"loss\": {\"type\": \"MSELoss\"}, \"optimizer\": {\"type\": \"SGD\", \"lr\": 0.001},"
        "\"train\": {\"epochs\": 1, \"batch_size\": 120},"
        "\"parallel\": {\"mode\": \"stages\", \"devices\": 2, \"split_size\": 20}}";
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_msg(job_parse(text, sizeof text - 1, &job, &err) == 0, "%s", err.message);
    ck_assert_msg(choose_stages(job, 2, plenty, &err) == 0, "%s", err.message);
    ck_assert_uint_eq(job->parallel.n_split, 1);
    ck_assert_msg(strncmp(job->parallel.split[0], "layer3.", 7) == 0, "%s", job->parallel.split[0]);
    struct model *model = NULL;
    ck_assert_int_eq(model_build(job, &op_registry, &model, &err), 0);
    size_t n = job->model.n_layers;
    struct balance_layer *layers = calloc(n, sizeof *layers);
    ck_assert_int_eq(estimate_layers(model, &(struct estimate_source){0}, 20, true, layers, &err),
                     0);
    double forward = 0, backward = 0, weight = 0;
    int64_t fixed = 0;
    for (size_t i = 0; i < n; i++) {
        forward += layers[i].forward;
        backward += layers[i].backward;
        weight += layers[i].weight;
        fixed += layers[i].fixed_bytes;
    }
    double all = forward + backward + weight;
    ck_assert_double_eq_tol(forward / all, 1. / 3, 0.05);
    ck_assert_double_eq_tol(backward / all, 1. / 3, 0.06);
    ck_assert_double_eq_tol(weight / all, 1. / 3, 0.06);
    ck_assert_int_gt(fixed, 2 * 4 * model->n_parameters);
    free(layers);
    model_free(model);
    job_free(job);
}
END_TEST

struct device {             /* as it measures itself */
    double overhead, a_row; /* seconds of a layer's section */
    int measured;
};

static int measure(void *context, const struct model *model, int64_t rows,
                   struct balance_layer *layers, struct err *err)
{
    struct device *device = context;
    (void)err;
    device->measured++;
    for (size_t i = 0; i < model->job->model.n_layers; i++) {
        bool linear = model->job->model.layers[i].type == LAYER_LINEAR;
        double seconds = linear ? device->overhead + device->a_row * (double)rows : 0;
        layers[i].forward = layers[i].backward = layers[i].weight = seconds;
    }
    return 0;
}

/* Of 64 rows in 8 micro-batches, their neighbours are 6 and 12. */
START_TEST(measured_times_move_the_number)
{
    static const struct {
        double overhead;
        int64_t microbatches;
    } rows[] = {{0, 12}, {100, 6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job *job = job_of(even, "'devices': 2");
        struct device device = {.overhead = rows[i].overhead, .a_row = 1};
        const struct estimate_source source = {measure, &device};
        struct err err = ERR_INIT;
        ck_assert_msg(choose_stages(job, 2, plenty, &err) == 0, "%s", err.message);
        job->parallel.microbatches = 8;
        ck_assert_msg(choose_again(job, 2, plenty, &source, &err) == 0, "%s", err.message);
        ck_assert_int_eq(job->parallel.microbatches, rows[i].microbatches);
        ck_assert(job->parallel.microbatches_chosen && job->parallel.split_chosen);
        ck_assert_int_gt(device.measured, 0);
        job_free(job);
    }
}
END_TEST

/* What the document says stays, whatever is measured. */
START_TEST(measured_times_move_nothing_else)
{
    struct job *job = job_of(even, "'devices': 2, 'split': ['b'], 'split_size': 8");
    struct device device = {.overhead = 1e3, .a_row = 1};
    const struct estimate_source source = {measure, &device};
    struct err err = ERR_INIT;
    ck_assert_msg(choose_stages(job, 2, plenty, &err) == 0, "%s", err.message);
    ck_assert_msg(choose_again(job, 2, plenty, &source, &err) == 0, "%s", err.message);
    ck_assert_str_eq(job->parallel.split[0], "b");
    ck_assert_int_eq(job->parallel.split_size, 8);
    ck_assert_int_eq(job->parallel.microbatches, 0);
    job_free(job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("choose");
    TCase *tcase = checks_case(suite, "choose", 0);
    tcase_add_loop_test(tcase, the_split_is_even, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_loop_test(tcase, micro_batches_are_chosen_where_they_are_open, 0,
                        (int)(sizeof counts / sizeof counts[0]));
    tcase_add_test(tcase, a_frozen_batchnorm_keeps_its_batch);
    tcase_add_test(tcase, what_no_device_holds_is_refused);
    tcase_add_test(tcase, other_modes_have_nothing_to_choose);
    tcase_add_test(tcase, resnet50_is_cut_in_layer3);
    tcase_add_test(tcase, measured_times_move_the_number);
    tcase_add_test(tcase, measured_times_move_nothing_else);
    return checks_run(suite);
}
