#include "client/locate.h"

#include <string.h>

#include "tests/lib/checks.h"

static const char document[] = "{\n"
                               "  \"version\": 1,\n"
                               "  \"näme\": \"é\\\"}{\", \"a/b\": {\"~\": 3},\n"
                               "  \"layers\": [\n"
                               "    {\"type\": \"Linear\"}, [1, [2, 3]], \"x]\",\n"
                               "\t{\n"
                               "      \"kernel_size\" : 9\n"
                               "    }\n"
                               "  ]\n"
                               "}\n";

static const struct {
    const char *pointer;
    size_t line, column;
} places[] = {
    {"", 1, 1},
    {"/version", 2, 3},
    {"/näme", 3, 3},
    {"/a~1b", 3, 20},
    {"/a~1b/~0", 3, 28},
    {"/layers", 4, 3},
    {"/layers/0", 5, 5},
    {"/layers/0/type", 5, 6},
    {"/layers/1/1/1", 5, 33},
    {"/layers/2", 5, 38},
    {"/layers/3", 6, 2},
    {"/layers/3/kernel_size", 7, 7},
    /* what is not there: the nearest on the way */
    {"/layers/3/stride", 6, 2},
    {"/layers/4", 4, 3},
    {"/layers/x", 4, 3},
    {"/optimizer/lr", 1, 1},
    {"/version/deep/er", 2, 3},
};

START_TEST(finds)
{
    struct position at = {0};
    ck_assert(locate_pointer(document, strlen(document), places[_i].pointer, &at));
    ck_assert_msg(at.line == places[_i].line && at.column == places[_i].column, "%s: %zu:%zu",
                  places[_i].pointer, at.line, at.column);
}
END_TEST

START_TEST(escaped_keys)
{
    static const char text[] = "{\"\\u0061\\t\\u00e9\\u20ac\": 1, \"b\": 2}";
    struct position at;
    ck_assert(locate_pointer(text, strlen(text), "/a\té€", &at));
    ck_assert_uint_eq(at.column, 2);
    ck_assert(locate_pointer(text, strlen(text), "/b", &at));
    ck_assert_uint_eq(at.column, 29);
}
END_TEST

/* Every prefix and every spoilt byte of a document: never outside the text, never without end. */
START_TEST(broken_text)
{
    char copy[sizeof document];
    for (size_t size = 0; size < strlen(document); size++) {
        struct position at;
        bool found = locate_pointer(document, size, "/layers/3/kernel_size", &at);
        ck_assert_int_eq(found, size > 0);
        for (const char *spoilt = "{}[]\",:\\"; *spoilt != '\0'; spoilt++) {
            memcpy(copy, document, sizeof document);
            copy[size] = *spoilt;
            if (locate_pointer(copy, strlen(document), "/layers/3/kernel_size", &at))
                ck_assert_uint_le(at.line, 10);
        }
    }
}
END_TEST

START_TEST(position_in_message)
{
    struct position at;
    ck_assert_str_eq(locate_in_message("line 12, column 7: '}' expected", &at), "'}' expected");
    ck_assert_uint_eq(at.line, 12);
    ck_assert_uint_eq(at.column, 7);
    ck_assert_ptr_null(locate_in_message("line 12 is wrong", &at));
    ck_assert_ptr_null(locate_in_message("a job must be an object", &at));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/locate");
    TCase *tcase = checks_case(suite, "locate", 0);
    tcase_add_loop_test(tcase, finds, 0, sizeof places / sizeof *places);
    tcase_add_test(tcase, escaped_keys);
    tcase_add_test(tcase, broken_text);
    tcase_add_test(tcase, position_in_message);
    return checks_run(suite);
}
