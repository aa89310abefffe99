/* check_shim_record.c: the records are JSON whatever bytes a job's name has, and whole or absent.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/proc.h"
#include "daemon/shim_record.h"
#include "tests/lib/checks.h"

static int dir_fd;

static void setup(void)
{
    dir_fd = open(checks_scratch(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(dir_fd, 0);
}

static json_t *load(const char *name)
{
    char path[4096];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s", checks_scratch(), name);
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "%s: %s", name, error.text);
    return root;
}

static const struct {
    const char *message, *wanted;
} messages[] = {
    {"", ""},
    {"plain", "plain"},
    {"a \"quote\", a \\ and a \ttab\n", "a \"quote\", a \\ and a \ttab\n"},
    {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\x7f", "\x7f"},
    {"\xff!", "?!"},
    {"\xc3", "?"},
    {"\xc3(", "?("},
    {"\xc0\xaf", "??"},           /* overlong */
    {"\xe0\x80\xaf", "???"},      /* overlong */
    {"\xed\xa0\x80", "???"},      /* a surrogate */
    {"\xf4\x90\x80\x80", "????"}, /* beyond U+10FFFF */
    {"\xf0\x9f\x98", "???"},      /* cut off */
};

START_TEST(test_messages)
{
    struct shim_exit record = {.status = 3, .reason = SHIM_EXITED, .ended_ns = 5, .oom_kills = 2};
    snprintf(record.message, sizeof record.message, "%s", messages[_i].message);
    ck_assert_int_eq(shim_record_exit(dir_fd, &record), 0);
    json_t *root = load("exit.json");
    ck_assert_str_eq(json_string_value(json_object_get(root, "message")), messages[_i].wanted);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "status")), 3);
    ck_assert(json_is_null(json_object_get(root, "signal")));
    ck_assert_int_eq(json_integer_value(json_object_get(root, "oom_kills")), 2);
    json_decref(root);
}
END_TEST

START_TEST(test_longest_message)
{
    struct shim_exit record = {.status = -1, .signal = 9, .reason = SHIM_SIGNALLED};
    memset(record.message, 1, sizeof record.message - 1);
    ck_assert_int_eq(shim_record_exit(dir_fd, &record), 0);
    json_t *root = load("exit.json");
    ck_assert_uint_eq(json_string_length(json_object_get(root, "message")),
                      sizeof record.message - 1);
    ck_assert(json_is_null(json_object_get(root, "status")));
    ck_assert_int_eq(json_integer_value(json_object_get(root, "signal")), 9);
    json_decref(root);
}
END_TEST

START_TEST(test_who_is_who)
{
    uint64_t ticks;
    char boot_id[PROC_BOOT_ID_BYTES];
    ck_assert_int_eq(proc_start_time(getpid(), &ticks), 0);
    ck_assert_int_eq(proc_boot_id(boot_id), 0);
    ck_assert_int_eq(shim_record_shim(dir_fd), 0);
    ck_assert_int_eq(shim_record_worker(dir_fd, getpid()), 0);
    json_t *shim = load("shim.json"), *worker = load("worker.json");
    ck_assert_int_eq(json_integer_value(json_object_get(shim, "pid")), getpid());
    ck_assert_int_eq(json_integer_value(json_object_get(shim, "start_time")), (json_int_t)ticks);
    ck_assert_str_eq(json_string_value(json_object_get(shim, "boot_id")), boot_id);
    ck_assert_int_eq(json_integer_value(json_object_get(worker, "pid")), getpid());
    ck_assert_int_eq(json_integer_value(json_object_get(worker, "start_time")), (json_int_t)ticks);
    json_decref(shim);
    json_decref(worker);
}
END_TEST

START_TEST(test_whole_or_absent)
{
    struct shim_exit record = {.status = 0, .reason = SHIM_EXITED, .message = "message"};
    struct rlimit little = {20, RLIM_INFINITY}, plenty = {RLIM_INFINITY, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &little), 0);
    ck_assert_int_eq(shim_record_exit(dir_fd, &record), EFBIG);
    ck_assert_int_ne(faccessat(dir_fd, "exit.json", F_OK, 0), 0);
    ck_assert_int_ne(faccessat(dir_fd, "exit.json.new", F_OK, 0), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &plenty), 0);
    ck_assert_int_eq(shim_record_exit(dir_fd, &record), 0);
    json_decref(load("exit.json"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shim_record");
    TCase *tcase = checks_case(suite, "shim_record", 0);
    tcase_add_checked_fixture(tcase, setup, checks_scratch_remove);
    tcase_add_loop_test(tcase, test_messages, 0, sizeof messages / sizeof *messages);
    tcase_add_test(tcase, test_longest_message);
    tcase_add_test(tcase, test_who_is_who);
    tcase_add_test(tcase, test_whole_or_absent);
    return checks_run(suite);
}
