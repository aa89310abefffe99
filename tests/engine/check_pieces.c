/* check_pieces.c: train.record and spectral_norm where a batch takes several graphs: micro-batches
 * in stages, and shards. Their statistics are joined to what one device, or the replicas that have
 * the same samples, record of the whole; (those against PyTorch: tests/golden/check_observe.c). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/idx_files.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

enum { MOST_ROWS = 512, STATISTICS = 5 };

struct row {
    long long step;
    char name[64], device[16];
    double statistics[STATISTICS];
};

struct rows {
    struct row list[MOST_ROWS];
    int n;
};

static const char *const keys[STATISTICS] = {"mean", "std", "norm", "max_abs", "nan_count"};

static int number; /* of the test among those of its name */

static char *place(const char *name)
{
    static char paths[8][512];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s-%d", checks_scratch(), name, number);
    return path;
}

static void read_rows(const char *output, struct rows *rows)
{
    char *text = run_job_contents(output, "record.jsonl", NULL), *rest = text, *line;
    rows->n = 0;
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        json_t *object = json_loads(line, 0, NULL);
        ck_assert_msg(object != NULL, "%s", line);
        ck_assert_int_lt(rows->n, MOST_ROWS);
        struct row *row = &rows->list[rows->n++];
        row->step = json_integer_value(json_object_get(object, "step"));
        snprintf(row->name, sizeof row->name, "%s",
                 json_string_value(json_object_get(object, "name")));
        snprintf(row->device, sizeof row->device, "%s",
                 json_string_value(json_object_get(object, "device")));
        for (int i = 0; i < STATISTICS; i++)
            row->statistics[i] = json_number_value(json_object_get(object, keys[i]));
        json_decref(object);
    }
    ck_assert_int_gt(rows->n, 0);
    free(text);
}

/* Without BatchNorm, which a micro-batch normalises by itself. A residual crosses stages. */
#define LAYERS                                                                                     \
    "{'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 8},"                              \
    " {'type': 'Tanh', 'name': 't'}, {'type': 'Dropout', 'name': 'd', 'p': 0.2},"                  \
    " {'type': 'Linear', 'name': 'b', 'out_features': 8},"                                         \
    " {'type': 'Add', 'name': 'sum', 'inputs': ['b', 't']},"                                       \
    " {'type': 'Linear', 'name': 'e', 'out_features': 3}]}"
#define RECORD                                                                                     \
    "'record': ['a.output', 't.output', 't.output.grad', 'sum.output.grad', 'e.output',"           \
    " 'e.output.grad', 'b.weight', 'a.weight.grad', 'e.bias.grad', 'e.weight']"
#define JOB(train, parallel)                                                                       \
    "{'model': " LAYERS ", 'train': {'batch_size': 13, 'log_every': 2, " RECORD train              \
    "}, 'parallel': {" parallel "}}"

static void run_rows(const char *job, const char *name, int n_devices, struct rows *rows)
{
    static struct run_job run;
    run_job_well(job, place(name), n_devices, &run);
    read_rows(place(name), rows);
}

static void ck_near(const struct row *row, int i, double found, double wanted)
{
    double scale = fmax(fabs(wanted), fabs(row->statistics[3])); /* the largest magnitude */
    ck_assert_msg(fabs(found - wanted) <= 1e-5 * scale, "step %lld, %s on %s: %s is %.9g, not %.9g",
                  row->step, row->name, row->device, keys[i], found, wanted);
}

/* Row for row, whatever the devices' names are. */
static void ck_same_rows(const struct rows *rows, const struct rows *wanted)
{
    ck_assert_int_eq(rows->n, wanted->n);
    for (int k = 0; k < rows->n; k++) {
        const struct row *row = &rows->list[k], *want = &wanted->list[k];
        ck_assert_int_eq(row->step, want->step);
        ck_assert_str_eq(row->name, want->name);
        for (int i = 0; i < STATISTICS; i++)
            ck_near(row, i, row->statistics[i], want->statistics[i]);
    }
}

#define STAGED(more) "'mode': 'stages', " more

