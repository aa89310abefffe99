/* check_peak_memory.c: what a run takes at its peak is what its plan says, with and without
 * activation checkpointing, which leaves less than half of the activations.
 *
 * Each run is a process of its own, whose peak is the system's (VmHWM). Code, which the plan does
 * not count, oneDNN's too, is as much with few samples as with many: what more samples add is
 * compared. As many steps as the loader has batches, and one: all of them have been written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

/* Of this process. */
static size_t peak_bytes(void)
{
    static const char key[] = "VmHWM:";
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtoul(line + strlen(key), NULL, 10);
    fclose(file);
    return kib * 1024;
}

enum { SMALL = 2 }; /* samples of the runs that the others are compared with */

static const struct {
    const char *model, *data;
    int batch;
} models[] = {
    {"{'preset': 'gpt', 'args': {'n_layer': 12, 'n_embd': 64, 'context': 512}}",
     "'format': 'random', 'samples': 24, 'classes': 256", 12},
    {"{'preset': 'resnet50', 'args': {'num_classes': 10, 'width': 16},"
     " 'input': {'shape': [3, 64, 64]}}",
     "'format': 'random', 'samples': 192, 'classes': 10", 96},
};

static struct job *parse(int model, int batch, bool checkpointed)
{
    char text[1024];
    struct err err = ERR_INIT;
    struct job *job = NULL;
    snprintf(text, sizeof text,
             "{'version': 1, 'model': %s, 'data': {'train': {%s}},"
             " 'loss': {'type': 'CrossEntropyLoss'}, 'optimizer': {'type': 'SGD', 'lr': 0.01},"
             " 'checkpoint': {'every': 'never'}, 'train': {'max_steps': 4, 'batch_size': %d,"
             " 'checkpoint_activations': %s}}",
             models[model].model, models[model].data, batch, checkpointed ? "true" : "false");
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    int rc = job_parse(text, strlen(text), &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    return job;
}

static void run(int model, int batch, bool checkpointed)
{
    static struct run_job result;
    char output[512];
    struct job *job = parse(model, batch, checkpointed);
    snprintf(output, sizeof output, "%s/out", checks_scratch());
    run_job_parsed(job, output, 1, 0, &result);
    job_free(job);
    checks_scratch_remove(); /* made by this process, which ends without atexit's */
    if (result.rc != 0) {
        fprintf(stderr, "%s\n", result.err.message);
        _exit(1);
    }
}

/* The peak of a process that runs this. */
static size_t peak(int model, int batch, bool checkpointed)
{
    int fds[2], status;
    size_t bytes = 0;
    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        run(model, batch, checkpointed);
        bytes = peak_bytes();
        _exit(write(fds[1], &bytes, sizeof bytes) == sizeof bytes ? 0 : 1);
    }
    close(fds[1]);
    ck_assert_int_eq(read(fds[0], &bytes, sizeof bytes), sizeof bytes);
    close(fds[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    return bytes;
}

static size_t planned(int model, int batch, bool checkpointed)
{
    struct job *job = parse(model, batch, checkpointed);
    struct trainer_config config = run_job_config(job, 1, "unused");
    struct trainer_plan plan;
    struct err err = ERR_INIT;
    ck_assert_msg(trainer_plan(&config, &plan, &err) == 0, "%s", err.message);
    size_t bytes = strategy_bytes(&plan.devices[0]) + plan.input_bytes;
    trainer_plan_done(&plan);
    job_free(job);
    return bytes;
}

/* What all samples but SMALL add: returns what was measured. */
static size_t check_added(int model, bool checkpointed)
{
    int batch = models[model].batch;
    size_t want = planned(model, batch, checkpointed) - planned(model, SMALL, checkpointed);
    size_t got = peak(model, batch, checkpointed) - peak(model, SMALL, checkpointed);
    ck_assert_msg(got >= want - want / 20 && got <= want + want / 20,
                  "%s: %d samples more add %zu KiB, the plan says %zu",
                  checkpointed ? "checkpointed" : "plain", batch - SMALL, got >> 10, want >> 10);
    return got;
}

START_TEST(the_peak_is_the_plans)
{
    size_t plain = check_added(_i, false), checkpointed = check_added(_i, true);
    ck_assert_msg(2 * checkpointed <= plain, "%zu of %zu KiB", checkpointed >> 10, plain >> 10);
}
END_TEST

int main(void)
{
    static const char *const names[] = {"gpt", "resnet50"};
    if (checks_sanitized())
        return checks_skip(names, 2, "the sanitizer's own memory is measured too");
    Suite *suite = suite_create("peak_memory");
    TCase *tcase = checks_case(suite, "peak_memory", 120);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_loop_test(tcase, the_peak_is_the_plans, 0, sizeof models / sizeof models[0]);
    return checks_run(suite);
}
