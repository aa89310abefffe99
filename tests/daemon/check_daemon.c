/* Jobs from submission to end, over a real socket and database; the test plays the processes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/json.h"
#include "proto/rpc.h"
#include "tests/daemon/box.h"
#include "tests/lib/checks.h"

static struct box box;
static struct client client;

static void setup(void)
{
    box_start(&box, "a", 4);
    client_open(&box, &client);
}

static void teardown(void)
{
    client_close(&client);
    box_stop(&box);
    checks_scratch_remove();
}

static const struct runner_exit exited = {.status = 0, .reason = RUNNER_EXITED};
static const char started[] = "{\"type\":\"started\",\"devices\":2,\"steps\":10,\"epochs\":2,"
                              "\"resumed_step\":0,\"output\":\"/home/a/runs/1\"}";
static const char done[] = "{\"type\":\"done\",\"step\":10,\"weights\":\"/home/a/w\"}";

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "null";
}

/* "state: reason" of a job. */
static const char *state_of(int64_t id)
{
    static char buf[512];
    json_t *record = client_show(&box, &client, id);
    snprintf(buf, sizeof buf, "%s: %s", text(record, "state"), text(record, "reason"));
    json_decref(record);
    return buf;
}

static int64_t free_devices(void)
{
    json_t *info = client_result(&box, &client, "server.info", NULL);
    int64_t n = json_integer_value(json_object_get(json_object_get(info, "devices"), "free"));
    json_decref(info);
    return n;
}

static void finish(int64_t id)
{
    box_started(&box, id);
    box_report(&box, id, started);
    box_report(&box, id, done);
    box_ended(&box, id, exited);
}

START_TEST(a_job_is_run_and_completed)
{
    int64_t id = client_submit(&box, &client, 2);
    struct box_job *job = box_wait_open(&box, id);
    ck_assert_str_eq(job->argv, "run - --devices cpu:0,cpu:1 --cpu-devices 4 --output "
                                "/home/a/runs/1");
    ck_assert_str_eq(job->cwd, "/home/a");
    ck_assert(!job->drop);
    ck_assert_str_eq(state_of(id), "starting: null");
    ck_assert_int_eq(free_devices(), 2);
    box_started(&box, id);
    box_report(&box, id, started);
    box_report(&box, id,
               "{\"type\":\"progress\",\"step\":4,\"epoch\":1,\"loss\":0.25,"
               "\"samples_per_second\":100.0,\"seconds_left\":2.0}");
    json_t *record = client_show(&box, &client, id);
    const json_t *progress = json_object_get(record, "progress");
    ck_assert_str_eq(text(record, "state"), "running");
    ck_assert_int_eq(json_integer_value(json_object_get(progress, "step")), 4);
    ck_assert_double_eq(json_number_value(json_object_get(progress, "loss")), 0.25);
    ck_assert(json_is_null(json_object_get(record, "exit")));
    json_decref(record);
    box_report(&box, id, done);
    box_ended(&box, id, exited);
    record = client_show(&box, &client, id);
    ck_assert_str_eq(text(record, "state"), "completed");
    ck_assert_str_eq(text(record, "weights"), "/home/a/w");
    ck_assert_str_eq(text(json_object_get(record, "exit"), "reason"), "exited");
    ck_assert_uint_eq(json_array_size(json_object_get(record, "history")), 4);
    ck_assert_str_eq(text(json_object_get(record, "document"), "name"), "small");
    json_decref(record);
    ck_assert_int_eq(free_devices(), 4);
}
END_TEST

START_TEST(jobs_run_side_by_side_and_wait_in_order)
{
    int64_t a = client_submit(&box, &client, 2), b = client_submit(&box, &client, 1);
    int64_t c = client_submit(&box, &client, 2), d = client_submit(&box, &client, 1);
    ck_assert_ptr_nonnull(strstr(box_wait_open(&box, a)->argv, "--devices cpu:0,cpu:1 "));
    ck_assert_ptr_nonnull(strstr(box_wait_open(&box, b)->argv, "--devices cpu:2 "));
    ck_assert_str_eq(state_of(c), "queued: waiting for 1 of 2 devices");
    ck_assert_str_eq(state_of(d), "queued: behind job 3");
    finish(b);
    box_wait_open(&box, c);
    ck_assert_str_eq(state_of(d), "queued: waiting for 1 of 1 device");
    finish(a);
    box_wait_open(&box, d);
    json_t *result = client_result(&box, &client, "device.list", NULL);
    static const int holder[] = {4, 0, 3, 3}; /* 0: nobody */
    for (size_t i = 0; i < 4; i++) {
        const json_t *device = json_array_get(json_object_get(result, "devices"), i);
        ck_assert_int_eq(json_integer_value(json_object_get(device, "job")), holder[i]);
        ck_assert_str_eq(text(device, "state"), holder[i] != 0 ? "assigned" : "free");
    }
    json_decref(result);
}
END_TEST

