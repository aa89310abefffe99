/* check_tail.c: whole lines only, from an offset on, whatever the writer does at the end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/tail.h"
#include "tests/lib/checks.h"

static char path[4096];
static struct tail tail;
static struct tail_buffer buffer;

static void setup(void)
{
    snprintf(path, sizeof path, "%s/report.jsonl", checks_scratch());
    tail_init(&tail, 0);
}

static void teardown(void)
{
    tail_done(&tail);
    checks_scratch_remove();
}

static void add(const char *text, size_t size)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
    close(fd);
}

/* All lines that there are, each followed by '|'. */
static void expect(const char *wanted)
{
    static char got[4096];
    size_t used = 0, size;
    const char *line;
    got[0] = '\0';
    while (tail_fill(&tail, path, &buffer)) {
        while (tail_next(&tail, &buffer, &line, &size)) {
            ck_assert_uint_lt(used + size + 2, sizeof got);
            used += (size_t)snprintf(got + used, sizeof got - used, "%.*s|", (int)size, line);
        }
    }
    ck_assert_str_eq(got, wanted);
}

START_TEST(test_a_file_for_which_there_is_no_descriptor)
{
    struct rlimit before, none;
    expect("");
    ck_assert(!tail.is_short); /* it is not there, and that is all */
    add("one\n", 4);
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    expect("");
    ck_assert(tail.is_short);
    setrlimit(RLIMIT_NOFILE, &before);
    expect("one|");
    ck_assert(!tail.is_short);
}
END_TEST

START_TEST(test_lines)
{
    expect(""); /* there is no file yet */
    add("", 0);
    expect("");
    add("one\ntwo\nthr", 11);
    expect("one|two|");
    ck_assert_int_eq(tail.offset, 8);
    expect("");
    add("ee\n\nfour\n", 9);
    expect("three||four|");
    ck_assert_int_eq(tail.offset, 20);
}
END_TEST

START_TEST(test_from_an_offset)
{
    add("one\ntwo\nthree\n", 14);
    tail.offset = 4;
    expect("two|three|");
    tail.offset = 14;
    expect("");
    tail.offset = 100; /* beyond the end: nothing, and nothing breaks */
    expect("");
}
END_TEST

START_TEST(test_a_line_is_taken_back)
{
    add("one\nhalf of a li", 16);
    expect("one|");
    ck_assert_int_eq(truncate(path, 4), 0);
    add("two\n", 4);
    expect("two|");
}
END_TEST

START_TEST(test_long_lines_are_passed_over)
{
    static char line[2 * LIMIT_REPORT_BYTES];
    memset(line, 'x', sizeof line);
    static const size_t sizes[] = {LIMIT_REPORT_BYTES, LIMIT_REPORT_BYTES + 1, sizeof line};
    add("a\n", 2);
    add(line, sizes[_i]);
    add("\nb\n", 3);
    expect("a|b|");
    ck_assert_int_eq(tail.offset, (int64_t)sizes[_i] + 5);
}
END_TEST

START_TEST(test_longest_line)
{
    static char line[LIMIT_REPORT_BYTES];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    add("a\n", 2);
    add(line, sizeof line);
    const char *got;
    size_t size;
    ck_assert(tail_fill(&tail, path, &buffer));
    ck_assert(tail_next(&tail, &buffer, &got, &size));
    ck_assert(!tail_next(&tail, &buffer, &got, &size));
    ck_assert(tail_fill(&tail, path, &buffer));
    ck_assert(tail_next(&tail, &buffer, &got, &size));
    ck_assert_uint_eq(size, sizeof line - 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tail");
    TCase *tcase = checks_case(suite, "tail", 0);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_lines);
    tcase_add_test(tcase, test_a_file_for_which_there_is_no_descriptor);
    tcase_add_test(tcase, test_from_an_offset);
    tcase_add_test(tcase, test_a_line_is_taken_back);
    tcase_add_loop_test(tcase, test_long_lines_are_passed_over, 0, 3);
    tcase_add_test(tcase, test_longest_line);
    return checks_run(suite);
}
