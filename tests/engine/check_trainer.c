/* check_trainer.c: jobs from their first to their last step: what they say, write and refuse. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool exists(const char *dir, const char *name)
{
    char path[1024];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return stat(path, &st) == 0;
}

static void ck_failed(int code, const char *path, const char *says)
{
    ck_assert_msg(run.rc == code, "%s, not %s: %s", err_name(run.rc), err_name(code),
                  run.err.message);
    ck_assert_str_eq(run.err.path, path);
    ck_assert_msg(strstr(run.err.message, says) != NULL, "«%s» does not say «%s»", run.err.message,
                  says);
}

START_TEST(a_job_leaves_its_files)
{
    const char *output = place("deep/er/out");
    run_job_well("{}", output, 2, &run);
    ck_assert_int_eq(run.started.steps, 6);
    ck_assert_int_eq(run.started.epochs, 2);
    ck_assert_int_eq(run.reports[REPORT_PROGRESS], 6);
    ck_assert_int_eq(run.reports[REPORT_VALIDATION], 2);
    ck_assert_int_eq(run.reports[REPORT_CHECKPOINT], 3);
    ck_assert_int_eq(run.last.type, REPORT_DONE);
    ck_assert(isfinite(run.done.accuracy));
    ck_assert(run.confusion);
    ck_assert(exists(output, "weights.safetensors"));
    ck_assert(exists(output, "checkpoints/step-00000006/state.safetensors"));
    ck_assert(exists(output, "checkpoints/step-00000004/weights.safetensors"));
    ck_assert(!exists(output, "checkpoints/step-00000002"));
    ck_assert(exists(output, "job.json"));
    ck_assert(exists(output, "checkpoints/step-00000006/weights.safetensors"));

    char *text = run_job_contents(output, "job.json", NULL);
    struct err err;
    struct job *job;
    ck_assert_int_eq(job_parse(text, strlen(text), &job, &err), 0);
    ck_assert_int_eq(job->train.epochs, 2);
    job_free(job);
    free(text);
}
END_TEST

START_TEST(metrics_have_a_row_a_step)
{
    const char *output = place("out");
    run_job_well("{}", output, 3, &run);
    char *text = run_job_contents(output, "metrics.jsonl", NULL);
    int64_t steps = 0, validations = 0;
    double rated_samples = 0, rated_seconds = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *row = json_loads(line, 0, NULL);
        ck_assert_ptr_nonnull(row);
        int64_t step = json_integer_value(json_object_get(row, "step"));
        ck_assert_int_eq(json_integer_value(json_object_get(row, "epoch")), (step - 1) / 3 + 1);
        if (json_object_get(row, "validation_loss") != NULL) {
            ck_assert_int_eq(step, ++validations * 3);
            ck_assert(json_is_number(json_object_get(row, "accuracy")));
        } else {
            ck_assert_int_eq(step, ++steps);
            /* 16 samples make chunks of 6, 6, 4; the last 8 of the epoch 3, 3, 2. */
            double mean = 0, losses[3];
            int64_t samples = json_integer_value(json_object_get(row, "samples"));
            json_t *replicas = json_object_get(row, "replica_losses");
            ck_assert_int_eq(samples, step % 3 == 0 ? 8 : 16);
            ck_assert_uint_eq(json_array_size(replicas), 3);
            for (size_t i = 0; i < 3; i++)
                losses[i] = json_real_value(json_array_get(replicas, i));
            mean = samples == 16 ? (6 * losses[0] + 6 * losses[1] + 4 * losses[2]) / 16
                                 : (3 * losses[0] + 3 * losses[1] + 2 * losses[2]) / 8;
            ck_assert_double_eq_tol(mean, json_real_value(json_object_get(row, "loss")), 1e-7);
            if (step > 1) { /* the first warms up */
                rated_samples += (double)samples;
                rated_seconds += json_real_value(json_object_get(row, "seconds"));
            }
        }
        json_decref(row);
    }
    ck_assert_int_eq(steps, 6);
    ck_assert_int_eq(validations, 2);
    double rate = rated_samples / rated_seconds;
    ck_assert_double_eq_tol(run.progress.samples_per_second, rate, 1e-6 * rate);
    free(text);
}
END_TEST

#define TRACED                                                                                     \
    "{'model': {'input': {'shape': [5]}, 'layers': [{'type': 'Linear', 'out_features': 2}]},"      \
    " 'data': {'train': {'samples': 100, 'classes': 2}, 'validation': {'classes': 2}},"            \
    " 'train': {'epochs': 1, 'batch_size': 30, 'trace': ['shapes']}}"