START_TEST(a_failure_frees_the_devices_for_the_next)
{
    static const struct {
        struct runner_exit record;
        const char *state;
    } ends[] = {
        {{-1, 11, RUNNER_SIGNALLED, "", 0, 0},
         "failed: the worker was killed by signal 11 (SIGSEGV)"},
        {{-1, 9, RUNNER_OOM, "", 0, 1}, "failed: killed by the kernel for memory"},
        {{-1, 9, RUNNER_HUNG, "", 0, 0}, "failed: did not exit within 10 s after its end"},
    };
    int64_t id = client_submit(&box, &client, 4);
    for (size_t i = 0; i < 3; i++) {
        int64_t next = client_submit(&box, &client, 4);
        box_wait_open(&box, id);
        box_started(&box, id);
        box_ended(&box, id, ends[i].record);
        ck_assert_str_eq(state_of(id), ends[i].state);
        box_wait_open(&box, next);
        id = next;
    }
    box_report(&box, id,
               "{\"type\":\"failed\",\"code\":\"loss.nan\",\"message\":\"the loss is NaN"
               "\",\"path\":\"\"}");
    box_ended(&box, id, (struct runner_exit){.status = 1, .reason = RUNNER_EXITED});
    ck_assert_str_eq(state_of(id), "failed: the loss is NaN");
    json_t *record = client_show(&box, &client, id);
    ck_assert_str_eq(text(json_object_get(record, "exit"), "code"), "loss.nan");
    json_decref(record);
    ck_assert_int_eq(free_devices(), 4);
}
END_TEST

START_TEST(a_spawn_that_fails_fails_the_job)
{
    int64_t id = client_submit(&box, &client, 1);
    box_wait_open(&box, id);
    box_gone(&box, id, false, "fork: out of processes");
    ck_assert_str_eq(state_of(id), "failed: fork: out of processes");
    ck_assert_int_eq(free_devices(), 4);
}
END_TEST

static json_t *submission(int devices)
{
    return json_pack("{s:o, s:s}", "job", box_document(devices), "cwd", "/home/a");
}

static json_t *ids(int64_t a, int64_t b)
{
    return b != 0 ? json_pack("{s:[I, I]}", "ids", (json_int_t)a, (json_int_t)b)
                  : json_pack("{s:[I]}", "ids", (json_int_t)a);
}

START_TEST(cancel_while_queued_and_running)
{
    int64_t a = client_submit(&box, &client, 4), b = client_submit(&box, &client, 4);
    struct box_job *job = box_wait_open(&box, a);
    box_started(&box, a);
    json_t *result = client_result(&box, &client, "job.cancel", ids(b, 0));
    const json_t *jobs = json_object_get(result, "jobs");
    ck_assert_str_eq(text(json_array_get(jobs, 0), "state"), "cancelled");
    json_decref(result);
    ck_assert_int_eq(job->stops, 0);
    result = client_result(&box, &client, "job.cancel", ids(a, 0));
    ck_assert_str_eq(text(json_array_get(json_object_get(result, "jobs"), 0), "state"), "stopping");
    json_decref(result);
    ck_assert_int_eq(job->stops, 1);
    box_report(&box, a,
               "{\"type\":\"failed\",\"code\":\"cancelled\",\"message\":\"stopped\","
               "\"path\":\"\"}");
    box_ended(&box, a, (struct runner_exit){.status = 1, .reason = RUNNER_STOPPED});
    char want[64];
    snprintf(want, sizeof want, "cancelled: cancelled by uid %u", (unsigned)geteuid());
    ck_assert_str_eq(state_of(a), want);
    ck_assert_str_eq(state_of(b), want);
    ck_assert_int_eq(free_devices(), 4);
}
END_TEST

