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

/* Neither waited for nor written into. */
START_TEST(what_is_no_file_is_not_appended_to)
{
    char path[512];
    int fd;
    struct err err = ERR_INIT;
    ck_assert_int_eq(mkfifo(place(path, "fifo"), 0600), 0);
    ck_assert_int_eq(file_append(path, &fd, &err), ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "is a FIFO, not a file"));
    ck_assert_int_eq(symlink("/dev/full", place(path, "link")), 0);
    ck_assert_int_eq(file_append(path, &fd, &err), ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "is a device, not a file"));
}
END_TEST

START_TEST(append_makes_and_keeps)
{
    char path[512];
    int fd;
    struct err err = ERR_INIT;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(file_append(place(path, "rows"), &fd, &err), 0);
        ck_assert_int_eq(file_write(fd, "row ", 4, path, &err), 0);
        close(fd);
    }
    ck_holds(path, "row row ");
}
END_TEST

START_TEST(create_removes_what_was_laid_there)
{
    char path[512], kept[512];
    int fd;
    struct err err = ERR_INIT;
    ck_assert_int_eq(file_replace(checks_scratch(), "kept", "x", 1, &err), 0);
    ck_assert_int_eq(symlink(place(kept, "kept"), place(path, "link")), 0);
    ck_assert_int_eq(file_create(path, &fd, &err), 0);
    ck_assert_int_eq(file_write(fd, "new", 3, path, &err), 0);
    close(fd);
    ck_holds(path, "new");
    ck_holds(kept, "x");
    ck_assert_int_eq(mkfifo(place(path, ".a.new"), 0600), 0);
    ck_assert_int_eq(file_replace(checks_scratch(), "a", "one", 3, &err), 0);
    ck_holds(place(path, "a"), "one");
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
    tcase_add_test(tcase, what_is_no_file_is_not_appended_to);
    tcase_add_test(tcase, append_makes_and_keeps);
    tcase_add_test(tcase, create_removes_what_was_laid_there);
    tcase_add_test(tcase, a_tree_goes_but_what_it_links_to_stays);
    tcase_add_test(tcase, a_path_that_is_too_long);
    return checks_run(suite);
}