/* The DataParallel tutorial's tables: chunk sizes of three batches of 30, then of one of 10. */
static const struct {
    int n_devices, full[9], last[9];
} tables[] = {
    {1, {30}, {10}},
    {2, {15, 15}, {5, 5}},
    {3, {10, 10, 10}, {4, 4, 2}},
    {8, {4, 4, 4, 4, 4, 4, 4, 2}, {2, 2, 2, 2, 2}},
};

static void expect_batch(char *to, const int *chunks, int whole)
{
    for (; *chunks > 0; chunks++)
        sprintf(to + strlen(to), "In Model: input size [%d, 5] output size [%d, 2]\n", *chunks,
                *chunks);
    sprintf(to + strlen(to), "Outside: input size [%d, 5] output size [%d, 2]\n", whole, whole);
}

START_TEST(traces_are_the_tutorials)
{
    char want[8192] = "";
    if (tables[_i].n_devices > 1)
        sprintf(want, "Let's use %d devices\n", tables[_i].n_devices);
    if (tables[_i].n_devices == 8)
        strcat(want, "warning: a batch of 10 samples makes 5 chunks for 8 devices; these rest: "
                     "cpu:5, cpu:6, cpu:7\n");
    for (int i = 0; i < 3; i++)
        expect_batch(want, tables[_i].full, 30);
    expect_batch(want, tables[_i].last, 10);
    run_job_well(TRACED, place("out"), tables[_i].n_devices, &run);
    ck_assert_str_eq(run.said, want);
}
END_TEST

START_TEST(a_stopped_job_goes_on_where_it_was)
{
    const char *whole = place("whole"), *parts = place("parts");
    run_job_well("{}", whole, 2, &run);
    for (int64_t step = 1; step < 6; step += 2) {
        run_job("{}", parts, 2, step, &run);
        ck_failed(ERR_CANCELLED, "", "stopped on request after step");
        ck_assert_int_eq(run.last.type, REPORT_CHECKPOINT);
        ck_assert_int_eq(run.last.step, step);
        ck_assert(!exists(parts, "weights.safetensors"));
    }
    run_job_well("{}", parts, 2, &run);
    ck_assert_int_eq(run.started.resumed_step, 5);
    run_job_same_file(whole, parts, "weights.safetensors");
    run_job_same_file(whole, parts, "checkpoints/step-00000006/state.safetensors");
}
END_TEST

START_TEST(more_epochs_are_a_continuation)
{
    const char *whole = place("whole"), *parts = place("parts");
    run_job_well("{'train': {'epochs': 4}}", whole, 2, &run);
    run_job_well("{}", parts, 2, &run);
    run_job_well("{'train': {'epochs': 4}}", parts, 2, &run);
    ck_assert_int_eq(run.started.resumed_step, 6);
    run_job_same_file(whole, parts, "weights.safetensors");

    run_job("{'train': {'epochs': 1}}", parts, 2, 0, &run);
    ck_failed(ERR_CHECKPOINT, "", "has a checkpoint of step 12, the job ends at step 3");
}
END_TEST

START_TEST(a_finished_job_ends_well_again)
{
    const char *output = place("out");
    run_job_well("{}", output, 1, &run);
    double accuracy = run.done.accuracy;
    char *before = run_job_contents(output, "metrics.jsonl", NULL);
    run_job_well("{}", output, 1, &run);
    char *after = run_job_contents(output, "metrics.jsonl", NULL);
    ck_assert_str_eq(before, after);
    ck_assert_int_eq(run.started.resumed_step, 6);
    ck_assert_int_eq(run.reports[REPORT_PROGRESS], 0);
    ck_assert_double_eq(run.done.accuracy, accuracy);
    ck_assert(run.confusion);
    free(before);
    free(after);
}
END_TEST

START_TEST(without_resume_it_begins_anew)
{
    const char *output = place("out");
    run_job_well("{'train': {'epochs': 4}}", output, 1, &run);
    run_job("{'checkpoint': {'resume': 'never'}}", output, 1, 3, &run);
    ck_assert_int_eq(run.rc, ERR_CANCELLED);
    ck_assert(!exists(output, "weights.safetensors"));
    ck_assert(!exists(output, "checkpoints/step-00000012"));
    run_job_well("{}", output, 1, &run);
    ck_assert_int_eq(run.started.resumed_step, 3);
}
END_TEST

