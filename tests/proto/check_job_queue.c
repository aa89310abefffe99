/* job: what its `queue` means. */
#include "proto/job.h"
#include "tests/lib/checks.h"
#include "tests/proto/jobs.h"

/* What is written, and how it is written back. */
START_TEST(time_limits_are_read)
{
    static const struct {
        const char *text;
        int64_t seconds;
        const char *dumped;
    } cases[] = {{"2h", 7200, "2h"},
                 {"30m", 1800, "30m"},
                 {"90s", 90, "90s"},
                 {"120m", 7200, "2h"},
                 {"1-12:00:00", 129600, "36h"},
                 {"0:00:05", 5, "5s"},
                 {"999:00:01", 3596401, "41-15:00:01"},
                 {"99999d", 8639913600, "99999d"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *root = json_loads(jobs_digits, 0, NULL);
        struct err err = ERR_INIT;
        struct job *job;
        json_object_set_new(root, "queue",
                            json_pack("{s:s, s:[i, i], s:i}", "time_limit", cases[i].text, "after",
                                      3, 4, "priority", -5));
        ck_assert_msg(job_from_json(root, &job, &err) == 0, "%s", err.message);
        ck_assert_int_eq(job->queue.time_limit_s, cases[i].seconds);
        ck_assert_int_eq(job->queue.priority, -5);
        ck_assert_uint_eq(job->queue.after.n, 2);
        ck_assert(!job->queue.hold);
        json_t *dump = job_dump(job);
        const json_t *limit = json_object_get(json_object_get(dump, "queue"), "time_limit");
        ck_assert_str_eq(json_string_value(limit), cases[i].dumped);
        json_decref(dump);
        json_decref(root);
        job_free(job);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_queue");
    TCase *tcase = checks_case(suite, "queue", 0);
    tcase_add_test(tcase, time_limits_are_read);
    return checks_run(suite);
}
