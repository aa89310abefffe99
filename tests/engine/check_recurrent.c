/* LSTM, GRU and RNN as whole jobs run them: checkpoints between the time steps, which change memory
 * but not one bit; outputs as long as the longest sample of a chunk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/engine/idx_files.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

#define SEQUENCES "'input': {'shape': [50, 4], 'lengths': true}"

/* Every cell, there and back, dropout between, something without biases. */
#define LAYERS(every)                                                                              \
    "'layers': ["                                                                                  \
    "{'type': 'LSTM', 'name': 'lstm', 'hidden_size': 4, 'num_layers': 2, 'bidirectional': true,"   \
    " 'dropout': 0.2" every "}, "                                                                  \
    "{'type': 'RNN', 'name': 'rnn', 'hidden_size': 8, 'nonlinearity': 'relu'" every "}, "          \
    "{'type': 'GRU', 'name': 'gru', 'hidden_size': 5, 'bias': false" every "}, "                   \
    "{'type': 'SelectLast'}, {'type': 'Linear', 'name': 'fc', 'out_features': 3}]"

static const struct {
    const char *model, *train;
    int n_devices;
} same_rows[] = {
    {LAYERS(", 'checkpoint_steps': 1"), "", 1},
    {LAYERS(", 'checkpoint_steps': 7"), "", 2},
    {LAYERS(", 'checkpoint_steps': 16"), "", 3},
    {LAYERS(", 'checkpoint_steps': 50"), "", 1},
    {LAYERS(", 'checkpoint_steps': 1000"), "", 2},
    {LAYERS(", 'checkpoint_steps': 9"), ", 'accumulate': 2", 2},
    {LAYERS(", 'checkpoint_steps': 9"), ", 'checkpoint_activations': true", 1},
    {LAYERS(", 'checkpoint_steps': 9"),
     ", 'checkpoint_activations': ['lstm', 'rnn'], 'accumulate': 2", 2},
    {LAYERS(""), ", 'checkpoint_activations': ['lstm', 'gru']", 2},
};

static void train(const char *model, const char *more, int n_devices, const char *output)
{
    char patch[2048];
    struct run_job *run = calloc(1, sizeof *run);
    snprintf(patch, sizeof patch,
             "{'model': {" SEQUENCES ", %s}, 'train': {'batch_size': 15, 'epochs': 2%s}}", model,
             more);
    run_job_well(patch, output, n_devices, run);
    free(run);
}

START_TEST(changes_no_bit)
{
    char plain[64], other[64];
    bool accumulates = strstr(same_rows[_i].train, "accumulate'") != NULL;
    snprintf(plain, sizeof plain, "%s/plain", checks_scratch());
    snprintf(other, sizeof other, "%s/other", checks_scratch());
    train(LAYERS(""), accumulates ? ", 'accumulate': 2" : "", same_rows[_i].n_devices, plain);
    train(same_rows[_i].model, same_rows[_i].train, same_rows[_i].n_devices, other);
    run_job_same_file(plain, other, "weights.safetensors");
    checks_scratch_remove();
}
END_TEST

/* By layers; what the planned memory falls to at least. A GRU saves less, two directions are there
 * once more, joined. */
static const struct {
    const char *layer;
    size_t part;
} long_rows[] = {
    {"{'type': 'LSTM', 'hidden_size': 64%s}", 5},
    {"{'type': 'LSTM', 'hidden_size': 64, 'num_layers': 3%s}", 5},
    {"{'type': 'GRU', 'hidden_size': 64, 'num_layers': 2%s}", 4},
    {"{'type': 'LSTM', 'hidden_size': 64, 'num_layers': 2, 'bidirectional': true%s}", 4},
};

static struct job *long_job(int row, const char *every)
{
    char layer[256], patch[1024];
    snprintf(layer, sizeof layer, long_rows[row].layer, every);
    snprintf(patch, sizeof patch,
             "{'model': {'input': {'shape': [2000, 3]}, 'layers': [%s, {'type': 'SelectLast'},"
             " {'type': 'Linear', 'out_features': 3}]},"
             " 'data': {'train': {'samples': 8}, 'validation': {'samples': 8}},"
             " 'train': {'batch_size': 8, 'epochs': 1}}",
             layer);
    return run_job_parse(patch);
}

static const char often[] = ", 'checkpoint_steps': 45";

static size_t planned_bytes(int row, const char *every)
{
    struct job *job = long_job(row, every);
    struct trainer_config config = run_job_config(job, 1, "unused");
    struct trainer_plan plan;
    struct err err = ERR_INIT;
    ck_assert_msg(trainer_plan(&config, &plan, &err) == 0, "%s", err.message);
    size_t bytes = plan.devices[0].arena_bytes;
    trainer_plan_done(&plan);
    job_free(job);
    return bytes;
}