#define LAYERS(width)                                                                              \
    "{'model': {'layers': [{'type': 'Linear', 'name': 'a', 'out_features': " width "},"            \
    " {'type': 'Linear', 'name': 'b', 'out_features': 3}]}}"

static const struct {
    const char *patch, *path, *says;
} others[] = {
    {"{'train': {'batch_size': 8}}", "/train/batch_size", "a job with 16 here, now it is 8"},
    {"{'train': {'seed': 7}}", "/train/seed", "a job with 1 here, now it is 7"},
    {"{'data': {'shuffle': false}}", "/data/shuffle", "a job with true here, now it is false"},
    {"{'data': {'train': {'seed': 3}}}", "/data/train", "was trained on other data"},
    {"{'data': {'transform': {'scale': 2}}}", "/data/train", "was trained on other data"},
    {LAYERS("9"), "/model/layers/0", "\"out_features\":9"},
    {"{'model': {'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 8}]},"
     " 'data': {'train': {'classes': 8}, 'validation': {'classes': 8}}}",
     "/model/layers", "a model of 2 layers, now it is 1"},
};

START_TEST(another_job_is_refused)
{
    const char *output = place("out");
    run_job_well(LAYERS("8"), output, 1, &run);
    run_job_well(LAYERS("8"), output, 1, &run);
    char merged[1024] = LAYERS("8");
    if (strstr(others[_i].patch, "'layers'") == NULL)
        snprintf(merged + strlen(merged) - 1, sizeof merged - strlen(merged) + 1, ", %s",
                 others[_i].patch + 1);
    else
        snprintf(merged, sizeof merged, "%s", others[_i].patch);
    run_job(merged, output, 1, 0, &run);
    ck_failed(ERR_CHECKPOINT, others[_i].path, others[_i].says);
    ck_assert(exists(output, "weights.safetensors"));
}
END_TEST

START_TEST(a_damaged_checkpoint_is_passed_over)
{
    const char *whole = place("whole"), *hurt = place("hurt");
    char path[1024];
    run_job_well("{}", whole, 2, &run);
    run_job("{}", hurt, 2, 5, &run);
    snprintf(path, sizeof path, "%s/checkpoints/step-00000005/weights.safetensors", hurt);
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    fseek(file, -3, SEEK_END);
    fputc(0x55, file);
    fclose(file);
    run_job_well("{}", hurt, 2, &run);
    ck_assert_int_eq(run.started.resumed_step, 4);
    ck_assert_ptr_nonnull(strstr(run.said, "warning: a damaged checkpoint is passed over: "));
    run_job_same_file(whole, hurt, "weights.safetensors");
}
END_TEST

/* Not to be read now (here a loop of links) is not damage: nothing is begun anew, nothing removed.
 */
START_TEST(a_checkpoint_that_cannot_be_opened_stays)
{
    const char *output = place("out");
    char file[1024], aside[1024];
    run_job("{'checkpoint': {'keep': 1}}", output, 2, 4, &run);
    snprintf(file, sizeof file, "%s/checkpoints/step-00000004/state.safetensors", output);
    snprintf(aside, sizeof aside, "%s/aside", output);
    ck_assert_int_eq(rename(file, aside), 0);
    ck_assert_int_eq(symlink("state.safetensors", file), 0);
    run_job("{}", output, 2, 0, &run);
    ck_failed(ERR_IO, "", "Too many levels of symbolic links");
    ck_assert_int_eq(rename(aside, file), 0);
    run_job_well("{}", output, 2, &run);
    ck_assert_int_eq(run.started.resumed_step, 4);

    run_job("{'train': {'epochs': 3}}", output, 2, 7, &run);
    snprintf(file, sizeof file, "%s/checkpoints/step-00000007/state.safetensors", output);
    ck_assert_int_eq(unlink(file), 0);
    run_job_well("{'train': {'epochs': 3}}", output, 2, &run);
    ck_assert_int_eq(run.started.resumed_step, 6);
    ck_assert_ptr_nonnull(strstr(run.said, "state.safetensors is missing"));
}
END_TEST

/* A file that is as large as files may be: what was written of the weights goes away again. */
START_TEST(weights_that_do_not_fit_leave_nothing)
{
    const char *output = place("out");
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 4096; /* room for job.json, not for 300 x 5 weights */
    signal(SIGXFSZ, SIG_IGN);
    struct job *job =
        run_job_parse("{'model': {'layers': [{'type': 'Linear', 'out_features': 300}]},"
                      " 'train': {'epochs': 1, 'log_every': 100, 'validate_every': 'never'},"
                      " 'checkpoint': {'every': 'never'}}");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    run_job_parsed(job, output, 1, 0, &run);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    job_free(job);
    ck_failed(ERR_IO, "", "File too large");
    ck_assert(!exists(output, "weights.safetensors.new"));
    ck_assert(!exists(output, "weights.safetensors"));
}
END_TEST

