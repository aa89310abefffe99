/* check_bf16.c: jobs in bf16: they learn as in fp32, in less memory, and whatever changes no bit of
 * an fp32 job changes none of theirs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "tests/engine/low.h"
#include "tests/engine/run_job.h"
#include "tests/lib/apart.h"
#include "tests/lib/checks.h"

#define MLP                                                                                        \
    "'input': {'shape': [20]}, 'layers': ["                                                        \
    "{'type': 'Linear', 'out_features': 64}, {'type': 'ReLU'},"                                    \
    "{'type': 'Linear', 'out_features': 64}, {'type': 'ReLU'},"                                    \
    "{'type': 'Linear', 'name': 'fc', 'out_features': 3}]"
#define CNN                                                                                        \
    "'input': {'shape': [3, 16, 16]}, 'layers': ["                                                 \
    "{'type': 'Conv2d', 'out_channels': 32, 'kernel_size': 3, 'padding': 1, 'bias': false},"       \
    "{'type': 'BatchNorm2d'}, {'type': 'ReLU', 'name': 'a'}, {'type': 'MaxPool2d',"                \
    " 'kernel_size': 2, 'name': 'b'},"                                                             \
    "{'type': 'Conv2d', 'out_channels': 32, 'kernel_size': 3, 'padding': 1, 'bias': false},"       \
    "{'type': 'BatchNorm2d'}, {'type': 'ReLU', 'name': 'c'},"                                      \
    "{'type': 'Add', 'inputs': ['b', 'c']}, {'type': 'AdaptiveAvgPool2d', 'output_size': 1},"      \
    "{'type': 'Flatten'}, {'type': 'Linear', 'name': 'fc', 'out_features': 3}]"

static const char *const models[] = {MLP, CNN};
enum { N_MODELS = sizeof models / sizeof models[0], STEPS = 40 };

/* `train`: more of it, with a comma ahead. */
static const char *patch(const char *model, const char *precision, const char *train)
{
    static char texts[2][4096];
    static int turn;
    char *text = texts[turn++ % 2];
    snprintf(text, sizeof texts[0],
             "{'model': {%s}, 'train': {'epochs': %d, 'batch_size': 20, 'precision': '%s'%s},"
             " 'optimizer': {'type': 'SGD', 'lr': 0.05, 'momentum': 0.9}}",
             model, STEPS / 2, precision, train);
    return text;
}

static const char *place(const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", checks_scratch(), name);
    return path;
}

/* The losses of all steps, from metrics.jsonl. */
static void read_losses(const char *output, double *ret_losses)
{
    char *text = run_job_contents(output, "metrics.jsonl", NULL);
    int n = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const char *loss = strstr(line, "\"loss\":");
        if (loss != NULL && strstr(line, "\"lr\"") != NULL && n < STEPS)
            ret_losses[n++] = strtod(loss + strlen("\"loss\":"), NULL);
    }
    ck_assert_int_eq(n, STEPS);
    free(text);
}

/* Both fit the data, and on the way there the curves lie side by side. */
START_TEST(learns_as_fp32_does)
{
    static struct run_job run;
    double fp32[STEPS], bf16[STEPS];
    run_job_well(patch(models[_i], "fp32", ""), place("fp32"), 1, &run);
    run_job_well(patch(models[_i], "bf16", ""), place("bf16"), 1, &run);
    read_losses(place("fp32"), fp32);
    read_losses(place("bf16"), bf16);
    bool differ = false;
    for (int i = 0; i < STEPS; i++) {
        differ |= fp32[i] != bf16[i];
        ck_assert_msg(fabs(fp32[i] - bf16[i]) <= 0.02 * fp32[0], "step %d: %g, in fp32 %g", i + 1,
                      bf16[i], fp32[i]);
    }
    ck_assert(differ);
    ck_assert_double_lt(bf16[STEPS - 1], 0.7 * bf16[0]);
}
END_TEST

START_TEST(runs_again_to_the_same_bits)
{
    static struct run_job run;
    run_job_well(patch(models[_i], "bf16", ""), place("a"), 2, &run);
    run_job_well(patch(models[_i], "bf16", ""), place("b"), 2, &run);
    run_job_same_file(place("a"), place("b"), "weights.safetensors");
}
END_TEST

