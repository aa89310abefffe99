/* check_shim_pipes.c: what is kept of a job's words, by value: a pipe, a file and a made-up clock.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/shim.h"
#include "daemon/shim_pipes.h"
#include "tests/lib/checks.h"

#define SECOND_NS INT64_C(1000000000)

static int dir_fd, pipe_end; /* the writing end */
static struct shim_log log_;
static struct shim_reports reports;

static int open_pipe(void)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    ck_assert_int_ge(fcntl(ends[0], F_SETPIPE_SZ, 1 << 20), 1 << 20);
    pipe_end = ends[1];
    return ends[0];
}

static void setup(void)
{
    dir_fd = open(checks_scratch(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(dir_fd, 0);
}

static void open_log(void)
{
    ck_assert_int_eq(shim_log_open(&log_, dir_fd, open_pipe()), 0);
}

static void say(const void *data, size_t size)
{
    ck_assert_int_eq(write(pipe_end, data, size), (ssize_t)size);
}

static void say_text(const char *text)
{
    say(text, strlen(text));
}

static void open_reports(void)
{
    ck_assert_int_eq(shim_reports_open(&reports, dir_fd, open_pipe()), 0);
}

static void read_reports(int64_t now_ns)
{
    while (shim_reports_read(&reports, SIZE_MAX, now_ns) > 0)
        continue;
}

static char *file_text(const char *name, size_t *ret_size)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    char *text = malloc((size_t)st.st_size + 1);
    ck_assert_int_eq(read(fd, text, (size_t)st.st_size), st.st_size);
    text[st.st_size] = '\0';
    close(fd);
    if (ret_size != NULL)
        *ret_size = (size_t)st.st_size;
    return text;
}

static void expect_file(const char *name, const char *wanted)
{
    char *text = file_text(name, NULL);
    ck_assert_str_eq(text, wanted);
    free(text);
}

START_TEST(test_lines_are_whole)
{
    open_reports();
    say_text("{\"a\"");
    read_reports(0);
    expect_file("report.jsonl", "");
    say_text(": 1}\n\n\n{\"b\": 2}\n{\"c\"");
    read_reports(0);
    expect_file("report.jsonl", "{\"a\": 1}\n{\"b\": 2}\n");
    close(pipe_end);
    read_reports(0);
    ck_assert_int_eq(reports.pipe, -1);
    ck_assert(shim_reports_finish(&reports));
    ck_assert(shim_reports_finish(&reports)); /* a second time adds nothing */
    expect_file("report.jsonl", "{\"a\": 1}\n{\"b\": 2}\n{\"c\"\n");
}
END_TEST

START_TEST(test_long_lines_are_dropped)
{
    static char line[LIMIT_REPORT_BYTES + 1];
    memset(line, 'x', sizeof line);
    open_reports();
    line[LIMIT_REPORT_BYTES - 1] = '\n'; /* just fits */
    say(line, LIMIT_REPORT_BYTES);
    line[LIMIT_REPORT_BYTES - 1] = 'x'; /* one too long */
    line[LIMIT_REPORT_BYTES] = '\n';
    say(line, LIMIT_REPORT_BYTES + 1);
    say_text("{}\n");
    say(line, LIMIT_REPORT_BYTES); /* never ends */
    read_reports(0);
    ck_assert(shim_reports_finish(&reports));
    size_t size;
    char *text = file_text("report.jsonl", &size);
    ck_assert_uint_eq(size, LIMIT_REPORT_BYTES + 3);
    ck_assert_str_eq(text + LIMIT_REPORT_BYTES, "{}\n");
    free(text);
}
END_TEST

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

START_TEST(test_rate)
{
    char line[64];
    open_reports();
    for (int i = 0; i < 2 * LIMIT_REPORTS_PER_SECOND; i++) {
        snprintf(line, sizeof line, "{\"i\": %d}\n", i);
        say_text(line);
    }
    read_reports(10 * SECOND_NS);
    char *text = file_text("report.jsonl", NULL);
    ck_assert_uint_eq(count_lines(text), LIMIT_REPORTS_PER_SECOND);
    free(text);
    ck_assert_int_eq(shim_reports_due(&reports), 11 * SECOND_NS);
    shim_reports_flush(&reports, 11 * SECOND_NS - 1);
    ck_assert_int_eq(shim_reports_due(&reports), 11 * SECOND_NS);
    shim_reports_flush(&reports, 11 * SECOND_NS);
    ck_assert_int_eq(shim_reports_due(&reports), SHIM_NEVER);
    text = file_text("report.jsonl", NULL);
    snprintf(line, sizeof line, "{\"i\": %d}\n", 2 * LIMIT_REPORTS_PER_SECOND - 1);
    ck_assert_ptr_nonnull(strstr(text, line)); /* the latest was kept back, not lost */
    ck_assert_uint_eq(count_lines(text), LIMIT_REPORTS_PER_SECOND + 1);
    free(text);
}
END_TEST

START_TEST(test_last_word_beyond_the_limits)
{
    open_reports();
    ck_assert_int_eq(ftruncate(reports.file.fd, LIMIT_REPORT_FILE_BYTES), 0); /* a sparse file */
    reports.file.size = LIMIT_REPORT_FILE_BYTES;
    say_text("{\"n\": 1}\n{\"done\": true}\n");
    read_reports(0);
    ck_assert_int_eq(reports.file.size, LIMIT_REPORT_FILE_BYTES);
    ck_assert_int_eq(shim_reports_due(&reports), SHIM_NEVER);
    ck_assert(shim_reports_finish(&reports));
    char last[32] = "";
    int fd = openat(dir_fd, "report.jsonl", O_RDONLY | O_CLOEXEC);
    ck_assert_int_gt(pread(fd, last, sizeof last - 1, LIMIT_REPORT_FILE_BYTES), 0);
    ck_assert_str_eq(last, "{\"done\": true}\n");
    close(fd);
}
END_TEST

START_TEST(test_log_is_cut_once)
{
    int before = openat(dir_fd, "log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600); /* a sparse file */
    ck_assert_int_eq(ftruncate(before, LIMIT_LOG_BYTES - 5), 0);
    close(before);
    open_log();
    for (int i = 0; i < 3; i++) {
        say_text("0123456789");
        ck_assert_uint_eq(shim_log_read(&log_, SIZE_MAX), 10); /* drained, whatever is kept */
    }
    ck_assert(shim_log_finish(&log_));
    char end[256] = "";
    int fd = openat(dir_fd, "log", O_RDONLY | O_CLOEXEC);
    ck_assert_int_gt(pread(fd, end, sizeof end - 1, LIMIT_LOG_BYTES - 5), 0);
    ck_assert_str_eq(end, "01234\n[traind: the log was cut at 64 MiB; what follows was dropped]\n");
    close(fd);
}
END_TEST

START_TEST(test_read_is_bounded)
{
    open_log();
    ck_assert_uint_eq(shim_pipe_rest(log_.pipe), 1 << 20);
    say_text("0123456789");
    ck_assert_uint_eq(shim_log_read(&log_, 4), 4);
    ck_assert_uint_eq(shim_log_read(&log_, 0), 0);
    ck_assert_int_ge(log_.pipe, 0);
    expect_file("log", "0123");
    close(pipe_end);
    ck_assert_uint_eq(shim_log_read(&log_, SIZE_MAX), 6);
    ck_assert_uint_eq(shim_log_read(&log_, SIZE_MAX), 0);
    ck_assert_int_eq(log_.pipe, -1); /* the end of the file was seen, and the pipe closed */
    ck_assert_uint_eq(shim_log_read(&log_, SIZE_MAX), 0);
    ck_assert_uint_eq(shim_pipe_rest(log_.pipe), 0);
}
END_TEST

/* A file size limit stands in for a full disk: writes are cut short, then refused. */
static void set_room(rlim_t bytes)
{
    struct rlimit room = {bytes, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &room), 0);
}

START_TEST(test_no_room_for_reports)
{
    signal(SIGXFSZ, SIG_IGN);
    open_reports();
    set_room(14);
    say_text("{\"n\": 1}\n{\"n\": 2}\n{\"n\": 3}\n");
    read_reports(0);
    expect_file("report.jsonl", "{\"n\": 1}\n"); /* no half line */
    ck_assert_int_eq(shim_reports_due(&reports), SECOND_NS);
    ck_assert(!shim_reports_finish(&reports));
    set_room(RLIM_INFINITY);
    shim_reports_flush(&reports, SECOND_NS);
    expect_file("report.jsonl", "{\"n\": 1}\n{\"n\": 3}\n");
    ck_assert(shim_reports_finish(&reports));
}
END_TEST

START_TEST(test_no_room_for_the_log)
{
    signal(SIGXFSZ, SIG_IGN);
    open_log();
    set_room(5);
    say_text("0123456789");
    ck_assert_uint_eq(shim_log_read(&log_, SIZE_MAX), 10);
    say_text("abc");
    ck_assert_uint_eq(shim_log_read(&log_, SIZE_MAX), 3);
    ck_assert(!shim_log_finish(&log_));
    set_room(RLIM_INFINITY);
    say_text("after\n");
    ck_assert_uint_eq(shim_log_read(&log_, SIZE_MAX), 6);
    ck_assert(shim_log_finish(&log_));
    expect_file("log", "01234\n[traind: 8 bytes of output were lost: File too large]\nafter\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shim_pipes");
    TCase *tcase = checks_case(suite, "shim_pipes", 0);
    tcase_add_checked_fixture(tcase, setup, checks_scratch_remove);
    tcase_add_test(tcase, test_lines_are_whole);
    tcase_add_test(tcase, test_long_lines_are_dropped);
    tcase_add_test(tcase, test_rate);
    tcase_add_test(tcase, test_last_word_beyond_the_limits);
    tcase_add_test(tcase, test_log_is_cut_once);
    tcase_add_test(tcase, test_read_is_bounded);
    tcase_add_test(tcase, test_no_room_for_reports);
    tcase_add_test(tcase, test_no_room_for_the_log);
    return checks_run(suite);
}