START_TEST(takes_a_part_of_the_memory)
{
    size_t whole = planned_bytes(_i, ""), some = planned_bytes(_i, often);
    ck_assert_msg(long_rows[_i].part * some <= whole, "%zu of %zu bytes", some, whole);
}
END_TEST

/* The most that a process that runs the job has resident. */
static size_t resident_bytes(const char *every, const char *output)
{
    struct rusage usage;
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct run_job *run = calloc(1, sizeof *run);
        struct job *job = long_job(0, every);
        run_job_parsed(job, output, 1, 0, run);
        _exit(run->rc == 0 ? 0 : 1);
    }
    ck_assert_int_eq(wait4(child, &status, 0, &usage), child);
    ck_assert_int_eq(status, 0);
    return (size_t)usage.ru_maxrss * 1024;
}

/* What the plan saves is not resident. */
START_TEST(is_not_resident)
{
    char whole[64], some[64];
    snprintf(whole, sizeof whole, "%s/whole", checks_scratch());
    snprintf(some, sizeof some, "%s/some", checks_scratch());
    size_t planned = planned_bytes(0, "") - planned_bytes(0, often);
    size_t resident = resident_bytes("", whole) - resident_bytes(often, some);
    ck_assert_msg((double)resident > 0.8 * (double)planned, "%zu of %zu bytes", resident, planned);
    run_job_same_file(whole, some, "weights.safetensors");
    checks_scratch_remove();
}
END_TEST

/* Outputs as long as the longest sample: four samples of five steps, two a chunk on two devices. */

enum { SAMPLES = 4, STEPS = 5 };
#define TRIMMED "{'type': 'LSTM', 'name': 'lstm', 'hidden_size': 3, 'total_length': false}, "
#define LAST "{'type': 'SelectLast'}, {'type': 'Linear', 'out_features': 2}"

static const struct longest_row {
    uint8_t lengths[SAMPLES];
    int n_devices;
    const char *layers, *says; /* says NULL: it runs, as with total_length true */
} longest_rows[] = {
    {{4, 1, 2, 3}, 1, TRIMMED LAST, NULL},
    {{4, 1, 2, 4}, 2, TRIMMED LAST, NULL},
    {{4, 1, 2, 4},
     2,
     TRIMMED "{'type': 'LayerNorm'}, {'type': 'GRU', 'hidden_size': 2}, " LAST,
     NULL},
    {{5, 1, 2, 5}, 2, TRIMMED "{'type': 'Flatten'}, {'type': 'Linear', 'out_features': 2}", NULL},
    {{4, 1, 2, 3},
     2,
     TRIMMED LAST,
     "layer \"lstm\" gives as many steps as the longest sample of a chunk: replica 0 on cpu:0 4, "
     "replica 1 on cpu:1 3, and these cannot be gathered; with total_length true all give 5"},
    {{4, 1, 2, 4},
     2,
     TRIMMED "{'type': 'Flatten', 'name': 'flat'}, {'type': 'Linear', 'out_features': 2}",
     "layer \"lstm\" gives as many steps as the longest sample, here 4, but layer \"flat\" takes "
     "5: that "
     "is what total_length true gives"},
    {{3, 3, 3, 3},
     1,
     TRIMMED "{'type': 'Linear', 'name': 'c', 'out_features': 2}",
     "here 3, but the loss takes 5"},
    {{3, 1, 2, 3},
     1,
     "{'type': 'GRU', 'name': 'gru', 'hidden_size': 3}, "
     "{'type': 'RNN', 'name': 'rnn', 'hidden_size': 3, 'total_length': false}, "
     "{'type': 'Add', 'name': 'sum', 'inputs': ['gru', 'rnn']}, " LAST,
     "layer \"rnn\" gives as many steps as the longest sample, here 3, but layer \"sum\" takes 5"},
};

static const char *longest_file(const char *name, int rank, const void *data, size_t bytes)
{
    const uint32_t dim[] = {SAMPLES, STEPS, 2};
    uint8_t text[256];
    return idx_file(name, text, idx_make(text, 8, rank, dim, data, bytes));
}

