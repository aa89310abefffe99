/* Records as JSON, and every allocation of the daemon's values failing in turn. */
#include <stdlib.h>
#include <string.h>

#include "daemon/journal.h"
#include "daemon/record.h"
#include "daemon/verdict.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

static struct job_record *sample(void)
{
    struct job_record *record = calloc(1, sizeof *record);
    record->id = 3;
    record->uid = 1000;
    record->state = STATE_RUNNING;
    record->reason = strdup("none");
    record->name = strdup("digits");
    record->cwd = strdup("/home/a");
    record->output = strdup("/home/a/runs/3");
    record->weights = strdup("/w");
    record->submitted_ns = 1500000000;
    record->want.n = record->devices.n = 2;
    for (int i = 0; i < 2; i++)
        record->want.id[i] = record->devices.id[i] = (struct device_id){DEVICE_CPU, i};
    record->progress = json_pack("{s:i}", "step", 5);
    record->exit = json_pack("{s:i}", "status", 0);
    record->confusion = json_pack("[[i, i], [i, i]]", 1, 0, 0, 1);
    record->losses = json_pack("[[i, f]]", 1, 0.5);
    record->after = json_pack("[i, i]", 1, 2);
    record->time_limit_s = 60;
    return record;
}

START_TEST(a_copy_shares_nothing)
{
    struct job_record *record = sample(), *copy = job_record_copy(record);
    json_t *before = record_json(copy, NULL, true);
    json_object_set_new(record->progress, "step", json_integer(6));
    record->cwd[0] = 'x';
    json_t *after = record_json(copy, NULL, true);
    ck_assert(json_equal(before, after));
    json_decref(before);
    json_decref(after);
    job_record_free(record);
    job_record_free(copy);
}
END_TEST

START_TEST(exit_is_shown_when_the_job_has_ended)
{
    struct job_record *record = sample();
    json_t *json = record_json(record, NULL, true);
    ck_assert(json_is_null(json_object_get(json, "exit")));
    ck_assert(json_is_null(json_object_get(json, "ended")));
    ck_assert_double_eq(json_number_value(json_object_get(json, "submitted")), 1.5);
    json_decref(json);
    record->state = STATE_COMPLETED;
    json = record_json(record, NULL, true);
    ck_assert(json_is_object(json_object_get(json, "exit")));
    json_decref(json);
    job_record_free(record);
}
END_TEST

START_TEST(copies_and_json_without_memory)
{
    struct job_record *record = sample();
    long n, failures = 0;
    for (n = 1;; n++) {
        oom_arm(n);
        struct job_record *copy = job_record_copy(record);
        bool failed = oom_disarm();
        ck_assert_int_eq(copy == NULL, failed);
        job_record_free(copy);
        if (!failed)
            break;
        failures++;
    }
    ck_assert_int_gt(failures, 10);
    for (n = 1;; n++) {
        oom_arm(n);
        json_t *json = record_json(record, NULL, true);
        bool failed = oom_disarm();
        ck_assert_int_eq(json == NULL, failed);
        json_decref(json);
        if (!failed)
            break;
    }
    ck_assert_int_gt(n, 20);
    job_record_free(record);
}
END_TEST

START_TEST(reports_without_memory)
{
    static const char *const lines[] = {
        "{\"type\":\"started\",\"devices\":2,\"steps\":10,\"epochs\":2,\"output\":\"/o\"}",
        "{\"type\":\"progress\",\"step\":1,\"epoch\":1,\"loss\":0.5}",
        "{\"type\":\"done\",\"step\":10,\"weights\":\"/w\"}",
        "{\"type\":\"failed\",\"code\":\"io\",\"message\":\"broken\",\"path\":\"\"}"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        for (long n = 1;; n++) {
            struct job_record *record = calloc(1, sizeof *record);
            enum journal_news news = JOURNAL_NOTHING;
            struct err err = ERR_INIT;
            oom_arm(n);
            int rc = journal_enter(record, lines[i], strlen(lines[i]), 9, &news, &err);
            bool failed = oom_disarm();
            job_record_free(record);
            ck_assert_msg(rc == (failed ? ERR_NOMEM : 0), "%s: %ld: %s", lines[i], n, err.message);
            if (!failed)
                break;
        }
}
END_TEST

START_TEST(a_verdict_without_memory)
{
    struct verdict verdict = {.state = STATE_FAILED, .why = ERR_INIT};
    struct runner_exit ended = {.status = 1, .reason = RUNNER_EXITED};
    long n;
    err_at(&verdict.why, ERR_IO, "/data", "broken");
    for (n = 1;; n++) {
        oom_arm(n);
        json_t *json = verdict_json(&verdict, &ended);
        bool failed = oom_disarm();
        ck_assert_int_eq(json == NULL, failed);
        json_decref(json);
        if (!failed)
            break;
    }
    ck_assert_int_gt(n, 6);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record");
    TCase *tcase = checks_case(suite, "record", 0);
    tcase_add_test(tcase, a_copy_shares_nothing);
    tcase_add_test(tcase, exit_is_shown_when_the_job_has_ended);
    tcase = checks_case(suite, "memory", 0);
    tcase_add_test(tcase, copies_and_json_without_memory);
    tcase_add_test(tcase, reports_without_memory);
    tcase_add_test(tcase, a_verdict_without_memory);
    return checks_run(suite);
}
