/* Gradient accumulation: by value on a model of one bias, then against the batch that it stands
 * for.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "engine/data/order.h"
#include "tests/engine/idx_files.h"
#include "tests/engine/run_job.h"
#include "tests/lib/apart.h"
#include "tests/lib/checks.h"

enum { IDX_FLOAT = 0x0D };

/* An IDX file of one float a sample. */
static const char *column(const char *name, const float *values, uint32_t n)
{
    uint8_t bytes[256];
    uint32_t big[16];
    const uint32_t dim[] = {n, 1};
    for (uint32_t i = 0; i < n; i++) {
        memcpy(&big[i], &values[i], sizeof big[i]);
        big[i] = htonl(big[i]);
    }
    return idx_file(name, bytes, idx_make(bytes, IDX_FLOAT, 2, dim, big, n * sizeof big[0]));
}

static struct job *parse(char *text)
{
    struct err err = ERR_INIT;
    struct job *job = NULL;
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    int rc = job_parse(text, strlen(text), &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    return job;
}

/* y = 0 · x + b from b = 0, loss (b - target)², SGD with lr 1: after the step b is minus the
 * gradient. */
static double gradient_of(const float *targets, uint32_t n, const char *train)
{
    static const float zeros[16];
    char patch[4096], path[1024], output[512];
    const float zero = 0;
    const struct safetensor tensors[] = {
        {"b.weight", SHAPE(1, 1), DTYPE_F32, &zero, sizeof zero},
        {"b.bias", SHAPE(1), DTYPE_F32, &zero, sizeof zero},
    };
    struct err err = ERR_INIT;
    struct safetensors *file;
    struct run_job *run = calloc(1, sizeof *run);
    snprintf(path, sizeof path, "%s/zero.safetensors", checks_scratch());
    snprintf(output, sizeof output, "%s/out", checks_scratch());
    ck_assert_int_eq(safetensors_write(path, tensors, 2, NULL, &err), 0);
    snprintf(patch, sizeof patch,
             "{'version': 1, 'model': {'input': {'shape': [1]}, 'init': {'weights': '%s'},"
             " 'layers': [{'type': 'Linear', 'name': 'b', 'out_features': 1}]},"
             " 'data': {'train': {'format': 'idx', 'inputs': '%s', 'targets': '%s'},"
             "          'shuffle': false},"
             " 'loss': {'type': 'MSELoss'}, 'optimizer': {'type': 'SGD', 'lr': 1},"
             " 'train': %s}",
             path, column("x", zeros, n), column("y", targets, n), train);
    struct job *job = parse(patch);
    run_job_parsed(job, output, 1, 0, run);
    ck_assert_msg(run->rc == 0, "%s: %s", run->err.path, run->err.message);
    job_free(job);
    snprintf(path, sizeof path, "%s/weights.safetensors", output);
    ck_assert_int_eq(safetensors_open(path, &file, &err), 0);
    double b = *(const float *)safetensors_find(file, "b.bias")->data;
    safetensors_close(file);
    checks_scratch_remove();
    free(run);
    return -b;
}

static const struct {
    float targets[4];
    uint32_t n;
    const char *train;
    double gradient;
} hand_made[] = {
    /* One batch left in the window: its own mean, not half of it. */
    {{10}, 1, "{'epochs': 1, 'batch_size': 1, 'accumulate': 2}", -20},
    /* Batches of 3 and 1: the mean over four samples, not over two means (-14). */
    {{2, 4, 6, 10}, 4, "{'epochs': 1, 'batch_size': 3, 'accumulate': 2}", -11},
    {{2, 4, 6, 10},
     4,
     "{'epochs': 1, 'batch_size': 3, 'accumulate': 2, 'accumulate_reduction': 'sum'}",
     -28},
    {{2, 4, 6, 10}, 4, "{'epochs': 1, 'batch_size': 1, 'accumulate': 4}", -11},
};

START_TEST(gradients_by_hand)
{
    ck_assert_double_eq_tol(
        gradient_of(hand_made[_i].targets, hand_made[_i].n, hand_made[_i].train),
        hand_made[_i].gradient, 1e-5);
}
END_TEST

static const struct {
    int64_t batches, accumulate, steps;
    const char *parts; /* of an epoch: whole, first, middle, last */
} windows[] = {
    {1, 1, 1, "w"},     {3, 1, 3, "www"}, {4, 2, 2, "flfl"}, {5, 2, 3, "flflw"},
    {5, 3, 2, "fmlfl"}, {2, 9, 1, "fl"},  {1, 9, 1, "w"},
};

START_TEST(windows_never_cross_an_epoch)
{
    char got[16] = "";
    int64_t batches = windows[_i].batches, accumulate = windows[_i].accumulate;
    for (int64_t i = 0; i < batches; i++)
        got[i] = "wfml"[order_part(batches, accumulate, i)];
    ck_assert_str_eq(got, windows[_i].parts);
    ck_assert_int_eq(order_steps(batches, accumulate), windows[_i].steps);
    ck_assert_int_eq(order_batches_before(batches, accumulate, 2 * windows[_i].steps), 2 * batches);
}
END_TEST

static void ck_close(const char *a, const char *b, double tolerance)
{
    struct err err = ERR_INIT;
    struct safetensors *of_a, *of_b;
    char path[1024];
    snprintf(path, sizeof path, "%s/weights.safetensors", a);
    ck_assert_int_eq(safetensors_open(path, &of_a, &err), 0);
    snprintf(path, sizeof path, "%s/weights.safetensors", b);
    ck_assert_int_eq(safetensors_open(path, &of_b, &err), 0);
    for (size_t i = 0; i < safetensors_count(of_a); i++) {
        const struct safetensor *x = safetensors_at(of_a, i);
        const struct safetensor *y = safetensors_find(of_b, x->name);
        struct apart apart = apart_floats(x->data, y->data, x->bytes / sizeof(float));
        ck_assert_msg(apart.worst <= tolerance * apart.largest, "%s: %g of %g", x->name,
                      apart.worst, apart.largest);
    }
    safetensors_close(of_a);
    safetensors_close(of_b);
}

#define MLP                                                                                        \
    "'model': {'layers': [{'type': 'Linear', 'out_features': 8}, {'type': 'ReLU'},"                \
    " {'type': 'Dropout', 'p': 0.2}, {'type': 'Linear', 'out_features': 3}]}, "
static const char whole[] = "{" MLP "'train': {'epochs': 3, 'batch_size': 16}}";
/* 40 samples: windows of 16, 16 and 8; of 4 batches or less, or 8. */
static const char *const parts[] = {
    "{" MLP "'train': {'epochs': 3, 'batch_size': 4, 'accumulate': 4}}",
    "{" MLP "'train': {'epochs': 3, 'batch_size': 4, 'accumulate': 4,"
    " 'checkpoint_activations': true}}",
    "{" MLP "'train': {'epochs': 3, 'batch_size': 2, 'accumulate': 8}}",
};

START_TEST(equals_the_whole_batch)
{
    char a[512], b[512];
    struct run_job *run = calloc(1, sizeof *run);
    snprintf(a, sizeof a, "%s/whole", checks_scratch());
    run_job_well(whole, a, 1, run);
    double score = run->done.validation_loss;
    for (int devices = 1; devices <= 3; devices++) { /* with three, some rest */
        snprintf(b, sizeof b, "%s/parts-%d", checks_scratch(), devices);
        run_job_well(parts[_i], b, devices, run);
        ck_assert_int_eq(run->done.step, 9);
        ck_close(b, a, 1e-6);
        ck_assert_double_eq_tol(run->done.validation_loss, score, 1e-6 * score);
    }
    checks_scratch_remove();
    free(run);
}
END_TEST

/* Stopped in the middle of an epoch and resumed: the same bits as without the stop. */
START_TEST(resumes_bit_exact)
{
    static const char patch[] = "{'train': {'epochs': 4, 'batch_size': 4, 'accumulate': 4}}";
    char a[512], b[512];
    struct run_job *run = calloc(1, sizeof *run);
    snprintf(a, sizeof a, "%s/through", checks_scratch());
    snprintf(b, sizeof b, "%s/stopped", checks_scratch());
    run_job_well(patch, a, 2, run);
    run_job(patch, b, 2, 5, run); /* of 12 steps */
    ck_assert_int_eq(run->rc, ERR_CANCELLED);
    run_job_well(patch, b, 2, run);
    ck_assert_int_eq(run->started.resumed_step, 5);
    run_job_same_file(a, b, "weights.safetensors");
    checks_scratch_remove();
    free(run);
}
END_TEST

START_TEST(another_window_is_another_job)
{
    char output[512];
    struct run_job *run = calloc(1, sizeof *run);
    snprintf(output, sizeof output, "%s/out", checks_scratch());
    run_job("{'train': {'accumulate': 2}}", output, 1, 1, run);
    ck_assert_int_eq(run->rc, ERR_CANCELLED);
    run_job("{'train': {'accumulate': 3}}", output, 1, 0, run);
    ck_assert_int_eq(run->rc, ERR_CHECKPOINT);
    ck_assert_str_eq(run->err.path, "/train/accumulate");
    checks_scratch_remove();
    free(run);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("accumulate");
    TCase *tcase = checks_case(suite, "accumulate", 60);
    tcase_add_loop_test(tcase, gradients_by_hand, 0, sizeof hand_made / sizeof hand_made[0]);
    tcase_add_loop_test(tcase, windows_never_cross_an_epoch, 0, sizeof windows / sizeof windows[0]);
    tcase_add_loop_test(tcase, equals_the_whole_batch, 0, sizeof parts / sizeof parts[0]);
    tcase_add_test(tcase, resumes_bit_exact);
    tcase_add_test(tcase, another_window_is_another_job);
    return checks_run(suite);
}