static void add_request(char *lines, size_t size, const char *method, json_t *params)
{
    json_t *request = rpc_request_new(0, method, params);
    char *line = json_line(request);
    size_t used = strlen(lines);
    ck_assert_uint_lt(used + strlen(line) + 1, size);
    snprintf(lines + used, size - used, "%s\n", line);
    free(line);
    json_decref(request);
    json_decref(params);
}

/* In one packet the cancellation is decided before the start is committed: requests are answered in
 * their order, and the start is asked for only when the submission is. */
START_TEST(cancel_before_the_spawn_runs_nothing_but_the_next)
{
    char lines[8192] = "";
    add_request(lines, sizeof lines, "job.submit", submission(4));
    add_request(lines, sizeof lines, "job.submit", submission(4));
    add_request(lines, sizeof lines, "job.cancel", ids(1, 0));
    client_send(&client, lines, strlen(lines));
    box_wait_open(&box, 2);
    ck_assert_uint_eq(box.n_jobs, 1); /* the first has never been the runner's */
    for (int i = 0; i < 3; i++)
        json_decref(client_read(&box, &client));
    client_wait_state(&box, &client, 1, "cancelled");
    ck_assert_int_eq(free_devices(), 0);
}
END_TEST

START_TEST(cancel_is_all_or_nothing)
{
    int64_t a = client_submit(&box, &client, 4), b = client_submit(&box, &client, 4);
    box_wait_open(&box, a);
    finish(a);
    client_wait_state(&box, &client, a, "completed");
    ck_assert_str_eq(client_error(&box, &client, "job.cancel", ids(a, b), "job.state"),
                     "nothing is cancelled: job 1 has ended (completed)");
    ck_assert_str_eq(client_error(&box, &client, "job.cancel", ids(b, 99), "not_found"),
                     "nothing is cancelled: there is no job 99");
    ck_assert_str_eq(
        client_error(&box, &client, "job.cancel",
                     json_pack("{s:[i, I, I]}", "ids", 99, (json_int_t)b, (json_int_t)a),
                     "not_found"),
        "nothing is cancelled: there is no job 99; job 1 has ended (completed)");
    ck_assert_str_eq(state_of(b), "starting: null");
}
END_TEST

START_TEST(refused_submissions)
{
    json_t *params = submission(5);
    ck_assert_ptr_nonnull(
        strstr(client_error(&box, &client, "job.submit", params, "device.unknown"), "cpu:3"));
    params = submission(1);
    json_object_set_new(params, "cwd", json_string("home"));
    client_error(&box, &client, "job.submit", params, "rpc.params");
    params = submission(1);
    json_object_set_new(json_object_get(params, "job"), "modell", json_true());
    ck_assert_ptr_nonnull(
        strstr(client_error(&box, &client, "job.submit", params, "job.invalid"), "model"));
    params = submission(1);
    json_object_set_new(
        json_object_get(params, "job"), "parallel",
        json_pack("{s:s, s:s, s:i}", "mode", "stages", "devices", "all", "replicas", 3));
    ck_assert_ptr_nonnull(strstr(client_error(&box, &client, "job.submit", params, "job.invalid"),
                                 "found 3 replicas of 4 devices"));
    params = submission(1);
    json_object_set_new(params, "wdc", json_string("/"));
    client_error(&box, &client, "job.submit", params, "rpc.params");
    json_t *result = client_result(&box, &client, "job.list", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(result, "jobs")), 0);
    json_decref(result);
}
END_TEST

START_TEST(a_key_submits_once)
{
    for (int i = 0; i < 3; i++) {
        json_t *params = submission(1);
        json_object_set_new(params, "key", json_string("k1"));
        json_t *result = client_result(&box, &client, "job.submit", params);
        ck_assert_int_eq(json_integer_value(json_object_get(result, "id")), 1);
        json_decref(result);
        box_wait_open(&box, 1);
    }
    ck_assert_int_eq(client_submit(&box, &client, 1), 2);
}
END_TEST