/* 40 samples in batches of 13, so a last one of one sample. */
static const struct {
    const char *train, *parallel;
    int n_devices;
} staged[] = {
    {"", STAGED("'devices': 2, 'split': ['d'], 'split_size': 5, 'schedule': 'gpipe'"), 2},
    {"", STAGED("'devices': 2, 'split': ['b'], 'split_size': 1, 'schedule': '1f1b'"), 2},
    {"", STAGED("'devices': 3, 'split': ['d', 'sum'], 'split_size': 4"), 3},
    {"", STAGED("'devices': 3, 'split': ['b', 'e'], 'microbatches': 4, 'schedule': '1f1b'"), 3},
    {"", STAGED("'devices': 2, 'split': ['sum'], 'schedule': 'none'"), 2},
    {", 'accumulate': 2", STAGED("'devices': 2, 'split': ['b'], 'split_size': 3"), 2},
    {", 'accumulate': 3, 'accumulate_reduction': 'sum'",
     STAGED("'devices': 3, 'split': ['b', 'e'], 'split_size': 6, 'schedule': 'gpipe'"), 3},
    {", 'checkpoint_activations': ['t', 'sum']",
     STAGED("'devices': 2, 'split': ['b'], 'split_size': 5"), 2},
    {", 'clip_grad_norm': 0.1", STAGED("'devices': 2, 'split': ['b'], 'split_size': 5"), 2},
};

/* A layer is on one device: its micro-batches are one tensor. */
START_TEST(stages_record_as_one_device)
{
    static struct rows one, several;
    char job[2048];
    number = _i;
    snprintf(job, sizeof job, JOB("%s", "'mode': 'single'"), staged[_i].train);
    run_rows(job, "single", 1, &one);
    snprintf(job, sizeof job, JOB("%s", "%s"), staged[_i].train, staged[_i].parallel);
    run_rows(job, "staged", staged[_i].n_devices, &several);
    ck_same_rows(&several, &one);
    ck_assert_str_eq(several.list[0].device, "cpu:0"); /* "a", then "e" */
    ck_assert_str_ne(several.list[4].device, "cpu:0");
}
END_TEST

/* The same samples on as many devices as hold the layer. */
static const struct {
    const char *train, *parallel;
    int n_devices;
} alike[] = {
    {"", STAGED("'devices': 4, 'replicas': 2, 'split': ['b'], 'split_size': 2"), 4},
    {"", STAGED("'devices': 4, 'replicas': 2, 'split': ['sum'], 'microbatches': 4"), 4},
    {", 'accumulate': 2", STAGED("'devices': 4, 'replicas': 2, 'split': ['sum'], 'split_size': 3"),
     4},
    {"",
     STAGED("'microbatches': 1, 'stages': [{'begin': 'a', 'devices': ['cpu:0', 'cpu:1']},"
            " {'begin': 'sum', 'devices': ['cpu:2', 'cpu:3']}]"),
     4},
    {"", "'mode': 'replicate', 'devices': 2, 'shards': 2", 2},
    {", 'accumulate': 3", "'mode': 'replicate', 'devices': 2, 'shards': 2", 2},
    {", 'accumulate': 2, 'accumulate_reduction': 'sum', 'checkpoint_activations': true",
     "'mode': 'replicate', 'devices': 2, 'shards': 2", 2},
};

START_TEST(pieces_record_as_replicas)
{
    static struct rows replicas, several;
    char job[2048];
    number = _i;
    snprintf(job, sizeof job, JOB("%s", "'mode': 'replicate', 'devices': 2"), alike[_i].train);
    run_rows(job, "replicas", 2, &replicas);
    snprintf(job, sizeof job, JOB("%s", "%s"), alike[_i].train, alike[_i].parallel);
    run_rows(job, "pieces", alike[_i].n_devices, &several);
    ck_same_rows(&several, &replicas);
}
END_TEST

/* Other cuts: the devices' rows together are the whole's. */
static const struct {
    const char *parallel;
    int n_devices;
    double shares[2]; /* of the first batch's samples, of the devices that hold a layer */
} cut[] = {
    {"'mode': 'replicate', 'devices': 1, 'shards': 5", 1, {13, 0}},
    {"'mode': 'replicate', 'devices': 2, 'shards': 5", 2, {9, 4}}, /* 3, 3, 3 and 3, 1 */
    {STAGED("'split_size': 3, 'stages': [{'begin': 'a', 'devices': ['cpu:0', 'cpu:1']},"
            " {'begin': 'sum', 'devices': ['cpu:2', 'cpu:3']}]"),
     4,
     {9, 4}}, /* 2 and 1, four times; then 1 and none */
};

