/* reporter: what goes to the descriptor, how often, and that closing it ends the stream. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/worker/reporter.h"
#include "tests/lib/checks.h"

enum { STEPS = 500 };

/* Opens a reporter on a pipe whose read end is returned. */
static int open_on_pipe(struct reporter *reporter)
{
    int ends[2];
    char text[16];
    struct err err = ERR_INIT;
    ck_assert_int_eq(pipe(ends), 0);
    snprintf(text, sizeof text, "%d", ends[1]);
    setenv("TRAIND_REPORT_FD", text, 1);
    ck_assert_int_eq(reporter_open(reporter, NULL, false, &err), 0);
    reporter->text = fopen("/dev/null", "w");
    ck_assert_ptr_nonnull(reporter->text);
    return ends[0];
}

static struct report report_of(enum report_type type, int64_t step)
{
    struct report report = report_blank(type);
    report.step = step;
    report.loss = 1;
    report.samples_per_second = 10;
    report.seconds_left = 3;
    snprintf(report.path, sizeof report.path, "out");
    return report;
}

START_TEST(progress_is_thinned_but_the_last_comes)
{
    struct reporter reporter;
    int fd = open_on_pipe(&reporter);
    for (int64_t step = 1; step <= STEPS; step++) {
        struct report progress = report_of(REPORT_PROGRESS, step);
        reporter_report(&reporter, &progress);
    }
    struct report last = report_of(REPORT_DONE, STEPS);
    reporter_report(&reporter, &last);
    reporter_close(&reporter);
    fclose(reporter.text);

    FILE *stream = fdopen(fd, "r"); /* ends because the reporter closed its end */
    char line[LIMIT_REPORT_BYTES];
    struct report report = {0}, before = {0};
    int lines = 0;
    for (; fgets(line, sizeof line, stream) != NULL; lines++) {
        struct err err = ERR_INIT;
        before = report;
        ck_assert_msg(report_parse(line, strlen(line), &report, &err) == 0, "%s", err.message);
        if (lines == 0)
            ck_assert_int_eq(report.step, 1);
    }
    ck_assert_int_ge(lines, 3);
    ck_assert_int_lt(lines, STEPS);
    ck_assert_int_eq(before.type, REPORT_PROGRESS);
    ck_assert_int_eq(before.step, STEPS);
    ck_assert_int_eq(report.type, REPORT_DONE);
    fclose(stream);
}
END_TEST

START_TEST(a_reader_that_goes_away_stops_nothing)
{
    struct reporter reporter;
    close(open_on_pipe(&reporter));
    struct report done = report_of(REPORT_DONE, 1);
    reporter_report(&reporter, &done);
    ck_assert_int_eq(reporter.fd, -1);
    reporter_report(&reporter, &done);
    reporter_close(&reporter);
    fclose(reporter.text);
}
END_TEST

START_TEST(a_wrong_descriptor_is_refused)
{
    static const char *const wrong[] = {"", "x", "3x", "-1", "999"};
    struct reporter reporter;
    struct err err = ERR_INIT;
    setenv("TRAIND_REPORT_FD", wrong[_i], 1);
    ck_assert_int_eq(reporter_open(&reporter, NULL, false, &err), ERR_USAGE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reporter");
    TCase *tcase = checks_case(suite, "reporter", 30);
    signal(SIGPIPE, SIG_IGN); /* as the worker does */
    tcase_add_test(tcase, progress_is_thinned_but_the_last_comes);
    tcase_add_test(tcase, a_reader_that_goes_away_stops_nothing);
    tcase_add_loop_test(tcase, a_wrong_descriptor_is_refused, 0, 5);
    return checks_run(suite);
}
