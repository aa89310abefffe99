/* check_csv.c: tables as people and programs write them, what is refused with its line and column,
 * and what a model gets of one. */
#include <math.h>
#include <string.h>

#include "engine/data/csv.h"
#include "tests/engine/data_test.h"
#include "tests/engine/idx_files.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

static const char *text_file(const char *text)
{
    return idx_file("t.csv", text, strlen(text));
}

/* Each is the table 1 2 / 3 4. */
static const struct {
    const char *text;
    enum job_tristate header;
    bool names;
} good[] = {
    {"1,2\n3,4\n", JOB_AUTO, false},
    {"1,2\n3,4", JOB_AUTO, false},
    {"1,2\r\n3,4\r\n", JOB_AUTO, false},
    {"1,2\n3,4\n\n\r\n\n", JOB_AUTO, false},
    {"a,b\n1,2\n3,4\n", JOB_AUTO, true},
    {"a,b\n1,2\n3,4\n", JOB_TRUE, true},
    {"9,8\n1,2\n3,4\n", JOB_TRUE, true},
    {"1,2\n3,4\n", JOB_FALSE, false},
    {"\"1\",\"2\"\n\"3\",4\n", JOB_AUTO, false},
    {"\"a, b\",\"c \"\"d\"\"\n e\"\r\n1,2\r\n3,4\r\n", JOB_AUTO, true},
    {" 1 ,\t2\n3.0,+4e0\n", JOB_AUTO, false},
    {"\xef\xbb\xbf"
     "1,2\n3,.4e1\n",
     JOB_AUTO, false},
};

static void ck_table(const struct csv *csv, bool names)
{
    static const float values[] = {1, 2, 3, 4};
    ck_assert_int_eq(csv->rows, 2);
    ck_assert_int_eq(csv->columns, 2);
    ck_assert_mem_eq(csv->values, values, sizeof values);
    ck_assert_int_eq(csv->names != NULL, names);
}

START_TEST(tables_are_read)
{
    for (int gz = 0; gz <= 1; gz++) {
        struct err err = ERR_INIT;
        struct csv csv;
        const char *text = good[_i].text;
        const char *path = gz ? idx_file_gz("t.csv.gz", text, strlen(text)) : text_file(text);
        ck_assert_msg(csv_read(path, good[_i].header, &csv, &err) == 0, "%s", err.message);
        ck_table(&csv, good[_i].names);
        csv_done(&csv);
    }
}
END_TEST

START_TEST(columns_are_found_by_name)
{
    struct err err = ERR_INIT;
    struct csv csv;
    const char *path = text_file("\"a, b\",\"c \"\"d\"\"\",x,x\n1,2,3,4\n");
    ck_assert_msg(csv_read(path, JOB_AUTO, &csv, &err) == 0, "%s", err.message);
    ck_assert_int_eq(csv_find(&csv, "a, b"), 0);
    ck_assert_int_eq(csv_find(&csv, "c \"d\""), 1);
    ck_assert_int_eq(csv_find(&csv, "x"), -2);
    ck_assert_int_eq(csv_find(&csv, "y"), -1);
    csv_done(&csv);
}
END_TEST

static const struct {
    const char *text;
    enum job_tristate header;
    const char *says;
} broken[] = {
    {"1,2\n3,4,5\n", JOB_AUTO, "t.csv: line 2 has 3 cells, the first has 2"},
    {"1,2\n3\n", JOB_AUTO, "line 2 has 1 cells"},
    {"a,b\n1,2\n3,x\n", JOB_AUTO,
     "line 3, column 2 (\"b\"): \"x\" is not a number; classes are numbers too, from 0"},
    {"a,b\n1,2\n", JOB_FALSE, "line 1, column 1: \"a\" is not a number"},
    {"1,2\n,4\n", JOB_AUTO, "line 2, column 1: \"\" is not a number"},
    {"1,2\n3,nan\n", JOB_AUTO, "\"nan\" is not a number"},
    {"1,2\n3,1e999\n", JOB_AUTO, "\"1e999\" is not a number"},
    {"1,2\n3,0x10\n", JOB_AUTO, "\"0x10\" is not a number"},
    {"1,2\n3,1.2.3\n", JOB_AUTO, "\"1.2.3\" is not a number"},
    {"1,2\n3,4 5\n", JOB_AUTO, "\"4 5\" is not a number"},
    {"1,2\n\n3,4\n", JOB_AUTO, "line 2 is empty"},
    {"\n1,2\n3,4\n", JOB_AUTO, "line 1 is empty"},
    {"1,2\n\"3,4\n5,6\n", JOB_AUTO, "line 2 has a quote that never ends"},
    {"1,2\n\"3\"3,4\n", JOB_AUTO, "line 2 goes on behind a closing quote"},
    {"a,b\n", JOB_AUTO, "there are no rows"},
    {"", JOB_AUTO, "there are no rows"},
    {"\"x\ny\",b\n1,2\n3,z\n", JOB_AUTO, "line 4, column 2"},
};

