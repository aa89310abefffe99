/* The transition table, the journal of reports and the verdicts, by value. */
#include <stdlib.h>
#include <string.h>

#include "daemon/journal.h"
#include "daemon/verdict.h"
#include "proto/state.h"
#include "tests/lib/checks.h"

/* Every pair of states: what is not listed is illegal. */
START_TEST(only_the_listed_moves_are_legal)
{
    static const char *const legal[] = {
        "held>queued u",      "held>cancelled u",     "held>cancelled d",    "held>failed d",
        "queued>held u",      "queued>cancelled d",   "running>stopping d",  "stopping>timed_out d",
        "queued>starting d",  "queued>cancelled u",   "queued>failed d",     "starting>queued d",
        "starting>running d", "starting>stopping u",  "starting>failed d",   "starting>lost d",
        "running>stopping u", "running>completed d",  "running>failed d",    "running>lost d",
        "stopping>lost d",    "stopping>cancelled d", "stopping>completed d"};
    size_t found = 0;
    for (int from = 0; from < STATE_COUNT; from++)
        for (int to = 0; to < STATE_COUNT; to++)
            for (int user = 0; user < 2; user++) {
                char move[64];
                bool listed = false;
                snprintf(move, sizeof move, "%s>%s %s", state_name((enum job_state)from),
                         state_name((enum job_state)to), user ? "u" : "d");
                for (size_t i = 0; i < sizeof legal / sizeof legal[0]; i++)
                    listed |= strcmp(legal[i], move) == 0;
                found += listed;
                ck_assert_msg(job_may_move((enum job_state)from, (enum job_state)to,
                                           user ? ACTOR_USER : ACTOR_DAEMON) == listed,
                              "%s", move);
            }
    ck_assert_uint_eq(found, sizeof legal / sizeof legal[0]);
}
END_TEST

START_TEST(no_move_leaves_an_ended_state)
{
    for (int from = 0; from < STATE_COUNT; from++)
        for (int to = 0; state_ended((enum job_state)from) && to < STATE_COUNT; to++)
            ck_assert(!job_may_move((enum job_state)from, (enum job_state)to, ACTOR_DAEMON) &&
                      !job_may_move((enum job_state)from, (enum job_state)to, ACTOR_USER));
}
END_TEST

START_TEST(a_move_sets_times_and_reason)
{
    struct job_record record = {.id = 7, .state = STATE_STARTING, .devices = {.n = 2}};
    struct err err = ERR_INIT;
    ck_assert_int_eq(job_move(&record, STATE_COMPLETED, ACTOR_DAEMON, 5, NULL, &err),
                     ERR_JOB_STATE);
    ck_assert_int_eq(record.state, STATE_STARTING);
    ck_assert_str_eq(err.message, "job 7 is starting and cannot become completed");
    ck_assert_int_eq(job_move(&record, STATE_RUNNING, ACTOR_DAEMON, 5, NULL, &err), 0);
    ck_assert_int_eq(record.started_ns, 5);
    ck_assert_int_eq(record.ended_ns, 0);
    ck_assert_int_eq(job_move(&record, STATE_FAILED, ACTOR_DAEMON, 9, "why", &err), 0);
    ck_assert_int_eq(record.ended_ns, 9);
    ck_assert_str_eq(record.reason, "why");
    free(record.reason);
}
END_TEST

/* ── Reports ── */

static enum journal_news enter(struct job_record *record, const char *line, int64_t next)
{
    enum journal_news news = JOURNAL_NOTHING;
    struct err err = ERR_INIT;
    ck_assert_msg(journal_enter(record, line, strlen(line), next, &news, &err) == 0, "%s",
                  err.message);
    ck_assert_int_eq(record->report_offset, next);
    return news;
}

static int64_t integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

