/* document_load: what --devices does to a document, and what cannot be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/worker/document.h"
#include "tests/lib/checks.h"

static const char text[] =
    "{\"version\": 1, \"model\": {\"input\": {\"shape\": [5]},"
    " \"layers\": [{\"type\": \"Linear\", \"out_features\": 2}]},"
    " \"data\": {\"train\": {\"format\": \"random\", \"samples\": 9, \"seed\": 1}},"
    " \"loss\": {\"type\": \"MSELoss\"}, \"optimizer\": {\"type\": \"SGD\", \"lr\": 1},"
    " \"train\": {\"epochs\": 1, \"batch_size\": 3}%s}";

static const char *write_document(const char *rest)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/job.json", checks_scratch());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, text, rest);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

static struct job *load(const char *rest, const char *devices)
{
    struct job *job = NULL;
    struct err err = ERR_INIT;
    int rc = document_load(write_document(rest), devices, &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    return job;
}

START_TEST(the_document_stands_without_devices)
{
    struct job *job = load(", \"parallel\": {\"mode\": \"replicate\", \"devices\": 3}", NULL);
    ck_assert_int_eq(job->parallel.n_devices, 3);
    ck_assert_ptr_null(job->parallel.devices);
    job_free(job);
}
END_TEST

START_TEST(devices_win_over_the_document)
{
    struct job *job = load(
        ", \"parallel\": {\"mode\": \"replicate\", \"devices\": [\"cpu:7\", \"cpu:8\"]}", "cpu:3");
    ck_assert_int_eq(job->parallel.n_devices, 1);
    ck_assert_str_eq(job->parallel.devices[0], "cpu:3");
    job_free(job);
}
END_TEST

START_TEST(several_devices_replicate_a_single_job)
{
    struct job *job = load("", "cpu:1,cpu:0");
    ck_assert_int_eq(job->parallel.mode, PARALLEL_REPLICATE);
    ck_assert_int_eq(job->parallel.n_devices, 2);
    ck_assert_str_eq(job->parallel.devices[0], "cpu:1");
    ck_assert_str_eq(job->parallel.devices[1], "cpu:0");
    job_free(job);
}
END_TEST

static const char *const bad_lists[] = {"", ",", "cpu:0,", ",cpu:0", "cpu:0,,cpu:1"};

START_TEST(a_list_with_an_empty_name_is_refused)
{
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(document_load(write_document(""), bad_lists[_i], &job, &err), ERR_USAGE);
    ck_assert_ptr_null(job);
}
END_TEST

START_TEST(too_many_devices_are_refused)
{
    char list[LIMIT_DEVICES * 4 + 8] = "cpu";
    for (int i = 0; i < LIMIT_DEVICES; i++)
        strcat(list, ",cpu");
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(document_load(write_document(""), list, &job, &err), ERR_USAGE);
}
END_TEST

START_TEST(what_cannot_be_read_is_refused)
{
    char path[4096];
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(document_load(checks_scratch(), NULL, &job, &err), ERR_IO);
    snprintf(path, sizeof path, "%s/nothing", checks_scratch());
    ck_assert_int_eq(document_load(path, NULL, &job, &err), ERR_IO);
}
END_TEST

START_TEST(a_document_over_the_limit_is_refused)
{
    size_t size = LIMIT_DOCUMENT_BYTES;
    char *blanks = malloc(size + 1);
    memset(blanks, ' ', size);
    blanks[size] = '\0';
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(document_load(write_document(blanks), NULL, &job, &err), ERR_JOB_INVALID);
    free(blanks);
}
END_TEST

int main(void)
{
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("document");
    TCase *tcase = checks_case(suite, "load", 0);
    tcase_add_test(tcase, the_document_stands_without_devices);
    tcase_add_test(tcase, devices_win_over_the_document);
    tcase_add_test(tcase, several_devices_replicate_a_single_job);
    tcase_add_loop_test(tcase, a_list_with_an_empty_name_is_refused, 0,
                        (int)(sizeof bad_lists / sizeof bad_lists[0]));
    tcase_add_test(tcase, too_many_devices_are_refused);
    tcase_add_test(tcase, what_cannot_be_read_is_refused);
    tcase_add_test(tcase, a_document_over_the_limit_is_refused);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
