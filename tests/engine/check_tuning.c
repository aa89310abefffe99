/* check_tuning.c: layers that are frozen or start anew, decay that spares, targets that do not
 * count. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "tests/engine/idx_files.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

static struct run_job run;

static const char *place(const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", checks_scratch(), name);
    return path;
}

static struct safetensors *weights(const char *output)
{
    char path[1024];
    struct err err = ERR_INIT;
    struct safetensors *file = NULL;
    snprintf(path, sizeof path, "%s/weights.safetensors", output);
    ck_assert_msg(safetensors_open(path, &file, &err) == 0, "%s", err.message);
    return file;
}

static bool same(const struct safetensors *a, const struct safetensors *b, const char *name)
{
    const struct safetensor *x = safetensors_find(a, name), *y = safetensors_find(b, name);
    ck_assert(x != NULL && y != NULL && x->bytes == y->bytes);
    return memcmp(x->data, y->data, x->bytes) == 0;
}

#define ONE_EPOCH "'train': {'epochs': 1}, 'checkpoint': {'every': 'never'}"

/* The base job with its second Linear of `classes`, from the weights in `first`, both other layers
 * frozen and the second Linear fresh or not. */
static void tune(const char *first, int classes, bool fresh, const char *lr, const char *output)
{
    char patch[2048];
    snprintf(patch, sizeof patch,
             "{'model': {'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 8},"
             " {'type': 'BatchNorm1d', 'name': 'bn'},"
             " {'type': 'Linear', 'name': 'b', 'out_features': %d}], 'freeze': ['a', 'bn'],"
             " 'init': {'weights': '%s/weights.safetensors', 'fresh': %s, 'seed': 9}},"
             " 'optimizer': {'lr': %s}, " ONE_EPOCH "}",
             classes, first, fresh ? "['b']" : "[]", lr);
    run_job(patch, output, 2, 0, &run);
}

/* Frozen layers keep what they are given, though a BatchNorm's statistics move; fresh ones are
 * drawn as their seed says and learn. */
START_TEST(frozen_and_fresh_layers)
{
    const char *first = place("first"), *begun = place("begun"), *second = place("second");
    run_job_well("{" ONE_EPOCH "}", first, 2, &run);
    tune(first, 3, true, "0", begun);
    ck_assert_msg(run.rc == 0, "%s", run.err.message);
    tune(first, 3, true, "0.1", second);
    ck_assert_msg(run.rc == 0, "%s", run.err.message);
    struct safetensors *a = weights(first), *b = weights(begun), *c = weights(second);
    ck_assert(same(a, b, "a.weight") && same(a, c, "a.weight") && same(a, c, "bn.bias"));
    ck_assert(!same(a, c, "bn.running_mean"));
    ck_assert(!same(a, b, "b.weight") && !same(a, b, "b.bias"));
    ck_assert(!same(b, c, "b.weight"));
    safetensors_close(a);
    safetensors_close(b);
    safetensors_close(c);
}
END_TEST

/* What is fresh is not compared with the file. */
START_TEST(fresh_layers_may_have_another_shape)
{
    const char *first = place("first"), *second = place("second");
    run_job_well("{" ONE_EPOCH "}", first, 1, &run);
    tune(first, 5, false, "0", second);
    ck_assert_int_eq(run.rc, ERR_WEIGHTS_INVALID);
    ck_assert_msg(strstr(run.err.message, "\"b.weight\" is [3, 8], the model's is [5, 8]") != NULL,
                  "%s", run.err.message);
    tune(first, 5, true, "0", second);
    ck_assert_msg(run.rc == 0, "%s", run.err.message);
}
END_TEST

START_TEST(a_pattern_that_spares_nothing_is_warned_of)
{
    run_job_well("{'optimizer': {'weight_decay': 0.1, 'no_decay': ['*.bias', 'norm*']}," ONE_EPOCH
                 "}",
                 place("out"), 2, &run);
    ck_assert_str_eq(run.said,
                     "warning: /optimizer/no_decay/1: no parameter's name matches \"norm*\"\n");
}
END_TEST

#define ROWS "'layers': [{'type': 'Linear', 'name': 'fc', 'out_features': 3}]"

