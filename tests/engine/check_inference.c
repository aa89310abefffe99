/* Jobs that do not train: what training reported about its weights must come out again. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "tests/engine/idx_files.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

enum { CLASSES = 3, SAMPLES = 20, HEADER = 128 };

static struct run_job run;

static const char *place(const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", checks_scratch(), name);
    return path;
}

/* The base job's weights after training; what it reported last is in `run`. */
static void train(void)
{
    run_job_well("{}", place("trained"), 2, &run);
}

static const char *patch(const char *mode)
{
    static char text[1024];
    snprintf(text, sizeof text,
             "{'train': {'mode': '%s', 'batch_size': 7},"
             " 'model': {'init': {'weights': '%s/trained/weights.safetensors'}}}",
             mode, checks_scratch());
    return text;
}

static json_t *result_of(const char *output)
{
    char *text = run_job_contents(output, "evaluation.json", NULL);
    json_t *root = json_loads(text, 0, NULL);
    ck_assert_msg(root != NULL, "%s", text);
    free(text);
    return root;
}

START_TEST(evaluates_what_was_trained)
{
    const char *output = place("evaluated");
    double right = 0;
    train();
    double accuracy = run.done.accuracy, loss = run.done.validation_loss;
    run_job_well(patch("evaluate"), output, _i, &run);
    ck_assert_double_eq(run.done.accuracy, accuracy);
    ck_assert_double_eq_tol(run.done.validation_loss, loss, 1e-6 * loss);
    ck_assert(run.confusion);
    ck_assert_int_eq(run.reports[REPORT_PROGRESS], 3); /* batches of 7, 7 and 6 */
    ck_assert_int_eq(run.reports[REPORT_CHECKPOINT], 0);

    json_t *root = result_of(output), *class;
    size_t i;
    ck_assert_int_eq(json_integer_value(json_object_get(root, "samples")), SAMPLES);
    ck_assert_double_eq(json_number_value(json_object_get(root, "accuracy")), accuracy);
    ck_assert_double_eq(json_number_value(json_object_get(root, "top5_accuracy")), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(root, "classes")), CLASSES);
    json_array_foreach(json_object_get(root, "classes"), i, class) right +=
        json_number_value(json_object_get(class, "accuracy")) *
        (double)json_integer_value(json_object_get(class, "targets"));
    ck_assert_double_eq_tol(right / SAMPLES, accuracy, 1e-12);
    json_decref(root);
    checks_scratch_remove();
}
END_TEST

START_TEST(predicts_in_the_order_of_the_samples)
{
    const char *output = place("one"), *other = place("three");
    size_t size, other_size;
    train();
    run_job_well(patch("predict"), output, 1, &run);
    run_job_well(patch("predict"), other, 3, &run);
    char *npy = run_job_contents(output, "outputs.npy", &size);
    char *same = run_job_contents(other, "outputs.npy", &other_size);
    ck_assert_uint_eq(size, HEADER + SAMPLES * CLASSES * sizeof(float));
    ck_assert_uint_eq(other_size, size);
    ck_assert_int_eq(memcmp(npy, "\x93NUMPY\x01\x00\x76\x00", 10), 0);
    ck_assert_ptr_nonnull(strstr(npy + 10, "'descr': '<f4', 'fortran_order': False"));
    ck_assert_ptr_nonnull(strstr(npy + 10, "'shape': (20, 3, )"));
    const float *a = (const float *)(npy + HEADER), *b = (const float *)(same + HEADER);
    for (int i = 0; i < SAMPLES * CLASSES; i++)
        ck_assert_msg(fabsf(a[i] - b[i]) <= 1e-6f, "element %d: %g, %g", i, a[i], b[i]);
    ck_assert_ptr_nonnull(strstr(run.done.path, "/outputs.npy"));
    free(npy);
    free(same);
    checks_scratch_remove();
}
END_TEST

static const char *const spreads[] = {
    "'devices': 2, 'split': ['b'], 'split_size': 3",
    "'devices': 4, 'replicas': 2, 'split': ['bn'], 'microbatches': 2, 'schedule': 'gpipe'",
    "'stages': [{'begin': 'a', 'devices': ['cpu:0']},"
    " {'begin': '2', 'devices': ['cpu:1', 'cpu:2']}], 'split_size': 4",
};

