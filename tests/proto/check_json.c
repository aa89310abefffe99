#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"
#include "proto/limits.h"
#include "tests/lib/checks.h"

static const struct {
    const char *text, *fragment;
} broken[] = {
    {"", "line 1, column 0: "},
    {"{\n  \"a\": }", "line 2, column 8: unexpected token"},
    {"{\"a\": 1, \"a\": 2}", "duplicate object key"},
    {"[NaN]", "invalid token near 'NaN'"},
    {"[Infinity]", "invalid token near 'Infinity'"},
    {"[-Infinity]", "line 1, column 2: "},
    {"[1e999]", "real number overflow"},
    {"[9223372036854775808]", "too big integer"},
    {"[-9223372036854775809]", "too big negative integer"},
    {"[\"\xff\"]", "unable to decode byte 0xff"},
    {"[\"a\\u0000b\"]", "\\u0000 is not allowed in a string"},
    {"{\"a\\u0000b\": 1}", "NUL byte in object key"},
    {"[\"\\ud800\"]", "invalid Unicode"},
    {"[1] x", "end of file expected"},
    {"[01]", "line 1, column 2"},
    {"[\"a\nb\"]", "unexpected newline"},
    {"\"unfinished", "premature end of input"},
};

START_TEST(broken_text_has_a_place)
{
    json_t *root = NULL;
    struct err err = ERR_INIT;
    int rc = json_load(broken[_i].text, strlen(broken[_i].text), ERR_PARSE, &root, &err);
    ck_assert_int_eq(rc, ERR_PARSE);
    ck_assert_int_eq(err.code, ERR_PARSE);
    ck_assert_ptr_null(root);
    ck_assert_msg(strncmp(err.message, "line ", 5) == 0, "%s", err.message);
    ck_assert_msg(strstr(err.message, broken[_i].fragment) != NULL, "\"%s\" lacks \"%s\"",
                  err.message, broken[_i].fragment);
}
END_TEST

static int load_nested(size_t depth, const char *inside, struct err *err)
{
    char text[2 * LIMIT_DEPTH + 200];
    memset(text, '[', depth);
    strcpy(text + depth, inside);
    size_t size = strlen(text);
    memset(text + size, ']', depth);
    json_t *root = NULL;
    int rc = json_load(text, size + depth, ERR_JOB_INVALID, &root, err);
    json_decref(root);
    return rc;
}