static void ck_together(const struct row *part, int n, const double *samples,
                        const struct row *whole)
{
    bool gradient =
        strstr(whole->name, "weight.grad") != NULL || strstr(whole->name, "bias.grad") != NULL;
    bool output = strstr(whole->name, "output") != NULL;
    double mean = 0, squares = 0, most = 0;
    for (int k = 0; k < n; k++) {
        const double *s = part[k].statistics;
        ck_assert_str_eq(part[k].name, whole->name);
        mean += s[0] * (gradient ? 1 : output ? samples[k] / 13 : 1.0 / n);
        squares += s[2] * s[2] / (output ? 1 : n);
        most = fmax(most, s[3]);
    }
    ck_near(whole, 0, mean, whole->statistics[0]);
    if (gradient)
        return;
    ck_near(whole, 2, sqrt(squares), whole->statistics[2]);
    ck_near(whole, 3, most, whole->statistics[3]);
}

START_TEST(cuts_record_parts_of_the_whole)
{
    static struct rows one, several;
    char job[2048];
    int n = cut[_i].shares[1] > 0 ? 2 : 1;
    number = _i;
    snprintf(job, sizeof job, JOB(", 'max_steps': 1, 'epochs': null", "'mode': 'single'"));
    run_rows(job, "whole", 1, &one);
    snprintf(job, sizeof job, JOB(", 'max_steps': 1, 'epochs': null", "%s"), cut[_i].parallel);
    run_rows(job, "cut", cut[_i].n_devices, &several);
    ck_assert_int_eq(several.n, n * one.n);
    for (int k = 0; k < one.n; k++)
        ck_together(&several.list[n * k], n, cut[_i].shares, &one.list[k]);
}
END_TEST

/* Bits, and what an interrupted run leaves. */
START_TEST(recording_changes_no_bit)
{
    static struct run_job run;
    static const struct {
        const char *parallel;
        int n_devices;
    } rows[] = {{STAGED("'devices': 4, 'replicas': 2, 'split': ['b'], 'split_size': 2"), 4},
                {"'mode': 'replicate', 'devices': 2, 'shards': 4", 2}};
    char job[2048];
    number = _i;
    snprintf(job, sizeof job, JOB(", 'accumulate': 2", "%s"), rows[_i].parallel);
    run_job_well(job, place("with"), rows[_i].n_devices, &run);
    run_job(job, place("parts"), rows[_i].n_devices, 2, &run);
    ck_assert_int_eq(run.rc, ERR_CANCELLED);
    run_job_well(job, place("parts"), rows[_i].n_devices, &run);
    run_job_same_file(place("with"), place("parts"), "record.jsonl");
    snprintf(job, sizeof job,
             "{'model': " LAYERS
             ", 'train': {'batch_size': 13, 'accumulate': 2}, 'parallel': {%s}}",
             rows[_i].parallel);
    run_job_well(job, place("without"), rows[_i].n_devices, &run);
    run_job_same_file(place("with"), place("without"), "weights.safetensors");
}
END_TEST

START_TEST(a_layer_that_stages_leave_out_is_named)
{
    static struct run_job run;
    run_job("{'model': {'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 8},"
            " {'type': 'Linear', 'name': 'aside', 'out_features': 8},"
            " {'type': 'Linear', 'name': 'e', 'inputs': ['a'], 'out_features': 3}]},"
            " 'train': {'record': ['a.output', 'aside.output']},"
            " 'parallel': {'mode': 'stages', 'devices': 2, 'split': ['e']}}",
            place("aside"), 2, 0, &run);
    ck_assert_int_eq(run.rc, ERR_JOB_INVALID);
    ck_assert_str_eq(run.err.path, "/train/record/1");
    ck_assert_msg(strstr(run.err.message, "\"aside.output\" cannot be recorded: the model's output "
                                          "does not depend on this layer") != NULL,
                  "%s", run.err.message);
}
END_TEST

/* Spectral norms. All samples are alike and the rate is 0, so that an output tells how many power
 * iterations have been made on its device. */

enum { ALIKE = 9, FEATURES = 5, ITERATIONS = 16 };

