/* The queue's decisions and device sets, by value. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/sched.h"
#include "daemon/share.h"
#include "tests/lib/checks.h"

static struct devlist list(const char *text)
{
    struct devlist list;
    struct err err = ERR_INIT;
    ck_assert_msg(devlist_parse(text, &list, &err) == 0, "%s: %s", text, err.message);
    return list;
}

static const char *text(const struct devlist *list)
{
    static char buf[LIMIT_DEVICES * 32];
    return devlist_format(list, buf, sizeof buf);
}

START_TEST(list_is_read_and_written)
{
    struct devlist l = list("cpu:0,cuda:12,cpu");
    ck_assert_uint_eq(l.n, 3);
    ck_assert_str_eq(text(&l), "cpu:0,cuda:12,cpu");
    l = list("");
    ck_assert_uint_eq(l.n, 0);
    struct err err = ERR_INIT;
    ck_assert_int_eq(devlist_parse("cpu:0,,cpu:1", &l, &err), ERR_DEVICE_UNKNOWN);
    ck_assert_int_eq(devlist_parse("gpu:0", &l, &err), ERR_DEVICE_UNKNOWN);
}
END_TEST

START_TEST(pick_keeps_the_order_and_spares_named_devices)
{
    static const struct {
        const char *want;
        devset free;
        const char *got; /* NULL: does not fit */
        size_t available;
    } cases[] = {
        {"cpu,cpu", 0xf, "cpu:0,cpu:1", 2},
        {"cpu,cpu:0", 0xf, "cpu:1,cpu:0", 2},
        {"cpu:3,cpu:1", 0xf, "cpu:3,cpu:1", 2},
        {"cpu,cpu", 0xa, "cpu:1,cpu:3", 2},
        {"cpu,cpu,cpu", 0xa, NULL, 2},
        {"cpu:0,cpu:1", 0xa, NULL, 1},
        {"cuda", 0xf, NULL, 0},
        {"cuda,cuda:0", 0x30, "cuda:1,cuda:0", 2},
    };
    struct devlist devices = list("cpu:0,cpu:1,cpu:2,cpu:3,cuda:0,cuda:1");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct devlist want = list(cases[i].want), got;
        bool fits = devset_pick(&devices, &want, cases[i].free, &got);
        ck_assert_msg(fits == (cases[i].got != NULL), "%s", cases[i].want);
        if (fits)
            ck_assert_str_eq(text(&got), cases[i].got);
        ck_assert_uint_eq(devset_available(&devices, &want, cases[i].free), cases[i].available);
    }
}
END_TEST

START_TEST(want_of_a_document)
{
    struct devlist devices = list("cpu:0,cpu:1,cpu:2"), want;
    struct err err = ERR_INIT;
    struct job_parallel count = {.mode = PARALLEL_REPLICATE, .n_devices = 2};
    ck_assert_int_eq(devlist_want(&count, &devices, &want, &err), 0);
    ck_assert_str_eq(text(&want), "cpu,cpu");
    struct job_parallel all = {.mode = PARALLEL_REPLICATE, .n_devices = 0};
    ck_assert_int_eq(devlist_want(&all, &devices, &want, &err), 0);
    ck_assert_str_eq(text(&want), "cpu,cpu,cpu");
    char *names[] = {"cpu:2", "cpu"};
    struct job_parallel named = {.mode = PARALLEL_REPLICATE, .n_devices = 2, .devices = names};
    ck_assert_int_eq(devlist_want(&named, &devices, &want, &err), 0);
    ck_assert_str_eq(text(&want), "cpu:2,cpu");
    count.n_devices = 4;
    ck_assert_int_eq(devlist_want(&count, &devices, &want, &err), ERR_DEVICE_UNKNOWN);
    ck_assert_msg(strstr(err.message, "cpu:0 to cpu:2") != NULL, "%s", err.message);
}
END_TEST

START_TEST(sixty_four_devices_are_one_word)
{
    struct devlist devices = {.n = LIMIT_DEVICES};
    for (int i = 0; i < LIMIT_DEVICES; i++)
        devices.id[i] = (struct device_id){DEVICE_CPU, i};
    ck_assert(devset_all(&devices) == ~(devset)0);
    ck_assert_uint_eq(devset_count(devset_of(&devices, &devices)), LIMIT_DEVICES);
}
END_TEST

/* ── The queue, by value ── */

enum { ROWS = 6 };

/* A job of the queue and what is decided on it: "=" and devices, or the reason. */
struct row {
    size_t user;
    int64_t priority, after;
    const char *want;
    double limit_s; /* 0: none */
    const char *answer;
};

/* Decides on `rows` (ids from 1), with 4 devices; `held`: devices 0, 1, … and when they are free.
 */