START_TEST(depth_is_counted)
{
    struct err err = ERR_INIT;
    ck_assert_int_eq(load_nested(LIMIT_DEPTH, "", &err), 0);
    ck_assert_int_eq(load_nested(LIMIT_DEPTH, "\"[[\\\"[[\"", &err), 0);
    ck_assert_int_eq(load_nested(LIMIT_DEPTH + 1, "", &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.message, "line 1, column 65: nested more than 64 deep");
    ck_assert_int_eq(load_nested(LIMIT_DEPTH, "\n {", &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.message, "line 2, column 2: nested more than 64 deep");
}
END_TEST

START_TEST(a_million_brackets_do_not_recurse)
{
    size_t size = 1 << 20;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    memset(text, '[', size);
    json_t *root = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(json_load(text, size, ERR_PARSE, &root, &err), ERR_PARSE);
    free(text);
}
END_TEST

static const struct {
    const char *text, *line;
} lines[] = {
    {"{ \"b\": 1, \"a\": [true, false, null] }", "{\"b\":1,\"a\":[true,false,null]}"},
    {"[0.05, 0.1, 1.0, 1e-5, 1e300, -0.0, 0.3333333333333333, 3.141592653589793]",
     "[0.05,0.1,1.0,1e-05,1e+300,-0.0,0.3333333333333333,3.141592653589793]"},
    {"[9223372036854775807, -9223372036854775808]", "[9223372036854775807,-9223372036854775808]"},
    {"[\"a\\\"\\\\\\n\\t\\u0001\\u001f\\u00e9\\ud83d\\ude00/\"]",
     "[\"a\\\"\\\\\\n\\t\\u0001\\u001f\xc3\xa9\xf0\x9f\x98\x80/\"]"},
    {"[[], {}, [{}]]", "[[],{},[{}]]"},
    {"\"text\"", "\"text\""},
};

START_TEST(lines_are_exact)
{
    json_t *root, *again;
    struct err err = ERR_INIT;
    const char *text = lines[_i].text;
    ck_assert_int_eq(json_load(text, strlen(text), ERR_PARSE, &root, &err), 0);
    char *line = json_line(root);
    ck_assert_str_eq(line, lines[_i].line);
    ck_assert_int_eq(json_load(line, strlen(line), ERR_PARSE, &again, &err), 0);
    ck_assert(json_equal(root, again));
    free(line);
    json_decref(again);
    json_decref(root);
}
END_TEST

START_TEST(numbers_are_read_back_equal)
{
    double value = 1.0;
    for (int i = 0; i < 2000; i++) {
        value = fmod(value * 1.6180339887498949 + 1e-7 * i, 1e6);
        json_t *list = json_pack("[f]", value), *again;
        char *line = json_line(list);
        struct err err = ERR_INIT;
        ck_assert_int_eq(json_load(line, strlen(line), ERR_PARSE, &again, &err), 0);
        ck_assert(json_equal(list, again));
        free(line);
        json_decref(list);
        json_decref(again);
    }
}
END_TEST

START_TEST(pretty_keeps_short_lists_on_a_line)
{
    json_t *root =
        json_pack("{s:[i, i], s:[{s:s}], s:{}, s:[]}", "a", 1, 2, "b", "c", "d", "e", "f");
    char *text = json_pretty(root);
    ck_assert_str_eq(text, "{\n  \"a\": [1, 2],\n  \"b\": [\n    {\n      \"c\": \"d\"\n    }\n  "
                           "],\n  \"e\": {},\n  \"f\": []\n}\n");
    free(text);
    json_decref(root);
}
END_TEST

static const struct {
    const char *name, *nearest;
} guesses[] = {
    {"kernal_size", "kernel_size"},
    {"Stride", "stride"},
    {"pading", "padding"},
    {"stirde", "stride"},
    {"out_chanels", "out_channels"},
    {"batch", NULL},
    {"", NULL},
    {"xyzzy", NULL},
    {"P", "p"},
    {"q", NULL},
};

START_TEST(nearest_name)
{
    static const char *const known[] = {"kernel_size", "stride", "padding", "out_channels", "p"};
    const char *nearest = json_nearest(guesses[_i].name, known, 5);
    if (guesses[_i].nearest == NULL)
        ck_assert_ptr_null(nearest);
    else
        ck_assert_pstr_eq(nearest, guesses[_i].nearest);
}
END_TEST

START_TEST(nearest_of_a_huge_name)
{
    char name[5000];
    memset(name, 'k', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    static const char *const known[] = {"kernel_size"};
    ck_assert_ptr_null(json_nearest(name, known, 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proto/json");
    TCase *tcase = checks_case(suite, "load", 0);
    tcase_add_loop_test(tcase, broken_text_has_a_place, 0, sizeof broken / sizeof broken[0]);
    tcase_add_test(tcase, depth_is_counted);
    tcase_add_test(tcase, a_million_brackets_do_not_recurse);
    tcase = checks_case(suite, "write", 0);
    tcase_add_loop_test(tcase, lines_are_exact, 0, sizeof lines / sizeof lines[0]);
    tcase_add_test(tcase, numbers_are_read_back_equal);
    tcase_add_test(tcase, pretty_keeps_short_lists_on_a_line);
    tcase = checks_case(suite, "nearest", 0);
    tcase_add_loop_test(tcase, nearest_name, 0, sizeof guesses / sizeof guesses[0]);
    tcase_add_test(tcase, nearest_of_a_huge_name);
    return checks_run(suite);
}