START_TEST(nan_ends_the_job)
{
    const char *output = place("out");
    run_job("{'optimizer': {'lr': 1e38}, 'train': {'validate_every': 'never'}}", output, 2, 0,
            &run);
    ck_failed(ERR_LOSS_NAN, "", "the loss is ");
    ck_assert_ptr_nonnull(strstr(run.err.message, "(epoch 1)"));
    ck_assert(!exists(output, "weights.safetensors"));
    char *metrics = run_job_contents(output, "metrics.jsonl", NULL);
    ck_assert_ptr_null(strstr(metrics, "nan"));
    ck_assert_ptr_null(strstr(metrics, "inf"));
    free(metrics);
}
END_TEST

START_TEST(a_live_jobs_directory_is_refused)
{
    const char *output = place("out");
    char path[1024];
    run_job_well("{}", output, 1, &run);
    snprintf(path, sizeof path, "%s/lock", output);
    int fd = open(path, O_RDONLY);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    run_job("{}", output, 1, 0, &run);
    ck_failed(ERR_OUTPUT, "", "in use by another job: \"small\", process ");
    close(fd);
    run_job_well("{}", output, 1, &run);
}
END_TEST

START_TEST(initial_weights_are_not_overwritten)
{
    char patch[1024];
    const char *output = place("out");
    run_job_well("{}", output, 1, &run);
    snprintf(patch, sizeof patch,
             "{'model': {'init': {'weights': '%s/./weights.safetensors'}},"
             " 'checkpoint': {'resume': 'never'}}",
             output);
    run_job(patch, output, 1, 0, &run);
    ck_failed(ERR_OUTPUT, "/model/init/weights", "would be overwritten");
    ck_assert(exists(output, "weights.safetensors"));
    run_job_well(patch, place("other"), 1, &run);
}
END_TEST

static const struct {
    const char *patch;
    int code;
    const char *path;
} hopeless[] = {
    {"{'model': {'init': {'weights': '/nonexistent.safetensors'}}}", ERR_IO, "/model/init/weights"},
    {"{'data': {'train': {'classes': 4}}}", ERR_DATA_INVALID, "/data/train/classes"},
    {"{'data': {'drop_last': true}, 'train': {'batch_size': 41}}", ERR_JOB_INVALID,
     "/train/batch_size"},
    {"{'train': {'batch_size': 39}}", ERR_MODEL_SHAPE, "/model/layers/1"},
    /* An epoch's order of 8 TiB; weights of 4 TB. */
    {"{'data': {'train': {'samples': 1099511627776}}}", ERR_NOMEM, ""},
    {"{'model': {'input': {'shape': [1000]},"
     " 'layers': [{'type': 'Linear', 'out_features': 1000000000}]}}",
     ERR_NOMEM, ""},
};

/* At most 1 TiB, lest a system that promises any memory tries. A sanitizer maps more for itself,
 * and refuses as much. */
static void limit_memory(void)
{
    const struct rlimit most = {(rlim_t)1 << 40, (rlim_t)1 << 40};
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    if ((rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) < most.rlim_cur)
        ck_assert_int_eq(setrlimit(RLIMIT_AS, &most), 0);
}

START_TEST(a_job_that_cannot_begin_leaves_nothing)
{
    limit_memory();
    const char *output = place("no/such/place");
    run_job(hopeless[_i].patch, output, 1, 0, &run);
    ck_assert_msg(run.rc == hopeless[_i].code, "%s: %s", err_name(run.rc), run.err.message);
    ck_assert_str_eq(run.err.path, hopeless[_i].path);
    ck_assert(!exists(checks_scratch(), "no"));
}
END_TEST

