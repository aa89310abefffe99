/* err and state: tables, and text that is always printable UTF-8. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"
#include "proto/state.h"
#include "tests/lib/checks.h"

START_TEST(names_go_both_ways)
{
    for (int i = 0; i < ERR_COUNT; i++) {
        int code = -1 - i;
        ck_assert_int_eq(err_from_name(err_name(code)), code);
        ck_assert_int_lt(err_rpc_code(code), 0);
        ck_assert_int_gt(err_exit_status(code), 0);
    }
    ck_assert_str_eq(err_name(ERR_JOB_INVALID), "job.invalid");
    ck_assert_int_eq(err_rpc_code(ERR_JOB_INVALID), -32010);
    ck_assert_int_eq(err_exit_status(ERR_UNREACHABLE), 5);
}
END_TEST

START_TEST(unknown_codes_are_internal)
{
    ck_assert_str_eq(err_name(0), "internal");
    ck_assert_str_eq(err_name(-1000), "internal");
    ck_assert_int_eq(err_from_name("no.such"), ERR_INTERNAL);
}
END_TEST

START_TEST(sets_context_and_path)
{
    struct err err = ERR_INIT;
    ck_assert_int_eq(err_at(&err, ERR_JOB_INVALID, "/model", "%d is wrong", 3), ERR_JOB_INVALID);
    ck_assert_int_eq(err_context(&err, "job.json"), ERR_JOB_INVALID);
    ck_assert_str_eq(err.path, "/model");
    ck_assert_str_eq(err.message, "job.json: 3 is wrong");
    ck_assert_int_eq(err_set(&err, ERR_IO, "again: %s", err.message), ERR_IO);
    ck_assert_str_eq(err.message, "again: job.json: 3 is wrong");
    ck_assert_str_eq(err.path, "");
    ck_assert_int_eq(err_errno(&err, ENOENT, "%s", "x.gz"), ERR_IO);
    ck_assert_str_eq(err.message, "x.gz: No such file or directory");
}
END_TEST

static const struct {
    const char *in, *out;
} texts[] = {
    {"plain", "plain"},
    {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\x1b[31mred\n", "?[31mred?"},
    {"a\x7f", "a?"},
    {"c1 \xc2\x9b"
     "2J",
     "c1 ??2J"},
    {"latin \xe9t\xe9 end", "latin ?t? end"},
    {"overlong \xc0\xaf", "overlong ??"},
    {"surrogate \xed\xa0\x80.", "surrogate ???."},
    {"cut \xe2\x82", "cut ??"},
};

START_TEST(text_is_printable)
{
    struct err err;
    err_at(&err, ERR_IO, texts[_i].in, "%s", texts[_i].in);
    ck_assert_str_eq(err.message, texts[_i].out);
    ck_assert_str_eq(err.path, texts[_i].out);
}
END_TEST

START_TEST(long_text_is_cut_between_characters)
{
    char text[2000];
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof text; i += 3)
            memcpy(text + i, "\xe2\x82\xac", 4);
        struct err err;
        err_set(&err, ERR_IO, "%s", text);
        size_t length = strlen(err.message);
        ck_assert_uint_ge(length, sizeof err.message - 3);
        ck_assert_uint_eq((length - shift) % 3, 0);
        ck_assert_ptr_null(strchr(err.message, '?'));
        err_context(&err, "file");
        ck_assert_ptr_null(strchr(err.message, '?'));
        ck_assert_int_eq(strncmp(err.message, "file: ", 6), 0);
    }
}
END_TEST

START_TEST(states_go_both_ways)
{
    int ended = 0;
    for (int i = 0; i < STATE_COUNT; i++) {
        enum job_state state = (enum job_state)i;
        ck_assert_int_eq((int)state_from_name(state_name(state)), i);
        ended += state_ended(state);
    }
    ck_assert_int_eq(ended, 5);
    ck_assert(!state_ended(STATE_STOPPING));
    ck_assert_int_eq((int)state_from_name("asleep"), STATE_COUNT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proto/err");
    TCase *tcase = checks_case(suite, "err", 0);
    tcase_add_test(tcase, names_go_both_ways);
    tcase_add_test(tcase, unknown_codes_are_internal);
    tcase_add_test(tcase, sets_context_and_path);
    tcase_add_loop_test(tcase, text_is_printable, 0, sizeof texts / sizeof texts[0]);
    tcase_add_test(tcase, long_text_is_cut_between_characters);
    tcase_add_test(checks_case(suite, "state", 0), states_go_both_ways);
    return checks_run(suite);
}