START_TEST(a_dry_run_leaves_nothing)
{
    json_t *params = submission(3);
    json_object_set_new(params, "dry_run", json_true());
    json_t *result = client_result(&box, &client, "job.submit", json_deep_copy(params));
    ck_assert(json_is_true(json_object_get(result, "valid")));
    ck_assert_int_eq(json_integer_value(json_object_get(result, "n_devices")), 3);
    ck_assert(json_is_null(json_object_get(result, "reason")));
    json_decref(result);
    ck_assert_int_eq(client_submit(&box, &client, 2), 1);
    result = client_result(&box, &client, "job.submit", params);
    ck_assert_str_eq(text(result, "reason"), "waiting for 1 of 3 devices");
    json_decref(result);
}
END_TEST

START_TEST(list_pages_and_filters)
{
    for (int i = 0; i < 5; i++)
        client_submit(&box, &client, 4);
    box_wait_open(&box, 1);
    json_t *page = client_result(&box, &client, "job.list", json_pack("{s:i}", "limit", 2));
    ck_assert_uint_eq(json_array_size(json_object_get(page, "jobs")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(page, "next")), 2);
    json_decref(page);
    page =
        client_result(&box, &client, "job.list", json_pack("{s:i, s:i}", "limit", 10, "cursor", 2));
    ck_assert_uint_eq(json_array_size(json_object_get(page, "jobs")), 3);
    ck_assert(json_is_null(json_object_get(page, "next")));
    json_decref(page);
    page = client_result(&box, &client, "job.list", json_pack("{s:[s]}", "states", "starting"));
    ck_assert_uint_eq(json_array_size(json_object_get(page, "jobs")), 1);
    json_decref(page);
    client_error(&box, &client, "job.list", json_pack("{s:[s]}", "states", "sleeping"),
                 "rpc.params");
}
END_TEST

START_TEST(wait_for_all_any_and_a_timeout)
{
    struct client other;
    int64_t a = client_submit(&box, &client, 2), b = client_submit(&box, &client, 2);
    client_open(&box, &other);
    static const char all[] = "{\"jsonrpc\":\"2.0\",\"id\":\"all\",\"method\":\"job.wait\","
                              "\"params\":{\"ids\":[1,2]}}\n"
                              "{\"jsonrpc\":\"2.0\",\"id\":\"any\",\"method\":\"job.wait\","
                              "\"params\":{\"ids\":[1,2],\"any\":true}}\n"
                              "{\"jsonrpc\":\"2.0\",\"id\":\"time\",\"method\":\"job.wait\","
                              "\"params\":{\"ids\":[2],\"timeout\":1.5}}\n";
    client_send(&other, all, sizeof all - 1);
    box_wait_open(&box, a);
    box_wait_open(&box, b);
    while (box.alarm_ms == 0)
        box_turn(&box, NULL);
    box_advance(&box, 1500);
    json_t *reply = client_read(&box, &other);
    ck_assert_str_eq(text(reply, "id"), "time");
    ck_assert(json_is_true(json_object_get(json_object_get(reply, "result"), "timed_out")));
    json_decref(reply);
    finish(a);
    reply = client_read(&box, &other);
    ck_assert_str_eq(text(reply, "id"), "any");
    json_decref(reply);
    finish(b);
    reply = client_read(&box, &other);
    ck_assert_str_eq(text(reply, "id"), "all");
    const json_t *jobs = json_object_get(json_object_get(reply, "result"), "jobs");
    ck_assert_str_eq(text(json_array_get(jobs, 1), "state"), "completed");
    ck_assert_int_eq(json_integer_value(json_object_get(
                         json_object_get(json_array_get(jobs, 1), "exit"), "status")),
                     0);
    json_decref(reply);
    client_close(&other);
}
END_TEST

/* ── Restarts ── */

static void restart(const char *name)
{
    client_close(&client);
    box_stop(&box);
    box_start(&box, name, 4);
    client_open(&box, &client);
}

START_TEST(a_running_job_is_taken_up_again)
{
    int64_t a = client_submit(&box, &client, 2), b = client_submit(&box, &client, 4);
    box_wait_open(&box, a);
    box_started(&box, a);
    box_report(&box, a, started);
    box_advance(&box, 2000); /* the offset is written */
    json_decref(client_show(&box, &client, a));
    box_crash_image(&box, "image");
    restart("image");
    struct box_job *job = box_wait_open(&box, a);
    ck_assert(job->adopted);
    ck_assert_int_eq(job->report_offset, (int64_t)sizeof started);
    ck_assert_str_eq(state_of(a), "running: null");
    ck_assert_str_eq(state_of(b), "queued: waiting for 2 of 4 devices");
    ck_assert_int_eq(free_devices(), 2);
    box_report(&box, a, done);
    box_ended(&box, a, exited);
    ck_assert_str_eq(state_of(a), "completed: null");
    box_wait_open(&box, b);
}
END_TEST

