/* check_probe.c: the list of devices from a worker that answers, fails, babbles or is not there. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/daemon/runner_run.h"
#include "tests/lib/checks.h"

/* A stand-in for the worker's program file: what matters is what the runner makes of its words. */
static void use_worker(const char *script)
{
    char path[sizeof dir + 16];
    runner_run_close();
    snprintf(path, sizeof path, "%s/worker", checks_scratch());
    FILE *file = fopen(path, "w");
    fprintf(file, "#!/bin/sh\n%s\n", script);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0700), 0);
    runner_run_open(path);
}

START_TEST(test_probe)
{
    use_worker("test \"$*\" = 'probe --json --cpu-devices 3' || exit 9\n"
               "echo '{\"devices\": [{\"name\": \"cpu:0\", \"type\": \"cpu\", \"uuid\": \"CPU-0\", "
               "\"model\": \"m\", \"cores\": [0, 1], \"memory_bytes\": 5}]}'");
    runner->probe(runner, 3);
    ck_assert_int_eq(told.n_probed, 0);
    runner_run_await(&told.n_probed, 1);
    ck_assert_msg(told.inventory != NULL, "%s", told.why.message);
    ck_assert_uint_eq(told.inventory->n, 1);
    ck_assert_uint_eq(told.inventory->device[0].n_cores, 2);
    inventory_free(told.inventory);
}
END_TEST

START_TEST(test_probe_fails)
{
    static const char *const rows[][2] = {
        {"exit 3", "status 3"},
        {"kill -KILL $$", "signal 9"},
        {"echo nonsense", "list of devices"},
        {"head -c 2000000 /dev/zero 2>/dev/null", "reading its list"},
    };
    use_worker(rows[_i][0]);
    runner->probe(runner, 0);
    runner_run_await(&told.n_probed, 1);
    ck_assert_ptr_null(told.inventory);
    ck_assert_msg(strstr(told.why.message, rows[_i][1]) != NULL, "%s", told.why.message);
}
END_TEST

START_TEST(test_probe_is_missing)
{
    runner->probe(runner, 0);
    ck_assert_int_eq(told.n_probed, 0);
    runner_run_await(&told.n_probed, 1);
    ck_assert_ptr_null(told.inventory);
    ck_assert_ptr_nonnull(strstr(told.why.message, "/no/worker"));
}
END_TEST

START_TEST(test_close_during_a_probe)
{
    use_worker("exec sleep 100");
    runner->probe(runner, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("probe");
    TCase *tcase = checks_case(suite, "probe", 60);
    tcase_add_checked_fixture(tcase, runner_run_setup, runner_run_teardown);
    tcase_add_test(tcase, test_probe);
    tcase_add_loop_test(tcase, test_probe_fails, 0, 4);
    tcase_add_test(tcase, test_probe_is_missing);
    tcase_add_test(tcase, test_close_during_a_probe);
    return checks_run(suite);
}