/* Weights and optimizer's state are saved as the floats that they are. */
START_TEST(resumes_to_the_same_bits)
{
    static struct run_job run;
    const char *more = ", 'accumulate': 2, 'clip_grad_norm': 1, 'checkpoint_activations': true";
    run_job_well(patch(models[_i], "bf16", more), place("whole"), 2, &run);
    run_job(patch(models[_i], "bf16", more), place("parts"), 2, 7, &run);
    ck_assert_int_eq(run.rc, ERR_CANCELLED);
    run_job_well(patch(models[_i], "bf16", more), place("parts"), 2, &run);
    run_job_same_file(place("whole"), place("parts"), "weights.safetensors");
}
END_TEST

START_TEST(recomputes_the_same_bits)
{
    static struct run_job run;
    run_job_well(patch(models[_i], "bf16", ""), place("kept"), 2, &run);
    run_job_well(patch(models[_i], "bf16", ", 'checkpoint_activations': true"), place("made"), 2,
                 &run);
    run_job_same_file(place("kept"), place("made"), "weights.safetensors");
}
END_TEST

/* Outputs are written as floats. */
START_TEST(predicts_as_fp32_does)
{
    static struct run_job run;
    static const char *const precisions[] = {"fp32", "bf16"};
    const float *outputs[2];
    char *files[2], weights[1024];
    size_t bytes[2];
    run_job_well(patch(models[_i], "fp32", ""), place("trained"), 1, &run);
    for (int i = 0; i < 2; i++) {
        snprintf(weights, sizeof weights,
                 "{'model': {%s, 'init': {'weights': '%s/weights.safetensors'}},"
                 " 'train': {'mode': 'predict', 'batch_size': 16, 'precision': '%s'}}",
                 models[_i], place("trained"), precisions[i]);
        run_job_well(weights, place(precisions[i]), 2, &run);
        files[i] = run_job_contents(place(precisions[i]), "outputs.npy", &bytes[i]);
        outputs[i] = (const float *)(files[i] + bytes[i] - 20 * 3 * sizeof(float));
    }
    ck_assert_uint_eq(bytes[0], bytes[1]);
    struct apart apart = apart_floats(outputs[1], outputs[0], 20 * 3);
    ck_assert_msg(apart.worst > 0 && apart.worst <= 2e-2 * apart.largest, "off by %g of %g",
                  apart.worst, apart.largest);
    free(files[0]);
    free(files[1]);
}
END_TEST

static size_t planned_arena(const char *text)
{
    struct err err = ERR_INIT;
    struct trainer_plan plan;
    struct job *job = run_job_parse(text);
    const struct trainer_config config = run_job_config(job, 1, checks_scratch());
    int rc = trainer_plan(&config, &plan, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    size_t bytes = plan.devices[0].arena_bytes;
    trainer_plan_done(&plan);
    job_free(job);
    return bytes;
}

/* The data that enters, max pooling's workspace and the weights' copies are what is not halved. */
START_TEST(activations_take_half_the_memory)
{
    size_t fp32 = planned_arena(patch(CNN, "fp32", ", 'log_every': 2"));
    size_t bf16 = planned_arena(patch(CNN, "bf16", ", 'log_every': 2"));
    ck_assert_msg(bf16 * 100 < fp32 * 65, "%zu bytes, in fp32 %zu", bf16, fp32);
}
END_TEST

int main(void)
{
    const struct {
        const TTest *test;
        int n;
    } rows[] = {
        {learns_as_fp32_does, N_MODELS},      {runs_again_to_the_same_bits, N_MODELS},
        {resumes_to_the_same_bits, N_MODELS}, {recomputes_the_same_bits, N_MODELS},
        {predicts_as_fp32_does, N_MODELS},    {activations_take_half_the_memory, 1},
    };
    enum { N_ROWS = sizeof rows / sizeof rows[0] };
    const char *names[N_ROWS];
    for (int i = 0; i < N_ROWS; i++)
        names[i] = rows[i].test->name;
    if (low_missing() != NULL)
        return checks_skip(names, N_ROWS, low_missing());
    Suite *suite = suite_create("bf16");
    TCase *tcase = checks_case(suite, "jobs", 60);
    for (int i = 0; i < N_ROWS; i++)
        tcase_add_loop_test(tcase, rows[i].test, 0, rows[i].n);
    return checks_run(suite);
}
