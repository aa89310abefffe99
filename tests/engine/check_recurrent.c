/* Checkpoints between the time steps of LSTM, GRU and RNN: they change memory but not one bit. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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
START_TEST(takes_no_more_than_planned)
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

int main(void)
{
    Suite *suite = suite_create("recurrent");
    TCase *tcase = checks_case(suite, "recurrent", 120);
    tcase_add_loop_test(tcase, changes_no_bit, 0, sizeof same_rows / sizeof same_rows[0]);
    tcase_add_loop_test(tcase, takes_a_part_of_the_memory, 0,
                        sizeof long_rows / sizeof long_rows[0]);
    tcase_add_test(tcase, takes_no_more_than_planned);
    return checks_run(suite);
}