static void compare_npy(const char *a, const char *b, const char *name)
{
    size_t size, other;
    char *of_a = run_job_contents(a, name, &size), *of_b = run_job_contents(b, name, &other);
    ck_assert_uint_gt(size, HEADER);
    ck_assert_uint_eq(size, other);
    const float *x = (const float *)(of_a + HEADER), *y = (const float *)(of_b + HEADER);
    for (size_t i = 0; i < (size - HEADER) / sizeof *x; i++)
        ck_assert_float_eq_tol(x[i], y[i], 1e-6F);
    free(of_a);
    free(of_b);
}

START_TEST(stages_give_the_same)
{
    static const int devices[] = {2, 4, 3};
    const char *one = place("one"), *staged = place("staged");
    char text[2048];
    train();
    for (int i = 0; i < 2; i++) {
        const char *parallel = i == 0 ? "'mode': 'single'" : spreads[_i];
        snprintf(text, sizeof text,
                 "{'train': {'mode': 'predict', 'batch_size': 7}, 'loss': {'reduction': 'none'},"
                 " 'model': {'init': {'weights': '%s/trained/weights.safetensors'}},"
                 " 'parallel': {%s%s}}",
                 checks_scratch(), i == 0 ? "" : "'mode': 'stages', ", parallel);
        run_job_well(text, i == 0 ? one : staged, i == 0 ? 1 : devices[_i], &run);
    }
    compare_npy(one, staged, "outputs.npy");
    compare_npy(one, staged, "losses.npy");
    checks_scratch_remove();
}
END_TEST

START_TEST(a_stop_leaves_no_half_of_the_outputs)
{
    const char *output = place("stopped");
    train();
    run_job(patch("predict"), output, 1, 2, &run);
    ck_assert_int_eq(run.rc, ERR_CANCELLED);
    ck_assert_ptr_nonnull(strstr(run.err.message, "after 2 of 3 batches"));
    free(run_job_contents(output, "job.json", NULL));
    static const char *const names[] = {"outputs.npy", "outputs.npy.new", "evaluation.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t size;
        free(run_job_contents(output, names[i], &size));
        ck_assert_msg(size == 0, "%s was left", names[i]);
    }
    checks_scratch_remove();
}
END_TEST

START_TEST(weights_must_fit)
{
    train();
    char text[1024];
    snprintf(text, sizeof text,
             "{'train': {'mode': 'evaluate'},"
             " 'model': {'init': {'weights': '%s/trained/job.json'}}}",
             checks_scratch());
    run_job(text, place("out"), 1, 0, &run);
    ck_assert_int_eq(run.rc, ERR_WEIGHTS_INVALID);
    ck_assert_str_eq(run.err.path, "/model/init/weights");
    checks_scratch_remove();
}
END_TEST

/* Data that says no targets: the same outputs as beside targets, and nothing measured. */

static const char bare_job[] =
    "{'version': 1, 'model': {'input': {'shape': [2]}, 'init': {'weights': '%s/w.safetensors'},"
    " 'layers': [{'type': 'Linear', 'name': 'fc', 'out_features': 3}]},"
    " 'data': {'train': {'format': '%s', %s}}, 'loss': {'type': 'CrossEntropyLoss', 'reduction': "
    "'none'},"
    " 'train': {'mode': 'predict', 'batch_size': 4}}";

static const struct {
    const char *format, *bare, *targeted; /* %s stands for the folder */
} bare_rows[] = {
    {"idx", "'inputs': '%s/x.idx'", "'inputs': '%s/x.idx', 'targets': '%s/y.idx'"},
    {"csv", "'path': '%s/bare.csv'", "'path': '%s/table.csv', 'target': 'y'"},
    {"safetensors", "'path': '%s/data.safetensors', 'inputs': 'x'",
     "'path': '%s/data.safetensors', 'inputs': 'x', 'targets': 'y'"},
};

enum { ROWS = 5 };

