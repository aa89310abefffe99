#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/report.h"
#include "tests/lib/checks.h"

static void check_format(const struct report *report, const char *expected)
{
    char *line = report_format(report);
    ck_assert_str_eq(line, expected);
    free(line);
}

static struct report parsed(const char *line)
{
    struct report report;
    struct err err = ERR_INIT;
    ck_assert_msg(report_parse(line, strlen(line), &report, &err) == 0, "%s", err.message);
    return report;
}

START_TEST(started)
{
    struct report report = report_blank(REPORT_STARTED);
    report.steps = 100;
    report.epochs = 5;
    report.resumed_step = 40;
    strcpy(report.path, "runs/1");
    const char *line = "{\"type\":\"started\",\"steps\":100,\"epochs\":5,\"resumed_step\":40,"
                       "\"output\":\"runs/1\"}";
    check_format(&report, line);
    struct report again = parsed(line);
    ck_assert_int_eq(again.steps, 100);
    ck_assert_int_eq(again.epochs, 5);
    ck_assert_int_eq(again.resumed_step, 40);
    ck_assert_str_eq(again.path, "runs/1");
    report_done(&again);
}
END_TEST

START_TEST(progress)
{
    struct report report = report_blank(REPORT_PROGRESS);
    report.step = 3;
    report.epoch = 1;
    report.loss = 0.25;
    const char *line = "{\"type\":\"progress\",\"step\":3,\"epoch\":1,\"loss\":0.25}";
    check_format(&report, line);
    struct report again = parsed(line);
    ck_assert_int_eq((int)again.type, REPORT_PROGRESS);
    ck_assert_int_eq(again.step, 3);
    ck_assert_double_eq(again.loss, 0.25);
    ck_assert(isnan(again.seconds_left) && isnan(again.samples_per_second));
    report.loss = INFINITY;
    check_format(&report, "{\"type\":\"progress\",\"step\":3,\"epoch\":1}");
}
END_TEST

START_TEST(done_with_confusion)
{
    const char *line = "{\"type\":\"done\",\"step\":9,\"weights\":\"w\",\"validation_loss\":0.5,"
                       "\"accuracy\":0.75,\"confusion\":[[3,0],[1,4]]}";
    struct report report = parsed(line);
    ck_assert_double_eq(report.accuracy, 0.75);
    ck_assert_uint_eq(json_array_size(report.confusion), 2);
    check_format(&report, line);
    report_done(&report);
    ck_assert_ptr_null(report.confusion);
}
END_TEST

START_TEST(failed)
{
    struct report report = report_blank(REPORT_FAILED);
    err_at(&report.err, ERR_LOSS_NAN, "/loss", "the loss is NaN at step 3");
    const char *line = "{\"type\":\"failed\",\"code\":\"loss.nan\",\"message\":"
                       "\"the loss is NaN at step 3\",\"path\":\"/loss\"}";
    check_format(&report, line);
    struct report again = parsed(line);
    ck_assert_int_eq(again.err.code, ERR_LOSS_NAN);
    ck_assert_str_eq(again.err.path, "/loss");
    ck_assert_str_eq(again.err.message, "the loss is NaN at step 3");
}
END_TEST

START_TEST(unknown_fields_are_dropped)
{
    struct report report = parsed("{\"type\":\"progress\",\"step\":3,\"loss\":1,\"x\":[[{}]],"
                                  "\"confusion\":7,\"seconds_left\":null}");
    ck_assert_int_eq(report.step, 3);
    ck_assert_double_eq(report.loss, 1.0);
    ck_assert_ptr_null(report.confusion);
}
END_TEST

static const char *const hostile[] = {
    "",
    "7",
    "null",
    "[]",
    "{}",
    "not json",
    "{\"type\":3}",
    "{\"type\":\"owned\"}",
    "{\"type\":\"progress\"",
    "{\"type\":\"progress\",\"step\":-1}",
    "{\"type\":\"progress\",\"step\":1.5}",
    "{\"type\":\"progress\",\"step\":\"1\"}",
    "{\"type\":\"progress\",\"step\":99999999999999999999}",
    "{\"type\":\"progress\",\"loss\":NaN}",
    "{\"type\":\"progress\",\"loss\":1e999}",
    "{\"type\":\"progress\",\"loss\":\"low\"}",
    "{\"type\":\"progress\",\"loss\":[]}",
    "{\"type\":\"validation\",\"accuracy\":1.5}",
    "{\"type\":\"validation\",\"accuracy\":-0.5}",
    "{\"type\":\"validation\",\"accuracy\":\"1\"}",
    "{\"type\":\"checkpoint\",\"path\":3}",
    "{\"type\":\"checkpoint\",\"path\":\"a\\u0000b\"}",
    "{\"type\":\"checkpoint\",\"path\":\"\xff\"}",
    "{\"type\":\"failed\"}",
    "{\"type\":\"failed\",\"code\":3,\"message\":\"m\"}",
    "{\"type\":\"failed\",\"code\":\"io\",\"message\":{}}",
    "{\"type\":\"done\",\"confusion\":3}",
    "{\"type\":\"done\",\"confusion\":[[1]]}",
    "{\"type\":\"done\",\"confusion\":[[1,2],[3]]}",
    "{\"type\":\"done\",\"confusion\":[[1,2],3]}",
    "{\"type\":\"done\",\"confusion\":[[1,2],[3,-4]]}",
    "{\"type\":\"done\",\"confusion\":[[1,2],[3,\"4\"]]}",
    "{\"type\":\"done\",\"confusion\":[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]}",
};

