/* Following a job on a terminal: redrawn in place, left with Ctrl-C. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "tests/client/peer.h"
#include "tests/client/run.h"
#include "tests/lib/checks.h"

#define RUNNING                                                                                    \
    "\"result\":{\"seq\":1,\"jobs\":[{\"id\":7,\"name\":\"digits\",\"state\":\"running\","         \
    "\"devices\":"                                                                                 \
    "[\"cpu:0\",\"cpu:1\"],\"progress\":{\"step\":50,\"steps\":100,\"epoch\":1,\"epochs\":2,"      \
    "\"loss\":0.5}}]}"
#define ENDED                                                                                      \
    "{\"jsonrpc\":\"2.0\",\"method\":\"job.event\",\"params\":{\"seq\":2,\"id\":7,\"type\":"       \
    "\"state\","                                                                                   \
    "\"time\":1,\"record\":{\"state\":\"completed\"}}}\n"

static struct run run;

static const struct peer_step to_the_end[] = {
    {.method = "job.watch", .reply = RUNNING, .after = ENDED},
    {.method = "job.show",
     .reply =
         "\"result\":{\"id\":7,\"state\":\"completed\",\"devices\":[\"cpu:0\"],\"losses\":[[1,2],"
         "[2,1],[3,0.5]],\"weights\":\"/w\"}"}};
static const struct peer_step silent[] = {{.method = "job.watch", .reply = RUNNING}};

START_TEST(redraws)
{
    struct peer *peer = peer_start(silent, 1);
    run_start_terminal(&run, peer_socket(peer), "watch 7", NULL);
    run_until(&run, "step 50/100");
    ck_assert_ptr_nonnull(strstr(run.text, "█"));
    ck_assert_ptr_nonnull(strstr(run.text, "\033[1mdigits\033[0m"));
    run_until(&run, "\r\033[3A\033[J"); /* the clock goes on: three lines are drawn anew */
    run_write(&run, "\x03");
    run_finish(&run);
    json_decref(peer_stop(peer));
}
END_TEST

START_TEST(ends_with_a_summary)
{
    struct peer *peer = peer_start(to_the_end, 2);
    run_start_terminal(&run, peer_socket(peer), "watch 7", NULL);
    run_finish(&run);
    ck_assert_int_eq(run.status, 0);
    ck_assert_ptr_nonnull(strstr(run.text, "job 7 \033[32mcompleted\033[0m on cpu:0\r\n"));
    ck_assert_ptr_nonnull(strstr(run.text, "loss: 2.000 at step 1, 0.5000 at step 3\r\n"));
    ck_assert_ptr_nonnull(strstr(run.text, "weights: /w\r\n"));
    json_decref(peer_stop(peer));
}
END_TEST

/* Ctrl-C leaves the job alone: nothing but the watch was ever asked of the daemon. */
START_TEST(detaches)
{
    struct peer *peer = peer_start(silent, 1);
    run_start_terminal(&run, peer_socket(peer), "watch 7", NULL);
    run_until(&run, "step 50/100");
    run_write(&run, "\x03");
    run_finish(&run);
    ck_assert_int_eq(run.status, 130);
    ck_assert_ptr_nonnull(strstr(
        run.text, "trainctl: detached: the job goes on; come back with: trainctl watch 7\r\n"));
    json_t *requests = peer_stop(peer);
    ck_assert_uint_eq(json_array_size(requests), 1);
    json_decref(requests);
}
END_TEST

START_TEST(detaches_from_a_log)
{
    static const struct peer_step steps[] = {
        {.method = "job.logs",
         .reply =
             "\"result\":{\"offset\":0,\"next\":6,\"data\":\"hello\\n\",\"encoding\":\"utf-8\","
             "\"eof\":false}"}};
    struct peer *peer = peer_start(steps, 1);
    run_start_terminal(&run, peer_socket(peer), "logs -f 7", NULL);
    run_until(&run, "hello\r\n");
    run_write(&run, "\x03");
    run_finish(&run);
    ck_assert_int_eq(run.status, 130);
    ck_assert_ptr_nonnull(strstr(run.text, "come back with: trainctl logs -f 7\r\n"));
    json_decref(peer_stop(peer));
}
END_TEST

START_TEST(narrower)
{
    static const struct winsize narrow = {.ws_row = 24, .ws_col = 30};
    struct peer *peer = peer_start(silent, 1);
    run_start_terminal(&run, peer_socket(peer), "watch 7", NULL);
    run_until(&run, "step 50/100");
    ck_assert_int_eq(ioctl(run.out, TIOCSWINSZ, &narrow), 0);
    run_until(&run, "on cpu…"); /* every line is cut, so none wraps */
    run_write(&run, "\x03");
    run_finish(&run);
    json_decref(peer_stop(peer));
}
END_TEST

START_TEST(without_colors)
{
    static const char *const environment[] = {"NO_COLOR=1", NULL};
    struct peer *peer = peer_start(to_the_end, 2);
    run_start_terminal(&run, peer_socket(peer), "watch 7", environment);
    run_finish(&run);
    ck_assert_int_eq(run.status, 0);
    ck_assert_ptr_nonnull(strstr(run.text, "job 7 completed on cpu:0\r\n"));
    ck_assert_ptr_null(strstr(run.text, "\033[32m"));
    json_decref(peer_stop(peer));
}
END_TEST

START_TEST(in_ascii)
{
    static const char *const environment[] = {"LC_ALL=C", NULL};
    struct peer *peer = peer_start(silent, 1);
    run_start_terminal(&run, peer_socket(peer), "watch 7", environment);
    run_until(&run, "step 50/100");
    run_write(&run, "\x03");
    run_finish(&run);
    ck_assert_ptr_nonnull(strstr(run.text, "[#############-------------]"));
    for (size_t i = 0; i < run.used; i++)
        ck_assert_int_ge(run.text[i], 0);
    json_decref(peer_stop(peer));
}
END_TEST

/* A terminal that cannot move its cursor gets plain lines. */
START_TEST(dumb)
{
    static const char *const environment[] = {"TERM=dumb", NULL};
    struct peer *peer = peer_start(to_the_end, 2);
    run_start_terminal(&run, peer_socket(peer), "watch 7", environment);
    run_finish(&run);
    ck_assert_ptr_nonnull(strstr(run.text, "job 7: running on cpu:0 cpu:1\r\n"));
    ck_assert_ptr_null(strstr(run.text, "\033"));
    json_decref(peer_stop(peer));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/terminal");
    TCase *tcase = checks_case(suite, "terminal", 20);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, redraws);
    tcase_add_test(tcase, ends_with_a_summary);
    tcase_add_test(tcase, detaches);
    tcase_add_test(tcase, detaches_from_a_log);
    tcase_add_test(tcase, narrower);
    tcase_add_test(tcase, without_colors);
    tcase_add_test(tcase, in_ascii);
    tcase_add_test(tcase, dumb);
    return checks_run(suite);
}