static void alike_job(char *job, size_t room, const char *train, const char *parallel)
{
    static uint8_t ones[ALIKE * FEATURES], file[sizeof ones + 64];
    static char inputs[512], targets[512];
    const uint32_t shape[] = {ALIKE, FEATURES};
    for (int i = 0; i < ALIKE * FEATURES; i++)
        ones[i] = (uint8_t)(1 + i % FEATURES);
    size_t bytes = idx_make(file, 0x08, 2, shape, ones, sizeof ones);
    snprintf(inputs, sizeof inputs, "%s", idx_file("alike-inputs", file, bytes));
    bytes = idx_make(file, 0x08, 1, shape, (const uint8_t[ALIKE]){0}, ALIKE);
    snprintf(targets, sizeof targets, "%s", idx_file("alike-targets", file, bytes));
    snprintf(
        job, room,
        "{'model': {'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 8,"
        " 'spectral_norm': true}, {'type': 'Tanh', 'name': 't'},"
        " {'type': 'Linear', 'name': 'e', 'out_features': 3}]},"
        " 'data': {'train': {'format': 'idx', 'inputs': '%s', 'targets': '%s',"
        " 'samples': null, 'seed': null, 'classes': null}, 'validation': null, 'drop_last': true},"
        " 'optimizer': {'lr': 0, 'momentum': 0},"
        " 'train': {'epochs': null, 'max_steps': %s, 'record': ['a.output']},"
        " 'parallel': {%s}}",
        inputs, targets, train, parallel);
}

/* The mean output after so many iterations, from 1: one device's, a sample a step. */
static void iterated_means(double *ret_means)
{
    static struct rows rows;
    char job[2048];
    alike_job(job, sizeof job, "16, 'batch_size': 1", "'mode': 'single'");
    run_rows(job, "iterated", 1, &rows);
    ck_assert_int_eq(rows.n, ITERATIONS);
    for (int i = 0; i < ITERATIONS; i++)
        ret_means[i] = rows.list[i].statistics[0];
    ck_assert_double_ne_tol(ret_means[2], ret_means[3], 1e-4); /* a miscount would be seen */
}

/* Of the second step: a device's samples after each number of iterations. */
struct counts {
    const char *device;
    int samples[8]; /* [i]: after i + 1 */
};

static const struct {
    const char *parallel;
    int n_devices, batch;
    struct counts counts[2];
} iterated[] = {
    /* Two pipelines of 2 and 1 micro-batches. */
    {STAGED("'devices': 4, 'replicas': 2, 'split': ['t'], 'split_size': 1"),
     4,
     3,
     {{"cpu:0", {[2] = 1, [3] = 1}}, {"cpu:2", {[2] = 1}}}},
    /* Of 3 (2, 2, 1) and of 4 (1 each): the second one's last finds the first one's buffers. */
    {STAGED("'devices': 4, 'replicas': 2, 'split': ['t'], 'microbatches': 4"),
     4,
     9,
     {{"cpu:0", {[3] = 2, [4] = 2, [5] = 1}}, {"cpu:2", {[3] = 1, [4] = 1, [5] = 2}}}},
    /* 2 and 1, 2 and 1, then 1 and none. */
    {STAGED("'split_size': 3, 'stages': [{'begin': 'a', 'devices': ['cpu:0', 'cpu:1']},"
            " {'begin': 't', 'devices': ['cpu:2']}]"),
     3,
     7,
     {{"cpu:0", {[3] = 2, [4] = 2, [5] = 1}}, {"cpu:1", {[3] = 1, [4] = 1}}}},
    /* A batch is one iteration for all shards; the last ones are empty. */
    {"'mode': 'replicate', 'devices': 1, 'shards': 4", 1, 9, {{"cpu:0", {[1] = 9}}}},
    {"'mode': 'replicate', 'devices': 2, 'shards': 4",
     2,
     9,
     {{"cpu:0", {[1] = 6}}, {"cpu:1", {[1] = 3}}}},
};