START_TEST(reports_become_progress)
{
    struct job_record *record = calloc(1, sizeof *record);
    ck_assert_int_eq(enter(record,
                           "{\"type\":\"started\",\"devices\":2,\"steps\":100,\"epochs\":5,"
                           "\"resumed_step\":0,\"output\":\"/out\"}",
                           80),
                     JOURNAL_PROGRESS);
    ck_assert_int_eq(integer(record->progress, "steps"), 100);
    ck_assert_str_eq(record->output, "/out");
    for (int step = 1; step <= 3; step++) {
        char line[200];
        snprintf(line, sizeof line,
                 "{\"type\":\"progress\",\"step\":%d,\"epoch\":1,\"loss\":%d.5,"
                 "\"samples_per_second\":10.0,\"seconds_left\":3.0}",
                 step, 10 - step);
        ck_assert_int_eq(enter(record, line, 80 + step), JOURNAL_PROGRESS);
    }
    ck_assert_int_eq(integer(record->progress, "step"), 3);
    ck_assert_uint_eq(json_array_size(record->losses), 3);
    ck_assert_int_eq(enter(record,
                           "{\"type\":\"validation\",\"step\":3,\"epoch\":1,"
                           "\"validation_loss\":0.5,\"accuracy\":0.75}",
                           90),
                     JOURNAL_VALIDATION);
    ck_assert_double_eq(json_number_value(json_object_get(record->progress, "accuracy")), 0.75);
    ck_assert_int_eq(
        enter(record, "{\"type\":\"done\",\"step\":100,\"weights\":\"/out/w.safetensors\"}", 95),
        JOURNAL_PROGRESS);
    ck_assert_int_eq(record->outcome, OUTCOME_DONE);
    ck_assert_str_eq(record->weights, "/out/w.safetensors");
    job_record_free(record);
}
END_TEST

START_TEST(losses_are_thinned)
{
    struct job_record *record = calloc(1, sizeof *record);
    enter(record,
          "{\"type\":\"started\",\"devices\":1,\"steps\":100000,\"epochs\":1,"
          "\"resumed_step\":0,\"output\":\"/out\"}",
          1);
    for (int step = 1; step <= 100000; step += 10) {
        char line[200];
        snprintf(line, sizeof line, "{\"type\":\"progress\",\"step\":%d,\"epoch\":1,\"loss\":1.0}",
                 step);
        enter(record, line, step);
    }
    size_t n = json_array_size(record->losses);
    ck_assert_uint_ge(n, 100);
    ck_assert_uint_le(n, JOURNAL_LOSSES);
    ck_assert_int_gt(json_integer_value(json_array_get(json_array_get(record->losses, n - 1), 0)),
                     99000);
    job_record_free(record);
}
END_TEST

/* A count is as large as its user likes. */
START_TEST(the_largest_steps_are_only_steps)
{
    struct job_record *record = calloc(1, sizeof *record);
    enter(record, "{\"type\":\"started\",\"steps\":9223372036854775807}", 1);
    for (int i = 2; i < 4; i++)
        enter(record, "{\"type\":\"progress\",\"step\":9223372036854775807,\"loss\":1.0}", i);
    enter(record, "{\"type\":\"progress\",\"step\":0,\"loss\":1.0}", 4);
    ck_assert_uint_eq(json_array_size(record->losses), 1);
    job_record_free(record);
}
END_TEST

START_TEST(a_bad_report_moves_only_the_offset)
{
    struct job_record record = {.id = 1};
    enum journal_news news = JOURNAL_NOTHING;
    struct err err = ERR_INIT;
    ck_assert_int_eq(journal_enter(&record, "{\"type\":\"hello\"}", 16, 17, &news, &err),
                     ERR_PARSE);
    ck_assert_int_eq(record.report_offset, 17);
    ck_assert_ptr_null(record.progress);
    ck_assert_int_eq(news, JOURNAL_NOTHING);
}
END_TEST

/* ── Verdicts ── */