/* Of the mean of no losses PyTorch makes NaN. */
START_TEST(a_step_without_targets_is_refused)
{
    run_job("{'loss': {'weight': [0, 0, 0]}}", place("out"), 2, 0, &run);
    ck_assert_int_eq(run.rc, ERR_DATA_INVALID);
    ck_assert_msg(strstr(run.err.message, "no target of step 1 (epoch 1) counts") != NULL, "%s",
                  run.err.message);
    run_job("{'loss': {'weight': [0, 0, 0]}, 'train': {'accumulate': 2}}", place("out"), 2, 0,
            &run);
    ck_assert_int_eq(run.rc, ERR_DATA_INVALID);
    run_job_well("{'loss': {'weight': [0, 0, 0], 'reduction': 'sum'}}", place("out"), 2, &run);
    ck_assert_double_eq(run.done.validation_loss, 0);
}
END_TEST

/* Chunks of one sample, of which few are of the class that counts. */
START_TEST(a_chunk_without_targets_has_no_mean)
{
    const char *output = place("out");
    run_job_well("{'model': {" ROWS "}, 'loss': {'weight': [0, 0, 1]},"
                 " 'train': {'epochs': 1, 'batch_size': 20}, 'parallel': {'mode': 'replicate',"
                 " 'devices': 20}}",
                 output, 20, &run);
    char *text = run_job_contents(output, "metrics.jsonl", NULL);
    ck_assert_ptr_nonnull(strstr(text, "null"));
    ck_assert_ptr_null(strstr(text, "nan"));
    free(text);
}
END_TEST

static const char *idx_bytes(const char *name, const uint8_t *bytes, uint32_t n, uint32_t width)
{
    enum { IDX_BYTE = 0x08 };
    uint8_t file[64];
    const uint32_t dim[] = {n, width};
    return idx_file(name, file, idx_make(file, IDX_BYTE, width > 1 ? 2 : 1, dim, bytes, n * width));
}

/* A model that says class 0 of everything, on labels 0, 0, 1, 2, 2, 2 of which 2 does not count. */
START_TEST(accuracy_leaves_ignored_targets_out)
{
    static const uint8_t x[6 * 5], labels[6] = {0, 0, 1, 2, 2, 2};
    static float weight[3 * 5], bias[3] = {1, 0, 0};
    const struct safetensor tensors[] = {
        {"fc.weight", {2, {3, 5}}, DTYPE_F32, weight, sizeof weight},
        {"fc.bias", {1, {3}}, DTYPE_F32, bias, sizeof bias},
    };
    struct err err = ERR_INIT;
    struct job *job = NULL;
    const char *given = place("given.safetensors");
    ck_assert_int_eq(safetensors_write(given, tensors, 2, NULL, &err), 0);
    json_t *source =
        json_pack("{s:s, s:s, s:s}", "format", "idx", "inputs", idx_bytes("x.idx", x, 6, 5),
                  "targets", idx_bytes("y.idx", labels, 6, 1));
    json_t *root =
        json_pack("{s:i, s:{s:{s:[i]}, s:[{s:s, s:s, s:i}], s:{s:s}}, s:{s:O, s:o}, s:{s:s, s:i},"
                  " s:{s:s, s:i}, s:{s:i, s:i}}",
                  "version", 1, "model", "input", "shape", 5, "layers", "type", "Linear", "name",
                  "fc", "out_features", 3, "init", "weights", given, "data", "train", source,
                  "validation", source, "loss", "type", "CrossEntropyLoss", "ignore_index", 2,
                  "optimizer", "type", "SGD", "lr", 0, "train", "epochs", 1, "batch_size", 6);
    ck_assert_msg(job_from_json(root, &job, &err) == 0, "%s: %s", err.path, err.message);
    json_decref(root);
    run_job_parsed(job, place("out"), 2, 0, &run);
    ck_assert_msg(run.rc == 0, "%s", run.err.message);
    ck_assert_double_eq_tol(run.done.accuracy, 2.0 / 3, 1e-12);
    ck_assert_double_eq_tol(run.done.validation_loss, log(exp(1) + 2) - 2.0 / 3, 1e-6);
    job_free(job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tuning");
    TCase *tcase = checks_case(suite, "tuning", 30);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, frozen_and_fresh_layers);
    tcase_add_test(tcase, fresh_layers_may_have_another_shape);
    tcase_add_test(tcase, a_pattern_that_spares_nothing_is_warned_of);
    tcase_add_test(tcase, a_step_without_targets_is_refused);
    tcase_add_test(tcase, a_chunk_without_targets_has_no_mean);
    tcase_add_test(tcase, accuracy_leaves_ignored_targets_out);
    return checks_run(suite);
}
