/* What other users may see and do, over connections whose credentials the kernel keeps. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "null";
}

static int64_t integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

START_TEST(others_see_that_a_job_is_there_and_no_more)
{
    static const char *const hidden[] = {"name",    "cwd",       "output", "progress", "exit",
                                         "weights", "confusion", "losses", "document", "history"};
    static const char *const shown[] = {"id",        "user",    "state", "devices",
                                        "submitted", "started", "ended", "n_devices"};
    struct client other;
    int64_t id = client_submit(&box, &client, 1);
    box_wait_open(&box, id);
    client_open_as(&box, &other, 65534);
    json_t *record = client_show(&box, &other, id);
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        ck_assert_msg(json_object_get(record, hidden[i]) == NULL, "%s", hidden[i]);
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        ck_assert_msg(json_object_get(record, shown[i]) != NULL, "%s", shown[i]);
    json_decref(record);
    client_error(&box, &other, "job.logs", json_pack("{s:i}", "id", 1), "denied");
    client_error(&box, &other, "job.cancel", json_pack("{s:[i]}", "ids", 1), "denied");
    json_t *info = client_result(&box, &other, "server.info", NULL);
    ck_assert(json_is_false(json_object_get(info, "administrator")));
    ck_assert_int_eq(integer(info, "uid"), 65534);
    json_decref(info);
    json_decref(client_result(&box, &other, "job.watch", NULL));
    box_started(&box, id);
    box_report(&box, id, "{\"type\":\"progress\",\"step\":1,\"epoch\":1,\"loss\":0.5}");
    json_t *event = client_event(&box, &other);
    ck_assert_str_eq(text(event, "method"), "job.event");
    const json_t *changed = json_object_get(json_object_get(event, "params"), "record");
    ck_assert_str_eq(text(changed, "state"), "running");
    ck_assert_ptr_null(json_object_get(changed, "progress"));
    json_decref(event);
    client_close(&other);
}
END_TEST

START_TEST(jobs_of_root_are_off_in_the_system_daemon)
{
    struct client other;
    box.config.user_mode = false;
    json_t *params = json_pack("{s:o, s:s}", "job", box_document(1), "cwd", "/");
    ck_assert_ptr_nonnull(
        strstr(client_error(&box, &client, "job.submit", params, "denied"), "--allow-root-jobs"));
    client_open_as(&box, &other, 65534);
    int64_t id = client_submit(&box, &other, 1);
    ck_assert(box_wait_open(&box, id)->drop);
    ck_assert_uint_eq(box_wait_open(&box, id)->uid, 65534);
    client_close(&other);
}
END_TEST

/* As many running jobs of this user as it takes; they hold nothing. */
static void crowd(uid_t uid, int n)
{
    struct err err = ERR_INIT;
    struct live *live;
    for (int i = 0; i < n; i++) {
        struct job_record *record = calloc(1, sizeof *record);
        record->id = 1000 + i;
        record->uid = uid;
        record->state = STATE_RUNNING;
        ck_assert_int_eq(jobs_add(box.daemon, record, &live, &err), 0);
    }
}

START_TEST(root_finds_a_place_among_any_number_of_clients)
{
    enum { USERS = SESSION_MAX / SESSION_MAX_PER_UID };
    static struct client many[SESSION_MAX];
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    json_decref(client_result(&box, &client, "server.info", NULL));
    for (int i = 0; i < SESSION_MAX; i++)
        client_open_as(&box, &many[i], (uid_t)(60000 + i % USERS));
    ck_assert_uint_eq(box.daemon->sessions.n, SESSION_MAX - SESSION_RESERVED);
    json_t *reply = client_read(&box, &many[SESSION_MAX - 1]);
    ck_assert_str_eq(text(json_object_get(json_object_get(reply, "error"), "data"), "name"),
                     "busy");
    json_decref(reply);
    struct client root;
    client_open(&box, &root);
    json_decref(client_result(&box, &root, "server.info", NULL));
    client_close(&root);
    for (int i = 0; i < SESSION_MAX; i++)
        client_close(&many[i]);
}
END_TEST

START_TEST(one_user_leaves_room_for_the_others)
{
    struct client greedy, other;
    box.config.user_mode = false;
    crowd(65534, 5000);
    client_open_as(&box, &greedy, 65534);
    client_open_as(&box, &other, 65533);
    json_t *params = json_pack("{s:o, s:s}", "job", box_document(1), "cwd", "/");
    ck_assert_str_eq(client_error(&box, &greedy, "job.submit", params, "busy"),
                     "5000 of your jobs wait or run already");
    box_wait_open(&box, client_submit(&box, &other, 1));
    client_close(&greedy);
    client_close(&other);
}
END_TEST

static json_t *submission(const char *queue)
{
    json_t *document = box_document(1);
    json_object_set_new(document, "queue", json_loads(queue, 0, NULL));
    return json_pack("{s:o, s:s}", "job", document, "cwd", "/");
}

