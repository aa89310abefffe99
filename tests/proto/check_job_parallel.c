/* job, its "parallel": what a document says of devices and stages. */
#include <stdlib.h>
#include <string.h>

#include "proto/job.h"
#include "tests/lib/checks.h"
#include "tests/proto/bad_jobs.h"

/* The digits job with another "parallel". */
static struct job *parsed_parallel(const char *parallel)
{
    json_t *root = patched(jobs_digits, "/parallel", parallel);
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_msg(job_from_json(root, &job, &err) == 0, "%s: %s", err.path, err.message);
    json_decref(root);
    return job;
}

static const char split_stages[] =
    "{\"mode\": \"stages\", \"devices\": 4, \"replicas\": 2, \"split\": [\"3\"],"
    " \"split_size\": 20, \"schedule\": \"1f1b\"}";
static const char named_stages[] =
    "{\"mode\": \"stages\", \"microbatches\": \"auto\", \"stages\": ["
    "{\"begin\": \"conv1\", \"devices\": [\"cpu:2\"]},"
    "{\"begin\": \"fc\", \"devices\": [\"cpu:1\", \"cpu\"]}]}";

START_TEST(stages_by_split)
{
    struct job *job = parsed_parallel(split_stages);
    const struct job_parallel *parallel = &job->parallel;
    size_t first[LIMIT_DEVICES];
    ck_assert_int_eq((int)parallel->mode, PARALLEL_STAGES);
    ck_assert_int_eq(parallel->n_devices, 4);
    ck_assert_int_eq(parallel->replicas, 2);
    ck_assert_int_eq(parallel->split_size, 20);
    ck_assert_int_eq(parallel->microbatches, 0);
    ck_assert_int_eq((int)parallel->schedule, PIPELINE_1F1B);
    ck_assert_uint_eq(job_stage_begins(job, first), 2);
    ck_assert_uint_eq(first[0], 0);
    ck_assert_uint_eq(first[1], 3);
    job_free(job);
}
END_TEST

START_TEST(stages_with_devices)
{
    struct job *job = parsed_parallel(named_stages);
    const struct job_parallel *parallel = &job->parallel;
    size_t first[LIMIT_DEVICES];
    ck_assert_int_eq(parallel->n_devices, 3);
    ck_assert_str_eq(parallel->devices[0], "cpu:2");
    ck_assert_str_eq(parallel->devices[2], "cpu");
    ck_assert_uint_eq(parallel->stages[1].n_devices, 2);
    ck_assert_int_eq(parallel->microbatches, MICROBATCHES_AUTO);
    ck_assert_int_eq((int)parallel->schedule, PIPELINE_ZERO_BUBBLE);
    ck_assert_uint_eq(job_stage_begins(job, first), 2);
    ck_assert_uint_eq(first[1], 5);
    job_free(job);
}
END_TEST

START_TEST(balance_finds_the_split)
{
    struct job *job = parsed_parallel("{\"mode\": \"stages\", \"devices\": 3}");
    size_t first[LIMIT_DEVICES];
    ck_assert_uint_eq(job_stage_begins(job, first), 0);
    ck_assert_int_eq(job->parallel.replicas, 1);
    job_free(job);
}
END_TEST

static char **new_list(size_t n)
{
    char **list = calloc(n, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        char name[] = "cpu:0";
        name[4] = (char)('5' + i);
        list[i] = strdup(name);
    }
    return list;
}

START_TEST(devices_take_the_place_of_stages_own)
{
    struct job *job = parsed_parallel(named_stages);
    struct err err = ERR_INIT;
    ck_assert_int_eq(job_set_devices(job, new_list(3), 3, &err), 0);
    ck_assert_str_eq(job->parallel.devices[0], "cpu:5");
    ck_assert_str_eq(job->parallel.stages[0].devices[0], "cpu:5");
    ck_assert_str_eq(job->parallel.stages[1].devices[1], "cpu:7");
    char **two = new_list(2);
    ck_assert_int_eq(job_set_devices(job, two, 2, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.path, "/parallel/devices");
    ck_assert_str_eq(err.message, "the stages have 3 devices together, found 2");
    free(two[0]);
    free(two[1]);
    free(two);
    job_free(job);
}
END_TEST

/* Parsing the dump gives an equal job: its own dump is the same. */
START_TEST(stages_are_dumped)
{
    const char *const parallels[] = {split_stages, named_stages};
    struct job *job = parsed_parallel(parallels[_i]), *again = NULL;
    struct err err = ERR_INIT;
    json_t *dump = job_dump(job);
    ck_assert_msg(job_from_json(dump, &again, &err) == 0, "%s: %s", err.path, err.message);
    json_t *again_dump = job_dump(again);
    ck_assert(json_equal(dump, again_dump));
    json_decref(dump);
    json_decref(again_dump);
    job_free(job);
    job_free(again);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_parallel");
    TCase *tcase = checks_case(suite, "job_parallel", 0);
    tcase_add_test(tcase, stages_by_split);
    tcase_add_test(tcase, stages_with_devices);
    tcase_add_test(tcase, balance_finds_the_split);
    tcase_add_test(tcase, devices_take_the_place_of_stages_own);
    tcase_add_loop_test(tcase, stages_are_dumped, 0, 2);
    return checks_run(suite);
}