static const struct {
    const char *name;
    enum job_state state;
    enum job_outcome outcome;
    struct runner_exit ended;
    enum job_state verdict;
    int code;
    const char *message;
} verdicts[] = {
    {"done",
     STATE_RUNNING,
     OUTCOME_DONE,
     {.status = 0, .reason = RUNNER_EXITED},
     STATE_COMPLETED,
     0,
     ""},
    {"silent",
     STATE_RUNNING,
     OUTCOME_NONE,
     {.status = 0, .reason = RUNNER_EXITED},
     STATE_FAILED,
     ERR_INTERNAL,
     "the worker exited without saying that it was done"},
    {"status",
     STATE_RUNNING,
     OUTCOME_NONE,
     {.status = 3, .reason = RUNNER_EXITED},
     STATE_FAILED,
     ERR_INTERNAL,
     "the worker exited with status 3 without saying why"},
    {"done but bad status",
     STATE_RUNNING,
     OUTCOME_DONE,
     {.status = 1, .reason = RUNNER_EXITED},
     STATE_FAILED,
     ERR_INTERNAL,
     "the worker exited with status 1 without saying why"},
    {"reported",
     STATE_RUNNING,
     OUTCOME_FAILED,
     {.status = 1, .reason = RUNNER_EXITED},
     STATE_FAILED,
     ERR_LOSS_NAN,
     "the loss is NaN"},
    {"segv",
     STATE_RUNNING,
     OUTCOME_NONE,
     {-1, 11, RUNNER_SIGNALLED, "", 0, 0},
     STATE_FAILED,
     ERR_INTERNAL,
     "the worker was killed by signal 11 (SIGSEGV)"},
    {"oom",
     STATE_RUNNING,
     OUTCOME_NONE,
     {-1, 9, RUNNER_OOM, "", 0, 1},
     STATE_FAILED,
     ERR_NOMEM,
     "killed by the kernel for memory"},
    {"hung",
     STATE_RUNNING,
     OUTCOME_DONE,
     {-1, 9, RUNNER_HUNG, "", 0, 0},
     STATE_FAILED,
     ERR_INTERNAL,
     "did not exit within 10 s after its end"},
    {"exec",
     STATE_STARTING,
     OUTCOME_NONE,
     {-1, 0, RUNNER_EXEC_FAILED, "no such program", 0, 0},
     STATE_FAILED,
     ERR_IO,
     "no such program"},
    {"stopped",
     STATE_STOPPING,
     OUTCOME_FAILED,
     {1, 0, RUNNER_STOPPED, "", 0, 0},
     STATE_CANCELLED,
     ERR_CANCELLED,
     "cancelled by uid 5"},
    {"stopped too late",
     STATE_STOPPING,
     OUTCOME_DONE,
     {0, 0, RUNNER_STOPPED, "", 0, 0},
     STATE_COMPLETED,
     0,
     ""},
    {"stopped by others",
     STATE_RUNNING,
     OUTCOME_NONE,
     {-1, 15, RUNNER_STOPPED, "", 0, 0},
     STATE_FAILED,
     ERR_CANCELLED,
     "stopped by a signal that the daemon did not send"},
};

START_TEST(verdict_of)
{
    struct job_record record = {.state = verdicts[_i].state,
                                .outcome = verdicts[_i].outcome,
                                .reason = "cancelled by uid 5"};
    struct verdict verdict;
    record.exit =
        json_pack("{s:s, s:s, s:s}", "code", "loss.nan", "message", "the loss is NaN", "path", "");
    verdict_reach(&record, &verdicts[_i].ended, 10, &verdict);
    ck_assert_msg(verdict.state == verdicts[_i].verdict, "%s: %s", verdicts[_i].name,
                  state_name(verdict.state));
    ck_assert_int_eq(verdict.why.code, verdicts[_i].code);
    ck_assert_str_eq(verdict.why.message, verdicts[_i].message);
    json_t *exit = verdict_json(&verdict, &verdicts[_i].ended);
    ck_assert_uint_eq(json_object_size(exit), 6);
    ck_assert_int_eq(json_is_null(json_object_get(exit, "message")), verdict.why.code == 0);
    json_decref(exit);
    json_decref(record.exit);
}
END_TEST

START_TEST(a_stop_at_the_time_limit_is_no_cancellation)
{
    struct job_record record = {
        .state = STATE_STOPPING, .stop = STOP_TIME_LIMIT, .reason = "its time limit of 2h"};
    struct runner_exit ended = {.status = 1, .reason = RUNNER_STOPPED};
    struct verdict verdict;
    verdict_reach(&record, &ended, 10, &verdict);
    ck_assert_int_eq(verdict.state, STATE_TIMED_OUT);
    ck_assert_str_eq(verdict.why.message, "its time limit of 2h");
    record.outcome = OUTCOME_DONE; /* just in time */
    ended.status = 0;
    verdict_reach(&record, &ended, 10, &verdict);
    ck_assert_int_eq(verdict.state, STATE_COMPLETED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job");
    TCase *tcase = checks_case(suite, "moves", 0);
    tcase_add_test(tcase, only_the_listed_moves_are_legal);
    tcase_add_test(tcase, no_move_leaves_an_ended_state);
    tcase_add_test(tcase, a_move_sets_times_and_reason);
    tcase = checks_case(suite, "journal", 0);
    tcase_add_test(tcase, reports_become_progress);
    tcase_add_test(tcase, losses_are_thinned);
    tcase_add_test(tcase, the_largest_steps_are_only_steps);
    tcase_add_test(tcase, a_bad_report_moves_only_the_offset);
    tcase = checks_case(suite, "verdict", 0);
    tcase_add_test(tcase, a_stop_at_the_time_limit_is_no_cancellation);
    tcase_add_loop_test(tcase, verdict_of, 0, sizeof verdicts / sizeof verdicts[0]);
    return checks_run(suite);
}
