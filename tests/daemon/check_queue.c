/* The queue's rules over a real socket and database: priority, hold, dependencies, time limits. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/daemon/box.h"
#include "tests/lib/checks.h"

static struct box box;
static struct client client;

static void setup(void)
{
    box_start(&box, "a", 2);
    client_open(&box, &client);
}

static void teardown(void)
{
    client_close(&client);
    box_stop(&box);
    checks_scratch_remove();
}

static void restart(void)
{
    client_close(&client);
    box_stop(&box);
    box_start(&box, "a", 2);
    client_open(&box, &client);
}

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

/* A submission of a job with this `queue`, as JSON. */
static json_t *submission(int devices, const char *queue)
{
    json_t *document = box_document(devices), *value = json_loads(queue, 0, NULL);
    ck_assert_ptr_nonnull(value);
    json_object_set_new(document, "queue", value);
    return json_pack("{s:o, s:s}", "job", document, "cwd", "/home/a");
}

static int64_t submit(int devices, const char *queue)
{
    json_t *result = client_result(&box, &client, "job.submit", submission(devices, queue));
    int64_t id = json_integer_value(json_object_get(result, "id"));
    json_decref(result);
    return id;
}

static json_t *ids(int64_t id)
{
    return json_pack("{s:[I]}", "ids", (json_int_t)id);
}

static void change(const char *method, int64_t id)
{
    json_decref(client_result(&box, &client, method, ids(id)));
}

static void finish(int64_t id)
{
    static const char done[] = "{\"type\":\"done\",\"step\":10,\"weights\":\"/home/a/w\"}";
    box_wait_open(&box, id);
    box_started(&box, id);
    box_report(&box, id, done);
    box_ended(&box, id, (struct runner_exit){.status = 0, .reason = RUNNER_EXITED});
}

START_TEST(the_larger_priority_goes_first)
{
    int64_t a = submit(2, "{}"), low = submit(2, "{\"priority\": -1}"), b = submit(2, "{}");
    int64_t high = submit(2, "{\"priority\": 1}"); /* the daemon's own user administers */
    ck_assert_str_eq(state_of(high), "queued: waiting for 2 of 2 devices");
    ck_assert_str_eq(state_of(b), "queued: behind job 4 (priority)");
    finish(a);
    finish(high);
    finish(b);
    finish(low);
    json_t *record = client_show(&box, &client, low);
    ck_assert_int_eq(json_integer_value(json_object_get(record, "priority")), -1);
    ck_assert(json_is_null(json_object_get(record, "time_limit")));
    json_decref(record);
}
END_TEST

START_TEST(a_held_job_waits_until_it_is_released)
{
    char held[64];
    int64_t a = submit(1, "{\"hold\": true}"), b = submit(2, "{}");
    snprintf(held, sizeof held, "held: held by uid %u", (unsigned)geteuid());
    ck_assert_str_eq(state_of(a), held);
    box_wait_open(&box, b); /* a does not stand in its way */
    restart();
    ck_assert_str_eq(state_of(a), held);
    change("job.release", a);
    ck_assert_str_eq(state_of(a), "queued: waiting for 1 of 1 device");
    change("job.hold", a);
    change("job.hold", a);
    ck_assert_str_eq(state_of(a), held);
    const char *message = client_error(&box, &client, "job.hold", ids(b), "job.state");
    ck_assert_str_eq(message, "nothing is held: job 2 is starting, and only a job that waits can "
                              "be held");
    change("job.release", a);
    finish(b);
    finish(a);
    client_wait_state(&box, &client, a, "completed");
    message = client_error(&box, &client, "job.release", ids(a), "job.state");
    ck_assert_str_eq(message, "nothing is released: job 1 has ended (completed)");
}
END_TEST

START_TEST(a_held_job_is_cancelled)
{
    int64_t a = submit(1, "{\"hold\": true}");
    change("job.cancel", a);
    client_wait_state(&box, &client, a, "cancelled");
    json_t *record = client_show(&box, &client, a);
    ck_assert_uint_eq(json_array_size(json_object_get(record, "history")), 2);
    json_decref(record);
}
END_TEST