START_TEST(only_administrators_raise_a_priority)
{
    struct client other;
    client_open_as(&box, &other, 65534);
    json_t *reply = client_call(&box, &other, "job.submit", submission("{\"priority\": 1}"));
    const json_t *error = json_object_get(reply, "error");
    ck_assert_str_eq(text(error, "message"), "a priority above 0 is an administrator's, found 1");
    ck_assert_str_eq(text(json_object_get(error, "data"), "name"), "denied");
    ck_assert_str_eq(text(json_object_get(error, "data"), "path"), "/queue/priority");
    json_decref(reply);
    json_decref(client_result(&box, &other, "job.submit", submission("{\"priority\": -100}")));
    json_decref(client_result(&box, &client, "job.submit",
                              submission("{\"priority\": 100, \"hold\": true}")));
    client_error(&box, &other, "job.release", json_pack("{s:[i]}", "ids", 2), "denied");
    client_error(&box, &other, "job.hold", json_pack("{s:[i]}", "ids", 2), "denied");
    client_close(&other);
}
END_TEST

static void finish(int64_t id)
{
    static const char done[] = "{\"type\":\"done\",\"step\":10,\"weights\":\"/home/a/w\"}";
    box_wait_open(&box, id);
    box_started(&box, id);
    box_advance(&box, 60000);
    box_report(&box, id, done);
    box_ended(&box, id, (struct runner_exit){.status = 0, .reason = RUNNER_EXITED});
}

static const char *why(int64_t id)
{
    static char buf[128];
    json_t *record = client_show(&box, &client, id);
    snprintf(buf, sizeof buf, "%s", text(record, "reason"));
    json_decref(record);
    return buf;
}

/* Also after a restart: what was used is read from the history. */
START_TEST(who_has_had_less_goes_first)
{
    struct client other;
    finish(client_submit(&box, &client, 4));
    client_close(&client);
    box_stop(&box);
    box_start(&box, "a", 4);
    client_open(&box, &client);
    client_open_as(&box, &other, 65534);
    int64_t running = client_submit(&box, &client, 4), own = client_submit(&box, &client, 4);
    int64_t theirs = client_submit(&box, &other, 4);
    ck_assert_str_eq(why(own), "behind job 4 (fair share)");
    ck_assert_str_eq(why(theirs), "waiting for 4 of 4 devices");
    finish(running);
    finish(theirs);
    finish(own);
    client_close(&other);
}
END_TEST

START_TEST(a_user_has_a_limit_of_devices)
{
    struct client other;
    box.config.user_devices = 2;
    client_open_as(&box, &other, 65534);
    box_wait_open(&box, client_submit(&box, &client, 1));
    int64_t more = client_submit(&box, &client, 2), third = client_submit(&box, &client, 1);
    ck_assert_str_eq(why(more), "user limit: 1 of 2 devices");
    ck_assert_str_eq(why(third), "behind job 2");
    box_wait_open(&box, client_submit(&box, &other, 2));
    json_t *reply = client_call(&box, &other, "job.submit",
                                json_pack("{s:o, s:s}", "job", box_document(3), "cwd", "/"));
    const json_t *error = json_object_get(reply, "error");
    ck_assert_str_eq(text(error, "message"), "a user may hold 2 devices at once, found 3");
    json_decref(reply);
    json_t *all = box_document(1);
    json_object_set_new(json_object_get(all, "parallel"), "devices", json_string("all"));
    json_decref(
        client_result(&box, &other, "job.submit", json_pack("{s:o, s:s}", "job", all, "cwd", "/")));
    json_t *record = client_show(&box, &client, 5);
    ck_assert_int_eq(integer(record, "n_devices"), 2);
    json_decref(record);
    client_close(&other);
}
END_TEST

int main(void)
{
    static const char *const names[] = {"others_see_that_a_job_is_there_and_no_more",
                                        "jobs_of_root_are_off_in_the_system_daemon",
                                        "root_finds_a_place_among_any_number_of_clients",
                                        "one_user_leaves_room_for_the_others",
                                        "only_administrators_raise_a_priority",
                                        "who_has_had_less_goes_first",
                                        "a_user_has_a_limit_of_devices"};
    if (geteuid() != 0)
        return checks_skip(names, sizeof names / sizeof *names, "only root can play two users");
    Suite *suite = suite_create("rights");
    TCase *tcase = checks_case(suite, "rights", 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, others_see_that_a_job_is_there_and_no_more);
    tcase_add_test(tcase, jobs_of_root_are_off_in_the_system_daemon);
    tcase_add_test(tcase, root_finds_a_place_among_any_number_of_clients);
    tcase_add_test(tcase, one_user_leaves_room_for_the_others);
    tcase_add_test(tcase, only_administrators_raise_a_priority);
    tcase_add_test(tcase, who_has_had_less_goes_first);
    tcase_add_test(tcase, a_user_has_a_limit_of_devices);
    return checks_run(suite);
}