START_TEST(a_job_that_never_ran_is_queued_again)
{
    int64_t id = client_submit(&box, &client, 2);
    box_wait_open(&box, id);
    box_crash_image(&box, "image");
    restart("image");
    box_wait_open(&box, id);
    ck_assert_int_eq(box.job[0].spawns, 0);
    box_gone(&box, id, false, "no shim was started");
    box_wait_open(&box, id);
    ck_assert_int_eq(box.job[0].spawns, 1);
    box_gone(&box, id, false, "no processes left"); /* of this daemon's own attempt */
    ck_assert_str_eq(state_of(id), "failed: no processes left");
}
END_TEST

START_TEST(a_job_that_vanished_is_lost)
{
    int64_t id = client_submit(&box, &client, 2);
    box_wait_open(&box, id);
    box_started(&box, id);
    client_wait_state(&box, &client, id, "running");
    restart("a");
    box_wait_open(&box, id);
    box_gone(&box, id, true, "its shim was killed");
    ck_assert_str_eq(state_of(id), "lost: its shim was killed");
    ck_assert_int_eq(free_devices(), 4);
}
END_TEST

START_TEST(a_stopping_job_is_asked_again)
{
    int64_t id = client_submit(&box, &client, 2);
    box_wait_open(&box, id);
    box_started(&box, id);
    json_decref(client_result(&box, &client, "job.cancel", ids(id, 0)));
    restart("a");
    ck_assert_int_eq(box_wait_open(&box, id)->stops, 1);
    box_ended(&box, id, (struct runner_exit){.status = -1, .signal = 9, .reason = RUNNER_STOPPED});
    client_wait_state(&box, &client, id, "cancelled");
}
END_TEST

START_TEST(a_queued_job_whose_devices_are_gone_fails)
{
    int64_t a = client_submit(&box, &client, 4), b = client_submit(&box, &client, 4);
    box_wait_open(&box, a);
    client_close(&client);
    box_stop(&box);
    box_start(&box, "a", 2);
    client_open(&box, &client);
    ck_assert_str_eq(state_of(b), "failed: it wants cpu,cpu,cpu,cpu, and there is cpu:0,cpu:1 now");
}
END_TEST

START_TEST(one_daemon_a_state_directory)
{
    struct config config = box.config;
    struct runner runner = box.runner;
    struct daemon *second = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(daemon_open(&box.loop, &config, &runner, &second, &err), ERR_BUSY);
    ck_assert_ptr_nonnull(strstr(err.message, "another traind"));
    box_wait_open(&box, client_submit(&box, &client, 1)); /* the first goes on */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("daemon");
    TCase *tcase = checks_case(suite, "jobs", 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_job_is_run_and_completed);
    tcase_add_test(tcase, jobs_run_side_by_side_and_wait_in_order);
    tcase_add_test(tcase, a_failure_frees_the_devices_for_the_next);
    tcase_add_test(tcase, a_spawn_that_fails_fails_the_job);
    tcase_add_test(tcase, cancel_while_queued_and_running);
    tcase_add_test(tcase, cancel_before_the_spawn_runs_nothing_but_the_next);
    tcase_add_test(tcase, cancel_is_all_or_nothing);
    tcase_add_test(tcase, refused_submissions);
    tcase_add_test(tcase, a_key_submits_once);
    tcase_add_test(tcase, a_dry_run_leaves_nothing);
    tcase_add_test(tcase, list_pages_and_filters);
    tcase_add_test(tcase, wait_for_all_any_and_a_timeout);
    tcase = checks_case(suite, "restarts", 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_running_job_is_taken_up_again);
    tcase_add_test(tcase, a_job_that_never_ran_is_queued_again);
    tcase_add_test(tcase, a_job_that_vanished_is_lost);
    tcase_add_test(tcase, a_stopping_job_is_asked_again);
    tcase_add_test(tcase, a_queued_job_whose_devices_are_gone_fails);
    tcase_add_test(tcase, one_daemon_a_state_directory);
    return checks_run(suite);
}