START_TEST(a_job_runs_after_others_have_completed)
{
    int64_t a = submit(1, "{}"), b = submit(1, "{}"), c = submit(1, "{\"after\": [1, 2, 2]}");
    int64_t d = submit(1, "{}");
    ck_assert_str_eq(state_of(c), "queued: after job 1");
    finish(a);
    box_wait_open(&box, d); /* c does not stand in its way */
    ck_assert_str_eq(state_of(c), "queued: after job 2");
    restart();
    ck_assert_str_eq(state_of(c), "queued: after job 2");
    finish(b);
    finish(c);
    client_wait_state(&box, &client, c, "completed");
    finish(submit(1, "{\"after\": [1, 2, 3]}"));
    json_t *record = client_show(&box, &client, c);
    ck_assert_uint_eq(json_array_size(json_object_get(record, "after")), 3);
    json_decref(record);
}
END_TEST

START_TEST(a_failed_dependency_cancels_what_waits)
{
    int64_t a = submit(1, "{}"), b = submit(1, "{\"after\": [1]}");
    int64_t c = submit(1, "{\"after\": [2], \"hold\": true}");
    box_wait_open(&box, a);
    box_started(&box, a);
    box_ended(&box, a,
              (struct runner_exit){.status = -1, .signal = 11, .reason = RUNNER_SIGNALLED});
    client_wait_state(&box, &client, b, "cancelled");
    client_wait_state(&box, &client, c, "cancelled");
    ck_assert_str_eq(state_of(b), "cancelled: it was to run after job 1, which ended as failed");
    ck_assert_str_eq(state_of(c), "cancelled: it was to run after job 2, which ended as cancelled");
    int64_t late = submit(1, "{\"after\": [1]}");
    client_wait_state(&box, &client, late, "cancelled");
    json_t *reply = client_call(&box, &client, "job.submit", submission(1, "{\"after\": [1, 99]}"));
    const json_t *error = json_object_get(reply, "error");
    ck_assert_str_eq(text(error, "message"), "there is no job 99");
    ck_assert_str_eq(text(json_object_get(error, "data"), "path"), "/queue/after/1");
    json_decref(reply);
}
END_TEST

START_TEST(a_job_is_stopped_at_its_time_limit)
{
    int64_t a = submit(1, "{\"time_limit\": \"2h\"}"), b = submit(1, "{\"time_limit\": \"3h\"}");
    struct box_job *first = box_wait_open(&box, a), *second = box_wait_open(&box, b);
    box_started(&box, a);
    box_started(&box, b);
    box_advance(&box, 7199999);
    ck_assert_int_eq(first->stops, 0);
    box_advance(&box, 1);
    ck_assert_str_eq(state_of(a), "stopping: its time limit of 2h is reached");
    ck_assert_int_eq(first->stops, 1);
    ck_assert_int_eq(second->stops, 0);
    change("job.cancel", a); /* too late to make a difference */
    box_ended(&box, a, (struct runner_exit){.status = 1, .reason = RUNNER_STOPPED});
    client_wait_state(&box, &client, a, "timed_out");
    ck_assert_str_eq(state_of(a), "timed_out: its time limit of 2h is reached");
    box_advance(&box, 3600000);
    ck_assert_str_eq(state_of(b), "stopping: its time limit of 3h is reached");
    ck_assert_int_eq(second->stops, 1);
}
END_TEST

START_TEST(a_time_limit_holds_over_a_restart)
{
    int64_t a = submit(1, "{\"time_limit\": \"1m\"}");
    box_wait_open(&box, a);
    box_started(&box, a);
    client_wait_state(&box, &client, a, "running");
    restart();
    ck_assert_int_eq(box_wait_open(&box, a)->stops, 0);
    box_advance(&box, 61000);
    ck_assert_str_eq(state_of(a), "stopping: its time limit of 1m is reached");
    restart();
    ck_assert_int_eq(box_wait_open(&box, a)->stops, 1);
    box_ended(&box, a, (struct runner_exit){.status = -1, .signal = 9, .reason = RUNNER_STOPPED});
    client_wait_state(&box, &client, a, "timed_out");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("queue");
    TCase *tcase = checks_case(suite, "queue", 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_larger_priority_goes_first);
    tcase_add_test(tcase, a_held_job_waits_until_it_is_released);
    tcase_add_test(tcase, a_held_job_is_cancelled);
    tcase_add_test(tcase, a_job_runs_after_others_have_completed);
    tcase_add_test(tcase, a_failed_dependency_cancels_what_waits);
    tcase_add_test(tcase, a_job_is_stopped_at_its_time_limit);
    tcase_add_test(tcase, a_time_limit_holds_over_a_restart);
    return checks_run(suite);
}