static void requote(char *document)
{
    for (char *c = document; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
}

static struct job *parse(char *document)
{
    struct err err = ERR_INIT;
    struct job *job = NULL;
    requote(document);
    int rc = job_parse(document, strlen(document), &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    return job;
}

static void run_longest(const struct longest_row *row, bool whole, const char *output,
                        struct run_job *run)
{
    static uint8_t x[SAMPLES * STEPS * 2], targets[SAMPLES * STEPS];
    char patch[2048], layers[1024];
    const bool tokens = strstr(row->layers, "'c'") != NULL;
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (uint8_t)(i * 7 % 5);
    snprintf(layers, sizeof layers, "%s", row->layers);
    char *trims = strstr(layers, ", 'total_length': false");
    if (whole)
        memset(trims, ' ', strlen(", 'total_length': false"));
    snprintf(
        patch, sizeof patch,
        "{'version': 1, 'model': {'input': {'shape': [5, 2], 'lengths': true}, 'layers': [%s]},"
        " 'data': {'train': {'format': 'idx', 'inputs': '%s', 'lengths': '%s', 'targets': '%s'},"
        " 'shuffle': false},"
        " 'loss': {'type': 'CrossEntropyLoss'}, 'optimizer': {'type': 'SGD', 'lr': 0.1},"
        " 'train': {'batch_size': 4, 'epochs': 2}}",
        layers, longest_file("x.idx", 3, x, sizeof x),
        longest_file("lengths.idx", 1, row->lengths, SAMPLES),
        longest_file("targets.idx", tokens ? 2 : 1, targets, tokens ? sizeof targets : SAMPLES));
    struct job *job = parse(patch);
    run_job_parsed(job, output, row->n_devices, 0, run);
    job_free(job);
}

START_TEST(pads_to_the_longest)
{
    const struct longest_row *row = &longest_rows[_i];
    char whole[64], trimmed[64];
    struct run_job *run = calloc(1, sizeof *run);
    snprintf(whole, sizeof whole, "%s/whole", checks_scratch());
    snprintf(trimmed, sizeof trimmed, "%s/trimmed", checks_scratch());
    run_longest(row, false, trimmed, run);
    if (row->says == NULL) {
        ck_assert_msg(run->rc == 0, "%s", run->err.message);
        run_longest(row, true, whole, run);
        run_job_same_file(whole, trimmed, "weights.safetensors");
    } else {
        ck_assert_int_eq(run->rc, ERR_MODEL_SHAPE);
        ck_assert_ptr_nonnull(strstr(run->err.path, "/total_length"));
        ck_assert_msg(strstr(run->err.message, row->says) != NULL, "%s", run->err.message);
    }
    checks_scratch_remove();
    free(run);
}
END_TEST

START_TEST(needs_lengths)
{
    struct job *job =
        run_job_parse("{'model': {'input': {'shape': [5, 2]}, 'layers': [" TRIMMED LAST "]}}");
    struct run_job *run = calloc(1, sizeof *run);
    run_job_parsed(job, "unused", 1, 0, run);
    ck_assert_int_eq(run->rc, ERR_MODEL_SHAPE);
    ck_assert_str_eq(run->err.message,
                     "layer \"lstm\" (LSTM): total_length is false, but its input has no lengths");
    job_free(job);
    free(run);
}
END_TEST

START_TEST(not_in_stages)
{
    char text[] =
        "{'version': 1, 'model': {'input': {'shape': [5, 2], 'lengths': true}, 'layers': [" TRIMMED
            LAST "]}, 'data': {'train': {'format': 'random', 'samples': 4, 'classes': 2}},"
        " 'loss': {'type': 'CrossEntropyLoss'}, 'optimizer': {'type': 'SGD', 'lr': 1},"
        " 'train': {'batch_size': 4, 'epochs': 1},"
        " 'parallel': {'mode': 'stages', 'devices': 2}}";
    struct err err = ERR_INIT;
    struct job *job;
    requote(text);
    ck_assert_int_eq(job_parse(text, strlen(text), &job, &err), ERR_JOB_UNSUPPORTED);
    ck_assert_str_eq(err.path, "/model/layers/0/total_length");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recurrent");
    TCase *tcase = checks_case(suite, "recurrent", 120);
    tcase_add_loop_test(tcase, changes_no_bit, 0, sizeof same_rows / sizeof same_rows[0]);
    tcase_add_loop_test(tcase, takes_a_part_of_the_memory, 0,
                        sizeof long_rows / sizeof long_rows[0]);
    if (checks_sanitized()) /* it has memory of its own resident */
        puts("# skipped: is_not_resident: the sanitizer's own memory is measured too");
    else
        tcase_add_test(tcase, is_not_resident);
    tcase_add_loop_test(tcase, pads_to_the_longest, 0,
                        sizeof longest_rows / sizeof longest_rows[0]);
    tcase_add_test(tcase, needs_lengths);
    tcase_add_test(tcase, not_in_stages);
    return checks_run(suite);
}