START_TEST(hostile_reports_are_refused)
{
    struct report report;
    memset(&report, 0x5a, sizeof report);
    struct err err = ERR_INIT;
    ck_assert_int_eq(report_parse(hostile[_i], strlen(hostile[_i]), &report, &err), ERR_PARSE);
    ck_assert_str_ne(err.message, "");
    ck_assert_int_eq(((unsigned char *)&report)[sizeof report - 1], 0x5a); /* untouched */
}
END_TEST

/* A line of `size` bytes whose string `key` is long. */
static char *long_line(const char *type, const char *key, size_t size)
{
    char *line = malloc(size + 1);
    ck_assert_ptr_nonnull(line);
    size_t used =
        (size_t)snprintf(line, size, "{\"type\":\"%s\",\"code\":\"io\",\"%s\":\"", type, key);
    memset(line + used, '\x1f' + 1 + 'A', size - used);
    memcpy(line + size - 2, "\"}", 3);
    return line;
}

START_TEST(long_text_is_bounded)
{
    struct report report;
    struct err err = ERR_INIT;
    char *line = long_line("failed", "message", LIMIT_REPORT_BYTES);
    ck_assert_int_eq(report_parse(line, LIMIT_REPORT_BYTES, &report, &err), 0);
    ck_assert_uint_eq(strlen(report.err.message), sizeof report.err.message - 1);
    ck_assert_int_eq(report_parse(line, LIMIT_REPORT_BYTES + 1, &report, &err), ERR_PARSE);
    free(line);
    line = long_line("checkpoint", "path", LIMIT_REPORT_BYTES);
    ck_assert_int_eq(report_parse(line, LIMIT_REPORT_BYTES, &report, &err), ERR_PARSE);
    free(line);
}
END_TEST

START_TEST(messages_cannot_drive_a_terminal)
{
    struct report report = parsed("{\"type\":\"failed\",\"code\":\"io\",\"message\":\"a\\u001b[2J"
                                  "\\nb\",\"path\":\"\\u0007\"}");
    ck_assert_str_eq(report.err.message, "a?[2J?b");
    ck_assert_str_eq(report.err.path, "?");
}
END_TEST

/* Every prefix, and every byte replaced by a few: never a crash, and what passes is in bounds. */
START_TEST(mutations_do_no_harm)
{
    char line[] = "{\"type\":\"done\",\"step\":9,\"weights\":\"w\",\"validation_loss\":0.5,"
                  "\"accuracy\":0.75,\"confusion\":[[3,0],[1,4]]}";
    const char replacements[] = "\0\xff\"\\[{]}:,-9eN";
    struct report report;
    struct err err = ERR_INIT;
    int passed = 0;
    for (size_t i = 0; i < sizeof line - 1; i++) {
        ck_assert_int_eq(report_parse(line, i, &report, &err), ERR_PARSE);
        char kept = line[i];
        for (size_t k = 0; k < sizeof replacements - 1; k++) {
            line[i] = replacements[k];
            if (report_parse(line, sizeof line - 1, &report, &err) != 0)
                continue;
            passed++;
            ck_assert(report.step >= 0 && strlen(report.path) < LIMIT_PATH_BYTES);
            ck_assert(isnan(report.accuracy) || (report.accuracy >= 0 && report.accuracy <= 1));
            report_done(&report);
        }
        line[i] = kept;
    }
    ck_assert_int_gt(passed, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proto/report");
    TCase *tcase = checks_case(suite, "values", 0);
    tcase_add_test(tcase, started);
    tcase_add_test(tcase, progress);
    tcase_add_test(tcase, done_with_confusion);
    tcase_add_test(tcase, failed);
    tcase_add_test(tcase, unknown_fields_are_dropped);
    tcase = checks_case(suite, "hostile", 0);
    tcase_add_loop_test(tcase, hostile_reports_are_refused, 0, sizeof hostile / sizeof hostile[0]);
    tcase_add_test(tcase, long_text_is_bounded);
    tcase_add_test(tcase, messages_cannot_drive_a_terminal);
    tcase_add_test(tcase, mutations_do_no_harm);
    return checks_run(suite);
}
