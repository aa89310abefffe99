#include "client/args.h"

#include <string.h>

#include "client/base64.h"
#include "client/terminal.h"
#include "tests/lib/checks.h"

#define PARSE(args, err, ...)                                                                      \
    args_parse((int)(sizeof((char *[]){"trainctl", __VA_ARGS__}) / sizeof(char *)),                \
               (char *[]){"trainctl", __VA_ARGS__, NULL}, args, err)

START_TEST(words_and_options)
{
    struct args args;
    struct err err = ERR_INIT;
    ck_assert_int_eq(PARSE(&args, &err, "--json", "submit", "-w", "job.json", "--socket", "/s"), 0);
    ck_assert_str_eq(args.command, "submit");
    ck_assert_uint_eq(args.n_words, 1);
    ck_assert_str_eq(args.words[0], "job.json");
    ck_assert(args_has(&args, OPT_JSON) && args_has(&args, OPT_WATCH));
    ck_assert(!args_has(&args, OPT_FOLLOW));
    ck_assert_str_eq(args.values[OPT_SOCKET], "/s");
    args_done(&args);
}
END_TEST

START_TEST(values_dashes_and_letters)
{
    struct args args;
    struct err err = ERR_INIT;
    ck_assert_int_eq(PARSE(&args, &err, "logs", "-fw", "--timeout=2.5", "-", "--", "--json"), 0);
    ck_assert(args_has(&args, OPT_FOLLOW) && args_has(&args, OPT_WATCH));
    ck_assert(!args_has(&args, OPT_JSON));
    ck_assert_uint_eq(args.n_words, 2);
    ck_assert_str_eq(args.words[0], "-");
    ck_assert_str_eq(args.words[1], "--json");
    double seconds = 0;
    ck_assert_int_eq(args_seconds(&args, OPT_TIMEOUT, &seconds, &err), 0);
    ck_assert_double_eq(seconds, 2.5);
    ck_assert_int_eq(args_allow(&args, OPT_BIT(FOLLOW) | OPT_BIT(TIMEOUT), &err), ERR_USAGE);
    ck_assert_str_eq(err.message, "logs takes no --watch");
    args_done(&args);
}
END_TEST

START_TEST(no_words)
{
    struct args args;
    struct err err = ERR_INIT;
    ck_assert_int_eq(args_parse(1, (char *[]){"trainctl", NULL}, &args, &err), 0);
    ck_assert_ptr_null(args.command);
    args_done(&args);
}
END_TEST

static const struct {
    const char *option, *message;
} wrong[] = {
    {"--folow", "there is no option --folow: did you mean --follow?"},
    {"--xyzzyxyzzy", "there is no option --xyzzyxyzzy"},
    {"-q", "there is no option -q"},
    {"--json=yes", "--json takes no value"},
    {"--socket", "--socket needs a value: --socket PATH"},
};

START_TEST(mistakes)
{
    struct args args;
    struct err err = ERR_INIT;
    ck_assert_int_eq(PARSE(&args, &err, "list", (char *)wrong[_i].option), ERR_USAGE);
    ck_assert_str_eq(err.message, wrong[_i].message);
}
END_TEST

START_TEST(ids)
{
    struct err err = ERR_INIT;
    int64_t id = 0;
    ck_assert_int_eq(args_id("17", &id, &err), 0);
    ck_assert_int_eq(id, 17);
    static const char *const bad[] = {"", "0", "-1", "+1", " 1", "1x", "x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(args_id(bad[i], &id, &err) == ERR_USAGE, "%s", bad[i]);
}
END_TEST

START_TEST(seconds)
{
    struct err err = ERR_INIT;
    struct args args = {.command = "wait"};
    double value;
    static const char *const bad[] = {"", "x", "1s", "-1", "nan", "inf"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        args.values[OPT_TIMEOUT] = bad[i];
        ck_assert_msg(args_seconds(&args, OPT_TIMEOUT, &value, &err) == ERR_USAGE, "%s", bad[i]);
    }
}
END_TEST

START_TEST(base64)
{
    static const struct {
        const char *in, *out;
    } rows[] = {{"", ""}, {"Zg==", "f"}, {"Zm8=", "fo"}, {"Zm9v", "foo"}, {"Zm9vYmFy", "foobar"}};
    char out[16];
    size_t size;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert(base64_decode(rows[i].in, strlen(rows[i].in), out, &size));
        ck_assert_uint_eq(size, strlen(rows[i].out));
        ck_assert_mem_eq(out, rows[i].out, size);
    }
    ck_assert(base64_decode("/+8A", 4, out, &size) && memcmp(out, "\xff\xef\0", 3) == 0);
    static const char *const bad[] = {"Z", "Zg=", "Zg==Zg==", "Z===", "Z!==", "=AAA", "Zm9v\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!base64_decode(bad[i], strlen(bad[i]), out, &size), "%s", bad[i]);
}
END_TEST

START_TEST(charset)
{
    ck_assert(terminal_is_utf8(NULL, NULL, "de_DE.UTF-8"));
    ck_assert(terminal_is_utf8("", "C.utf8", "C"));
    ck_assert(!terminal_is_utf8("C", "C.UTF-8", "C.UTF-8"));
    ck_assert(!terminal_is_utf8(NULL, NULL, NULL));
    ck_assert(!terminal_is_utf8(NULL, NULL, "de_DE.ISO-8859-1"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/args");
    TCase *tcase = checks_case(suite, "args", 0);
    tcase_add_test(tcase, words_and_options);
    tcase_add_test(tcase, values_dashes_and_letters);
    tcase_add_test(tcase, no_words);
    tcase_add_loop_test(tcase, mistakes, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(tcase, ids);
    tcase_add_test(tcase, seconds);
    tcase_add_test(tcase, base64);
    tcase_add_test(tcase, charset);
    return checks_run(suite);
}