static void write_tensors(const char *name, const struct safetensor *tensors, size_t n)
{
    struct err err = ERR_INIT;
    ck_assert_msg(safetensors_write(place(name), tensors, n, NULL, &err) == 0, "%s", err.message);
}

static void make_bare_files(void)
{
    static const float weight[] = {1, -2, 3, 0.5f, -1, 0.25f}, bias[] = {0.5f, 0, -1};
    static const uint8_t x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, y[] = {0, 1, 2, 1, 0};
    const struct safetensor weights[] = {
        {.name = "fc.bias",
         .dtype = DTYPE_F32,
         .shape = SHAPE(3),
         .data = bias,
         .bytes = sizeof bias},
        {.name = "fc.weight",
         .dtype = DTYPE_F32,
         .shape = SHAPE(3, 2),
         .data = weight,
         .bytes = sizeof weight},
    };
    const struct safetensor data[] = {
        {.name = "x", .dtype = DTYPE_U8, .shape = SHAPE(ROWS, 2), .data = x, .bytes = sizeof x},
        {.name = "y", .dtype = DTYPE_U8, .shape = SHAPE(ROWS), .data = y, .bytes = sizeof y},
    };
    const uint32_t dim[] = {ROWS, 2};
    uint8_t file[64];
    char bare[128] = "a,b\n", table[128] = "a,y,b\n";
    write_tensors("w.safetensors", weights, 2);
    write_tensors("data.safetensors", data, 2);
    idx_file("x.idx", file, idx_make(file, 8, 2, dim, x, sizeof x));
    idx_file("y.idx", file, idx_make(file, 8, 1, dim, y, sizeof y));
    for (int i = 0; i < ROWS; i++) {
        sprintf(bare + strlen(bare), "%d,%d\n", x[2 * i], x[2 * i + 1]);
        sprintf(table + strlen(table), "%d,%d,%d\n", x[2 * i], y[i], x[2 * i + 1]);
    }
    idx_file("bare.csv", bare, strlen(bare));
    idx_file("table.csv", table, strlen(table));
}

static void predict_bare(const char *format, const char *source, int n_devices, const char *output)
{
    char text[1024], filled[512];
    struct err err = ERR_INIT;
    struct job *job = NULL;
    const char *folder = checks_scratch();
    snprintf(filled, sizeof filled, source, folder, folder);
    snprintf(text, sizeof text, bare_job, folder, format, filled);
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    int rc = job_parse(text, strlen(text), &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    run_job_parsed(job, output, n_devices, 0, &run);
    ck_assert_msg(run.rc == 0, "%s: %s", run.err.path, run.err.message);
    job_free(job);
}

START_TEST(predicts_without_targets)
{
    static const char *const measured[] = {"evaluation.json", "losses.npy"};
    const char *bare = place("bare"), *targeted = place("targeted");
    make_bare_files();
    predict_bare(bare_rows[_i].format, bare_rows[_i].targeted, 1, targeted);
    ck_assert(isfinite(run.done.validation_loss));
    predict_bare(bare_rows[_i].format, bare_rows[_i].bare, 1, bare);
    ck_assert(isnan(run.done.validation_loss) && isnan(run.progress.loss));
    run_job_same_file(bare, targeted, "outputs.npy");
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
        size_t size;
        free(run_job_contents(targeted, measured[i], &size));
        ck_assert_uint_gt(size, 0);
        free(run_job_contents(bare, measured[i], &size));
        ck_assert_msg(size == 0, "%s without targets", measured[i]);
    }
    checks_scratch_remove();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inference");
    TCase *tcase = checks_case(suite, "inference", 60);
    tcase_add_loop_test(tcase, evaluates_what_was_trained, 1, 4);
    tcase_add_test(tcase, predicts_in_the_order_of_the_samples);
    tcase_add_loop_test(tcase, stages_give_the_same, 0, 3);
    tcase_add_test(tcase, a_stop_leaves_no_half_of_the_outputs);
    tcase_add_test(tcase, weights_must_fit);
    tcase_add_loop_test(tcase, predicts_without_targets, 0, sizeof bare_rows / sizeof bare_rows[0]);
    return checks_run(suite);
}
