/* check_checkpoint.c: weights given to a job: names, shapes, prefixes; and what is written back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

enum { OUT = 3, IN = 5 };

static float weight[OUT * IN], bias[OUT + 1];
static struct run_job run;

/* A linear model that does not learn: what it writes is what it was given. */
static const char job[] =
    "{'model': {'layers': [{'type': 'Linear', 'name': 'fc', 'out_features': 3}],"
    " 'init': {'weights': '%s', 'strict': %s}}, 'optimizer': {'lr': 0},"
    " 'train': {'epochs': 1}, 'checkpoint': {'every': 'never'}}";

static const char *place(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", checks_scratch(), name);
    return path;
}

static const char *given(const struct safetensor *tensors, size_t n)
{
    struct err err;
    const char *path = place("given.safetensors");
    ck_assert_int_eq(safetensors_write(path, tensors, n, NULL, &err), 0);
    return path;
}

static void run_with(const struct safetensor *tensors, size_t n, bool strict)
{
    char patch[1024];
    snprintf(patch, sizeof patch, job, given(tensors, n), strict ? "true" : "false");
    run_job(patch, place("out"), 2, 0, &run);
}

static void fill(void)
{
    for (int i = 0; i < OUT * IN; i++)
        weight[i] = 0.1f * (float)(i - 7);
    for (int i = 0; i < OUT; i++)
        bias[i] = (float)i;
}

#define WEIGHT(name)                                                                               \
    {                                                                                              \
        name, {2, {OUT, IN}}, DTYPE_F32, weight, sizeof weight                                     \
    }
#define BIAS(name, n)                                                                              \
    {                                                                                              \
        name, {1, {n}}, DTYPE_F32, bias, (n) * sizeof(float)                                       \
    }

static const struct safetensor plain[] = {WEIGHT("fc.weight"), BIAS("fc.bias", OUT)};
static const struct safetensor wrapped[] = {WEIGHT("module.fc.weight"),
                                            BIAS("module.fc.bias", OUT)};
static const struct safetensor twice[] = {WEIGHT("module.module.fc.weight"),
                                          BIAS("module.module.fc.bias", OUT)};
static const struct safetensor mixed[] = {WEIGHT("module.fc.weight"), BIAS("fc.bias", OUT)};
static const struct safetensor lacking[] = {WEIGHT("fc.weight")};
static const struct safetensor misshapen[] = {WEIGHT("fc.weight"), BIAS("fc.bias", OUT + 1)};
static const struct safetensor mistyped[] = {WEIGHT("fc.weight"),
                                             {"fc.bias", {1, {OUT}}, DTYPE_U8, bias, OUT}};
static const struct safetensor surplus[] = {WEIGHT("fc.weight"), BIAS("fc.bias", OUT),
                                            BIAS("extra", 2)};

static const struct {
    const struct safetensor *tensors;
    size_t n;
    bool strict;
    const char *says; /* NULL: accepted */
} files[] = {
    {plain, 2, true, NULL},
    {wrapped, 2, true, NULL},
    {surplus, 3, false, NULL},
    {surplus, 3, true, "the model has no \"extra\""},
    {twice, 2, true, "there is no \"fc.weight\""},
    {mixed, 2, true, "keys with and without «module.»: \"module.fc.weight\" and \"fc.bias\""},
    {mixed, 2, false, "keys with and without «module.»"},
    {lacking, 1, false, "there is no \"fc.bias\""},
    {misshapen, 2, false, "\"fc.bias\" is [4], the model's is [3]"},
    {mistyped, 2, true, "\"fc.bias\" is of type U8, the model's is F32"},
};

START_TEST(weights_by_name)
{
    fill();
    run_with(files[_i].tensors, files[_i].n, files[_i].strict);
    if (files[_i].says == NULL) {
        struct err err;
        struct safetensors *file;
        ck_assert_msg(run.rc == 0, "%s", run.err.message);
        ck_assert_int_eq(safetensors_open(run.done.path, &file, &err), 0);
        ck_assert_uint_eq(safetensors_count(file), 2);
        ck_assert_mem_eq(safetensors_find(file, "fc.weight")->data, weight, sizeof weight);
        ck_assert_mem_eq(safetensors_find(file, "fc.bias")->data, bias, OUT * sizeof(float));
        safetensors_close(file);
    } else {
        ck_assert_int_eq(run.rc, ERR_WEIGHTS_INVALID);
        ck_assert_str_eq(run.err.path, "/model/init/weights");
        ck_assert_msg(strstr(run.err.message, files[_i].says) != NULL, "%s", run.err.message);
    }
}
END_TEST

START_TEST(weights_that_are_no_file)
{
    char patch[1024];
    snprintf(patch, sizeof patch, job, checks_scratch(), "true");
    run_job(patch, place("out"), 1, 0, &run);
    ck_assert_int_eq(run.rc, ERR_IO);
    ck_assert_ptr_nonnull(strstr(run.err.message, "is a directory, not a file"));
}
END_TEST

/* Parameters and buffers in the order and with the shapes of a state_dict; after 3 steps of
 * momentum 0.1 the running variance has left 1. */
START_TEST(what_is_written_is_a_state_dict)
{
    static const char *const names[] = {"a.weight",
                                        "a.bias",
                                        "bn.weight",
                                        "bn.bias",
                                        "bn.running_mean",
                                        "bn.running_var",
                                        "bn.num_batches_tracked",
                                        "b.weight",
                                        "b.bias"};
    struct err err;
    struct safetensors *file;
    run_job_well("{'train': {'epochs': 1}}", place("out"), 2, &run);
    ck_assert_int_eq(safetensors_open(run.done.path, &file, &err), 0);
    ck_assert_uint_eq(safetensors_count(file), sizeof names / sizeof names[0]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_msg(safetensors_find(file, names[i]) != NULL, "%s is missing", names[i]);
    const struct safetensor *tracked = safetensors_find(file, "bn.num_batches_tracked");
    ck_assert_int_eq(tracked->dtype, DTYPE_I64);
    ck_assert_int_eq(tracked->shape.rank, 0);
    ck_assert_int_eq(*(const int64_t *)tracked->data, 3);
    ck_assert_float_ne(*(const float *)safetensors_find(file, "bn.running_var")->data, 1);
    ck_assert_str_eq(safetensors_metadata(file, "format"), "pt");
    safetensors_close(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *tcase = checks_case(suite, "checkpoint", 30);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_loop_test(tcase, weights_by_name, 0, sizeof files / sizeof files[0]);
    tcase_add_test(tcase, weights_that_are_no_file);
    tcase_add_test(tcase, what_is_written_is_a_state_dict);
    return checks_run(suite);
}