static struct sched_head decide(struct sched_box box, struct sched_user *users,
                                const struct row *rows, size_t n)
{
    struct devlist devices = list("cpu:0,cpu:1,cpu:2,cpu:3");
    struct sched_job queue[ROWS];
    struct sched_head head;
    struct err err = ERR_INIT;
    box.devices = &devices;
    box.now_s = 100;
    box.free = 0xf & ~box.drained;
    for (size_t i = 0; i < box.n_runs; i++)
        box.free &= ~box.runs[i].devices;
    for (size_t i = 0; i < n; i++) {
        struct devlist want = list(rows[i].want);
        queue[i] = (struct sched_job){.id = (int64_t)i + 1,
                                      .user = rows[i].user,
                                      .priority = rows[i].priority,
                                      .after = rows[i].after,
                                      .wish = devwish_of(&devices, &want),
                                      .limit_s = rows[i].limit_s > 0 ? rows[i].limit_s : INFINITY};
    }
    ck_assert_int_eq(sched_decide(&box, users, 2, queue, n, &head, &err), 0);
    for (size_t i = 0; i < n; i++) {
        char buf[64];
        if (queue[i].start)
            snprintf(buf, sizeof buf, "= %llx", (unsigned long long)queue[i].got);
        else
            sched_reason(&queue[i].why, buf);
        ck_assert_msg(strcmp(buf, rows[i].answer) == 0, "job %zu: %s, not %s", i + 1, buf,
                      rows[i].answer);
    }
    return head;
}

START_TEST(first_come_first_served)
{
    struct sched_user users[2] = {0};
    static const struct row rows[] = {{0, 0, 0, "cpu,cpu", 0, "= 3"},
                                      {0, 0, 0, "cpu,cpu,cpu,cpu", 0, "waiting for 2 of 4 devices"},
                                      {0, 0, 0, "cpu", 0, "behind job 2"},
                                      {0, 0, 0, "cpu", 0, "behind job 2"}};
    struct sched_head head = decide((struct sched_box){0}, users, rows, 4);
    ck_assert_int_eq(head.id, 2);
    ck_assert(isinf(head.start_s));
    ck_assert_uint_eq(users[0].devices, 2);
}
END_TEST

START_TEST(priority_and_dependencies)
{
    struct sched_user users[2] = {0};
    static const struct row rows[] = {{0, -1, 0, "cpu,cpu", 0, "behind job 2 (priority)"},
                                      {0, 0, 0, "cpu,cpu,cpu,cpu", 0, "waiting for 1 of 4 devices"},
                                      {0, 5, 2, "cpu", 0, "after job 2"},
                                      {0, 1, 0, "cpu", 0, "= 1"}};
    decide((struct sched_box){0}, users, rows, 4);
}
END_TEST

START_TEST(who_has_had_less_goes_first)
{
    struct sched_user users[2] = {{.uid = 1, .usage = 10}, {.uid = 2, .usage = 5}};
    static const struct row rows[] = {{0, 0, 0, "cpu,cpu,cpu", 0, "behind job 2 (fair share)"},
                                      {1, 0, 0, "cpu,cpu,cpu,cpu", 0, "waiting for 1 of 4 devices"},
                                      {0, 1, 0, "cpu", 0, "= 1"}};
    decide((struct sched_box){0}, users, rows, 3);
    /* Of the same: who holds fewer, also of what starts in this pass. */
    struct sched_user equal[2] = {0};
    static const struct row turns[] = {{0, 0, 0, "cpu", 0, "= 1"},
                                       {0, 0, 0, "cpu", 0, "= 4"},
                                       {0, 0, 0, "cpu", 0, "waiting for 1 of 1 device"},
                                       {1, 0, 0, "cpu", 0, "= 2"},
                                       {1, 0, 0, "cpu", 0, "= 8"}};
    decide((struct sched_box){0}, equal, turns, 5);
}
END_TEST

START_TEST(a_limit_of_devices_keeps_only_its_user_waiting)
{
    struct sched_user users[2] = {{.uid = 1, .devices = 1}, {.uid = 2}};
    static const struct sched_run runs[] = {{0x1, INFINITY}};
    static const struct row rows[] = {{0, 0, 0, "cpu,cpu", 0, "user limit: 1 of 2 devices"},
                                      {0, 0, 0, "cpu", 0, "behind job 1"},
                                      {1, 0, 0, "cpu,cpu", 0, "= 6"}};
    struct sched_box box = {.runs = runs, .n_runs = 1, .user_devices = 2};
    ck_assert_int_eq(decide(box, users, rows, 3).id, 0);
}
END_TEST

