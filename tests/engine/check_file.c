/* check_file.c: files that appear at once, and trees that go. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "proto/limits.h"
#include "tests/lib/checks.h"

static char *place(char path[static 512], const char *name)
{
    snprintf(path, 512, "%s/%s", checks_scratch(), name);
    return path;
}

static void ck_holds(const char *path, const char *text)
{
    int fd;
    int64_t bytes;
    char got[64] = "";
    struct err err = ERR_INIT;
    ck_assert_msg(file_open(path, &fd, &bytes, &err) == 0, "%s", err.message);
    ck_assert_int_eq(read(fd, got, sizeof got - 1), (ssize_t)strlen(text));
    ck_assert_int_eq(bytes, (int64_t)strlen(text));
    ck_assert_str_eq(got, text);
    close(fd);
}

START_TEST(replace_makes_and_replaces)
{
    char path[512];
    struct err err = ERR_INIT;
    ck_assert_int_eq(file_replace(checks_scratch(), "a", "one", 3, &err), 0);
    ck_holds(place(path, "a"), "one");
    ck_assert_int_eq(file_replace(checks_scratch(), "a", "two two", 7, &err), 0);
    ck_holds(path, "two two");
    ck_assert_int_eq(access(place(path, ".a.new"), F_OK), -1);
    ck_assert_int_eq(file_replace("/nonexistent", "a", "", 0, &err), ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "/nonexistent/.a.new: No such file or directory"));
}
END_TEST

START_TEST(a_full_disk_is_an_error)
{
    struct err err = ERR_INIT;
    int fd = open("/dev/full", O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(file_write(fd, "text", 4, "/dev/full", &err), ERR_IO);
    ck_assert_str_eq(err.message, "cannot write /dev/full: No space left on device");
    close(fd);
}
END_TEST

START_TEST(a_tree_goes_but_what_it_links_to_stays)
{
    char path[512], target[512];
    struct err err = ERR_INIT;
    ck_assert_int_eq(file_replace(checks_scratch(), "kept", "x", 1, &err), 0);
    ck_assert_int_eq(mkdir(place(path, "tree"), 0700), 0);
    ck_assert_int_eq(mkdir(place(path, "tree/below"), 0700), 0);
    ck_assert_int_eq(file_replace(path, "file", "x", 1, &err), 0);
    ck_assert_int_eq(symlink(checks_scratch(), place(path, "tree/link")), 0);
    ck_assert_int_eq(file_remove_tree(place(path, "tree"), &err), 0);
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_holds(place(target, "kept"), "x");
    ck_assert_int_eq(file_remove_tree(path, &err), 0); /* nothing is there */
}
END_TEST

START_TEST(a_path_that_is_too_long)
{
    char path[LIMIT_PATH_BYTES];
    struct err err = ERR_INIT;
    ck_assert_int_eq(file_path(path, &err, "%*s", LIMIT_PATH_BYTES - 1, "x"), 0);
    ck_assert_int_eq(file_path(path, &err, "%*s", LIMIT_PATH_BYTES, "x"), ERR_IO);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file");
    TCase *tcase = checks_case(suite, "file", 0);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, replace_makes_and_replaces);
    tcase_add_test(tcase, a_full_disk_is_an_error);
    tcase_add_test(tcase, a_tree_goes_but_what_it_links_to_stays);
    tcase_add_test(tcase, a_path_that_is_too_long);
    return checks_run(suite);
}