START_TEST(broken_tables_are_refused)
{
    struct err err = ERR_INIT;
    struct csv csv;
    ck_assert_int_eq(csv_read(text_file(broken[_i].text), broken[_i].header, &csv, &err),
                     ERR_DATA_INVALID);
    ck_assert_msg(strstr(err.message, broken[_i].says) != NULL, "«%s» does not say «%s»",
                  err.message, broken[_i].says);
}
END_TEST

START_TEST(a_nul_and_a_cut_gz_are_refused)
{
    struct err err = ERR_INIT;
    struct csv csv;
    ck_assert_int_eq(csv_read(idx_file("n.csv", "1,2\n3,\0\n", 8), JOB_AUTO, &csv, &err),
                     ERR_DATA_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "line 2 has a NUL byte"));
    ck_assert_int_eq(
        csv_read(idx_file("c.csv", "\x1f\x8b\x08\0\0\0\0\0\0\3", 10), JOB_AUTO, &csv, &err),
        ERR_DATA_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "the gz data is cut off"));
}
END_TEST

START_TEST(long_tables_grow)
{
    static char text[400 * 1000];
    struct err err = ERR_INIT;
    struct csv csv;
    size_t used = 0;
    for (int i = 0; i < 20000; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%d,%d\n", i, -i, 2 * i);
    ck_assert_msg(csv_read(idx_file_gz("l.gz", text, used), JOB_AUTO, &csv, &err) == 0, "%s",
                  err.message);
    ck_assert_int_eq(csv.rows, 20000);
    for (int i = 0; i < 20000; i++)
        ck_assert(csv.values[3 * i] == (float)i && csv.values[3 * i + 2] == (float)(2 * i));
    csv_done(&csv);
}
END_TEST

static struct job_source csv_source(const char *path, const char *target, int64_t index)
{
    return (struct job_source){.format = DATA_CSV,
                               .path = (char *)path,
                               .target = {.name = (char *)target, .index = index}};
}

START_TEST(the_target_is_left_out_of_the_input)
{
    static const int64_t index[] = {1, 0};
    static const float wanted[2][2][2] = {{{5, 6}, {2, 3}}, {{4, 6}, {1, 3}}};
    static const int64_t labels[2][2] = {{4, 1}, {5, 2}};
    const char *path = text_file("a,b,c\n1,2,3\n4,5,6\n");
    const struct job_source sources[] = {csv_source(path, NULL, 0), csv_source(path, "b", 0)};
    for (int i = 0; i < 2; i++) {
        float input[2][2];
        int64_t label[2];
        struct dataset *dataset =
            data_test_open(sources[i], data_test_plain(), data_test_labels(SHAPE(2), 6));
        ck_assert_int_eq(dataset_samples(dataset), 2);
        data_test_gather(dataset, index, 2, input, label);
        ck_assert_mem_eq(input, wanted[i], sizeof input);
        ck_assert_mem_eq(label, labels[i], sizeof label);
        dataset_close(dataset);
    }
}
END_TEST

START_TEST(values_and_one_hot_rows)
{
    static const int64_t index[] = {0};
    static const float row[] = {0, 0, 1};
    float input[2], target[3];
    struct job_source source = csv_source(text_file("1,2,2\n4,5,0\n"), NULL, -1);
    struct dataset *dataset =
        data_test_open(source, data_test_plain(), data_test_values(SHAPE(2), SHAPE(3), 3));
    data_test_gather(dataset, index, 1, input, target);
    ck_assert_mem_eq(target, row, sizeof row);
    dataset_close(dataset);
    dataset = data_test_open(source, data_test_plain(), data_test_values(SHAPE(2), SHAPE(1), 1));
    data_test_gather(dataset, index, 1, input, target);
    ck_assert_float_eq(target[0], 2);
    dataset_close(dataset);
}
END_TEST

START_TEST(a_transform_for_each_column)
{
    static const int64_t index[] = {0};
    double mean[] = {1, 2}, std[] = {2, 4};
    float input[2];
    int64_t label;
    struct job_data data = data_test_plain();
    data.mean = (struct job_numbers){2, mean};
    data.std = (struct job_numbers){2, std};
    struct dataset *dataset = data_test_open(csv_source(text_file("3,10,1\n"), NULL, -1), data,
                                             data_test_labels(SHAPE(2), 2));
    data_test_gather(dataset, index, 1, input, &label);
    ck_assert_float_eq(input[0], 1);
    ck_assert_float_eq(input[1], 2);
    dataset_close(dataset);
}
END_TEST

START_TEST(what_does_not_fit_the_model)
{
    const char *path = text_file("a,b,a\n1,2,1.5\n4,5,9\n");
    struct dataset_want two = data_test_labels(SHAPE(2), 6);
    struct job_data plain = data_test_plain();
    data_test_refused(csv_source(path, NULL, 3), plain, two, ERR_DATA_INVALID, "/data/train/target",
                      "it has 3 columns, there is none of index 3");
    data_test_refused(csv_source(path, "z", 0), plain, two, ERR_DATA_INVALID, "/data/train/target",
                      "no column has the name \"z\"");
    data_test_refused(csv_source(path, "a", 0), plain, two, ERR_DATA_INVALID, "/data/train/target",
                      "more than one column has the name \"a\"");
    data_test_refused(csv_source(path, NULL, -1), plain, two, ERR_DATA_INVALID,
                      "/data/train/target", "sample 0 has target 1.5, want a label");
    data_test_refused(csv_source(path, NULL, 1), plain, data_test_labels(SHAPE(2), 5),
                      ERR_DATA_INVALID, "/data/train/target", "sample 1 has label 5, want 0 to 4");
    data_test_refused(csv_source(path, NULL, 0), plain, data_test_labels(SHAPE(3), 6),
                      ERR_DATA_INVALID, "/data/train/path", "samples of shape [2]");
    data_test_refused(csv_source("/nonexistent/t.csv", NULL, 0), plain, two, ERR_IO,
                      "/data/train/path", "/nonexistent/t.csv: No such file");
}
END_TEST

START_TEST(every_allocation_is_checked)
{
    struct job_source source = csv_source(text_file("a,b\n1,2\n3,1\n"), NULL, -1);
    struct job_data data = data_test_plain();
    struct dataset_want want = data_test_labels(SHAPE(1), 3);
    long n = 1;
    for (;; n++) {
        struct err err = ERR_INIT;
        struct dataset *dataset = NULL;
        oom_arm(n);
        int rc = dataset_open(&source, &data, &want, "/data/train", &dataset, &err);
        bool failed = oom_disarm();
        dataset_close(dataset);
        if (!failed)
            break;
        ck_assert_int_eq(rc, ERR_NOMEM);
    }
    ck_assert_int_gt(n, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("csv");
    TCase *tcase = checks_case(suite, "csv", 20);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_loop_test(tcase, tables_are_read, 0, sizeof good / sizeof good[0]);
    tcase_add_test(tcase, columns_are_found_by_name);
    tcase_add_loop_test(tcase, broken_tables_are_refused, 0, sizeof broken / sizeof broken[0]);
    tcase_add_test(tcase, a_nul_and_a_cut_gz_are_refused);
    tcase_add_test(tcase, long_tables_grow);
    tcase_add_test(tcase, the_target_is_left_out_of_the_input);
    tcase_add_test(tcase, values_and_one_hot_rows);
    tcase_add_test(tcase, a_transform_for_each_column);
    tcase_add_test(tcase, what_does_not_fit_the_model);
    tcase_add_test(tcase, every_allocation_is_checked);
    return checks_run(suite);
}