START_TEST(an_output_that_cannot_be_used)
{
    const char *file = place("file");
    fclose(fopen(file, "w"));
    run_job("{}", file, 1, 0, &run);
    ck_failed(ERR_OUTPUT, "", "Not a directory");
    run_job("{}", place("file/below"), 1, 0, &run);
    ck_failed(ERR_OUTPUT, "", "Not a directory");
    char path[1024];
    snprintf(path, sizeof path, "%s/%0300d", place("made/on the way"), 0);
    run_job("{}", path, 1, 0, &run);
    ck_failed(ERR_OUTPUT, "", "File name too long");
    ck_assert(!exists(checks_scratch(), "made"));
    ck_assert_int_eq(chdir(checks_scratch()), 0);
    snprintf(path, sizeof path, "made/%0300d", 0);
    run_job("{}", path, 1, 0, &run);
    ck_failed(ERR_OUTPUT, "", "File name too long");
    ck_assert(!exists(checks_scratch(), "made"));
    run_job("{}", "/proc/self/out", 1, 0, &run);
    ck_failed(ERR_OUTPUT, "", "cannot make the output directory /proc/self/out");
}
END_TEST

/* A user who may not write to the root directory is told so. */
START_TEST(an_output_without_the_right_to_make_it)
{
    uid_t before = geteuid();
    if (before == 0)
        ck_assert_int_eq(seteuid(65534), 0);
    run_job("{}", "/traind-test-output", 1, 0, &run);
    ck_assert_int_eq(seteuid(before), 0);
    prctl(PR_SET_DUMPABLE, 1); /* as before; LeakSanitizer wants to look */
    ck_failed(ERR_OUTPUT, "", "cannot make the output directory /traind-test-output: ");
    ck_assert_ptr_null(strstr(run.err.message, "No such file"));
}
END_TEST

START_TEST(logs_and_validates_as_asked)
{
    run_job_well("{'train': {'log_every': 4, 'validate_every': 'never'},"
                 " 'checkpoint': {'every': 'never'}}",
                 place("out"), 1, &run);
    ck_assert_int_eq(run.reports[REPORT_PROGRESS], 2); /* steps 4 and 6 */
    ck_assert_int_eq(run.reports[REPORT_VALIDATION], 0);
    ck_assert_int_eq(run.reports[REPORT_CHECKPOINT], 0);
    ck_assert(isnan(run.done.accuracy));
    ck_assert(!run.confusion);
}
END_TEST

START_TEST(a_plan_touches_nothing)
{
    struct err err = ERR_INIT;
    struct trainer_plan plan;
    const char *output = place("out");
    struct job *job = run_job_parse("{}");
    struct trainer_config config = run_job_config(job, 2, output);
    int rc = trainer_plan(&config, &plan, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_int_eq(plan.parameters, 5 * 8 + 8 + 8 + 8 + 8 * 3 + 3);
    ck_assert_int_eq(plan.steps, 6);
    ck_assert_int_eq(plan.steps_per_epoch, 3);
    ck_assert_int_eq(plan.devices[0].samples, 8);
    ck_assert_uint_ge(plan.input_bytes, 16 * (5 * sizeof(float) + sizeof(int64_t)));
    ck_assert(!exists(checks_scratch(), "out"));
    trainer_plan_done(&plan);
    job_free(job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trainer");
    TCase *tcase = checks_case(suite, "trainer", 60);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, a_job_leaves_its_files);
    tcase_add_test(tcase, metrics_have_a_row_a_step);
    tcase_add_loop_test(tcase, traces_are_the_tutorials, 0, sizeof tables / sizeof tables[0]);
    tcase_add_test(tcase, a_stopped_job_goes_on_where_it_was);
    tcase_add_test(tcase, more_epochs_are_a_continuation);
    tcase_add_test(tcase, a_finished_job_ends_well_again);
    tcase_add_test(tcase, without_resume_it_begins_anew);
    tcase_add_loop_test(tcase, another_job_is_refused, 0, sizeof others / sizeof others[0]);
    tcase_add_test(tcase, a_damaged_checkpoint_is_passed_over);
    tcase_add_test(tcase, a_checkpoint_that_cannot_be_opened_stays);
    tcase_add_test(tcase, weights_that_do_not_fit_leave_nothing);
    tcase_add_test(tcase, nan_ends_the_job);
    tcase_add_test(tcase, a_live_jobs_directory_is_refused);
    tcase_add_test(tcase, initial_weights_are_not_overwritten);
    tcase_add_loop_test(tcase, a_job_that_cannot_begin_leaves_nothing, 0,
                        sizeof hopeless / sizeof hopeless[0]);
    tcase_add_test(tcase, an_output_that_cannot_be_used);
    tcase_add_test(tcase, an_output_without_the_right_to_make_it);
    tcase_add_test(tcase, logs_and_validates_as_asked);
    tcase_add_test(tcase, a_plan_touches_nothing);
    return checks_run(suite);
}