START_TEST(drained_devices_are_nobodys)
{
    struct sched_user users[2] = {0};
    static const struct row rows[] = {{0, 0, 0, "cpu,cpu,cpu", 0, "1 of 3 devices drained"},
                                      {0, 0, 0, "cpu:1", 0, "1 of 1 device drained"},
                                      {1, 0, 0, "cpu,cpu", 0, "= c"}};
    struct sched_box box = {.drained = 0x3};
    decide(box, users, rows, 3);
}
END_TEST

/* Devices 0 and 1 are free at 200, 2 at 150, 3 now: three can be had at 200 and four then. */
START_TEST(what_is_behind_the_head_never_delays_it)
{
    static const struct sched_run runs[] = {{0x3, 200}, {0x4, 150}};
    static const struct row rows[] = {
        {0, 0, 0, "cpu,cpu,cpu,cpu", 50, "waiting for 3 of 4 devices"},
        {0, 0, 0, "cpu", 0, "behind job 1"},
        {0, 0, 0, "cpu", 101, "behind job 1"},
        {0, 0, 0, "cpu", 100, "= 8"},
        {0, 0, 0, "cpu", 1, "behind job 1"}};
    struct sched_user users[2] = {0};
    struct sched_box box = {.runs = runs, .n_runs = 2};
    struct sched_head head = decide(box, users, rows, 5);
    ck_assert_double_eq(head.start_s, 200);
    /* One of those that are free by then is left over: it is anybody's, for any time. */
    static const struct row beside[] = {{0, 0, 0, "cpu,cpu,cpu", 50, "waiting for 2 of 3 devices"},
                                        {0, 0, 0, "cpu", 0, "= 8"}};
    ck_assert_double_eq(decide(box, users, beside, 2).start_s, 200);
    static const struct row named[] = {{0, 0, 0, "cpu:2,cpu:3", 50, "waiting for 1 of 2 devices"},
                                       {0, 0, 0, "cpu", 0, "behind job 1"},
                                       {0, 0, 0, "cpu", 50, "= 8"}};
    ck_assert_double_eq(decide(box, users, named, 3).start_s, 150);
}
END_TEST

/* Device 0 may be held for ever: what the head could use waits with it, other devices do not. */
START_TEST(without_a_time_limit_only_what_is_beside_starts)
{
    static const struct sched_run runs[] = {{0x1, INFINITY}};
    static const struct row rows[] = {{0, 0, 0, "cpu,cpu,cpu,cpu", 0, "waiting for 1 of 4 devices"},
                                      {0, 0, 0, "cpu", 1, "behind job 1"}};
    static const struct row named[] = {{0, 0, 0, "cpu:0,cpu:1", 0, "waiting for 1 of 2 devices"},
                                       {0, 0, 0, "cpu", 0, "= 4"},
                                       {0, 0, 0, "cpu:1", 1, "behind job 1"}};
    struct sched_user users[2] = {0};
    struct sched_box box = {.runs = runs, .n_runs = 1};
    ck_assert(isinf(decide(box, users, rows, 2).start_s));
    decide(box, users, named, 3);
}
END_TEST

START_TEST(use_decays)
{
    ck_assert_double_eq_tol(share_decay(8, 100, 100), 4, 1e-12);
    ck_assert_double_eq_tol(share_decay(8, -5, 100), 8, 1e-12);
    ck_assert_double_eq_tol(share_run(2, 1, 1e9), 2, 1e-6);
    /* To have run and then to have waited is the same in one step or two. */
    double once = share_run(3, 70, 50);
    double twice = share_decay(share_run(3, 30, 50), 40, 50) + share_run(3, 40, 50);
    ck_assert_double_eq_tol(once, twice, 1e-9);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched");
    TCase *tcase = checks_case(suite, "devset", 0);
    tcase_add_test(tcase, list_is_read_and_written);
    tcase_add_test(tcase, pick_keeps_the_order_and_spares_named_devices);
    tcase_add_test(tcase, want_of_a_document);
    tcase_add_test(tcase, sixty_four_devices_are_one_word);
    tcase = checks_case(suite, "sched", 0);
    tcase_add_test(tcase, first_come_first_served);
    tcase_add_test(tcase, priority_and_dependencies);
    tcase_add_test(tcase, who_has_had_less_goes_first);
    tcase_add_test(tcase, a_limit_of_devices_keeps_only_its_user_waiting);
    tcase_add_test(tcase, drained_devices_are_nobodys);
    tcase_add_test(tcase, what_is_behind_the_head_never_delays_it);
    tcase_add_test(tcase, without_a_time_limit_only_what_is_beside_starts);
    tcase_add_test(tcase, use_decays);
    return checks_run(suite);
}