START_TEST(devices_that_share_a_layer_iterate_together)
{
    static struct rows rows;
    double means[ITERATIONS];
    char job[2048], steps[64];
    number = _i;
    iterated_means(means);
    snprintf(steps, sizeof steps, "2, 'batch_size': %d", iterated[_i].batch);
    alike_job(job, sizeof job, steps, iterated[_i].parallel);
    run_rows(job, "together", iterated[_i].n_devices, &rows);
    for (int k = 0; k < 2 && iterated[_i].counts[k].device != NULL; k++) {
        const struct counts *counts = &iterated[_i].counts[k];
        const struct row *row = &rows.list[rows.n / 2 + k];
        double sum = 0, samples = 0;
        for (int i = 0; i < 8; i++) {
            sum += counts->samples[i] * means[i];
            samples += counts->samples[i];
        }
        ck_assert_int_eq(row->step, 2);
        ck_assert_str_eq(row->device, counts->device);
        ck_near(row, 0, row->statistics[0], sum / samples);
    }
}
END_TEST

#define NORMED                                                                                     \
    "{'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 8, 'spectral_norm': true},"       \
    " {'type': 'Tanh', 'name': 't'}, {'type': 'Dropout', 'p': 0.2},"                               \
    " {'type': 'Linear', 'name': 'b', 'out_features': 3, 'spectral_norm': true}]}"

/* Where a batch is one iteration, as on one device; 41 samples in batches of 13: a last one of 2.
 */
static const struct {
    const char *parallel;
    int n_devices;
} normed[] = {
    {STAGED("'devices': 4, 'replicas': 2, 'split': ['b'], 'microbatches': 1"), 4},
    {STAGED("'microbatches': 1, 'stages': [{'begin': 'a', 'devices': ['cpu:0', 'cpu:1',"
            " 'cpu:2']}, {'begin': 'b', 'devices': ['cpu:3']}]"),
     4},
    {"'mode': 'replicate', 'devices': 1, 'shards': 4", 1},
    {"'mode': 'replicate', 'devices': 3, 'shards': 4", 3},
};

START_TEST(normed_weights_train_as_on_one_device)
{
    static struct run_job run;
    char job[1024];
    double losses[2];
    number = _i;
    for (int i = 0; i < 2; i++) {
        snprintf(job, sizeof job,
                 "{'model': " NORMED ", 'train': {'batch_size': 13}, 'data': {'train': {'samples':"
                 " 41}}, 'parallel': {%s}}",
                 i == 0 ? "'mode': 'single'" : normed[_i].parallel);
        run_job_well(job, place(i == 0 ? "one" : "more"), i == 0 ? 1 : normed[_i].n_devices, &run);
        losses[i] = run.done.validation_loss;
    }
    ck_assert_double_eq_tol(losses[1], losses[0], 1e-5);
}
END_TEST

/* Shards are shards, whatever the devices; a resume goes on with the same bits. */
START_TEST(normed_shards_are_the_same_bits)
{
    static struct run_job run;
    char job[1024];
    for (int n = 1; n <= 4; n++) {
        snprintf(job, sizeof job,
                 "{'model': " NORMED ", 'train': {'batch_size': 13, 'accumulate': 2}, 'parallel':"
                 " {'mode': 'replicate', 'devices': %d, 'shards': 4}}",
                 n);
        if (n == 3) {
            run_job(job, place("shards-3"), n, 3, &run);
            ck_assert_int_eq(run.rc, ERR_CANCELLED);
        }
        char name[16];
        snprintf(name, sizeof name, "shards-%d", n);
        run_job_well(job, place(name), n, &run);
        run_job_same_file(place("shards-1"), place(name), "weights.safetensors");
    }
}
END_TEST

#define COUNT(table) (int)(sizeof(table) / sizeof(table)[0])

int main(void)
{
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("pieces");
    TCase *tcase = checks_case(suite, "record", 60);
    tcase_add_loop_test(tcase, stages_record_as_one_device, 0, COUNT(staged));
    tcase_add_loop_test(tcase, pieces_record_as_replicas, 0, COUNT(alike));
    tcase_add_loop_test(tcase, cuts_record_parts_of_the_whole, 0, COUNT(cut));
    tcase_add_loop_test(tcase, recording_changes_no_bit, 0, 2);
    tcase_add_test(tcase, a_layer_that_stages_leave_out_is_named);
    tcase = checks_case(suite, "spectral_norm", 60);
    tcase_add_loop_test(tcase, devices_that_share_a_layer_iterate_together, 0, COUNT(iterated));
    tcase_add_loop_test(tcase, normed_weights_train_as_on_one_device, 0, COUNT(normed));
    tcase_add_test(tcase, normed_shards_are_the_same_bits);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
