/* The commands that change jobs: the built trainctl through pipes against a scripted daemon. */
#include "tests/client/peer.h"
#include "tests/client/run.h"
#include "tests/lib/checks.h"

static const struct {
    const char *method, *command, *reply, *text;
} changes[] = {
    {"job.cancel", "cancel 1 2 --reason enough",
     "{\"jobs\":[{\"id\":1,\"state\":\"cancelled\"},{\"id\":2,\"state\":\"stopping\"}]}",
     "job 1: cancelled\njob 2: stopping\n"},
    {"job.hold", "hold 1 --reason enough", "{\"jobs\":[{\"id\":1,\"state\":\"held\"}]}",
     "job 1: held\n"},
    {"job.release", "release 1 --reason enough", "{\"jobs\":[{\"id\":1,\"state\":\"queued\"}]}",
     "job 1: queued\n"},
};

START_TEST(changes_are_asked_for_and_told)
{
    static struct run run;
    char reply[512];
    struct peer_step step = {.method = changes[_i].method, .reply = reply};
    snprintf(reply, sizeof reply, "\"result\":%s", changes[_i].reply);
    struct peer *peer = peer_start(&step, 1);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), changes[_i].command, NULL), 0);
    ck_assert_str_eq(run.text, changes[_i].text);
    json_t *requests = peer_stop(peer);
    const json_t *params = json_object_get(json_array_get(requests, 0), "params");
    ck_assert_str_eq(json_string_value(json_object_get(params, "reason")), "enough");
    ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(params, "ids"), 0)), 1);
    json_decref(requests);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("changes");
    TCase *tcase = checks_case(suite, "changes", 60);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_loop_test(tcase, changes_are_asked_for_and_told, 0,
                        sizeof changes / sizeof changes[0]);
    return checks_run(suite);
}
