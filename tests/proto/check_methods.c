#include <string.h>

#include "proto/methods.h"
#include "tests/lib/checks.h"

START_TEST(names_go_both_ways)
{
    for (int i = 0; i < METHOD_COUNT; i++) {
        enum method method = (enum method)i;
        ck_assert_int_eq((int)method_find(method_def(method)->name), i);
        ck_assert_str_ne(method_def(method)->summary, "");
    }
    ck_assert_int_eq((int)method_find("job.explode"), METHOD_COUNT);
    ck_assert_int_eq((int)method_find(""), METHOD_COUNT);
}
END_TEST

static const struct {
    enum method method;
    const char *params;
    const char *fragment; /* NULL: good */
} rows[] = {
    {METHOD_SERVER_INFO, "{}", NULL},
    {METHOD_SERVER_INFO, "{\"x\": 1}", "server.info takes no parameters, found \"x\""},
    {METHOD_JOB_SHOW, "{\"id\": 3}", NULL},
    {METHOD_JOB_SHOW, "{}", "job.show needs id, an integer"},
    {METHOD_JOB_SHOW, "{\"id\": \"3\"}", "id of job.show must be an integer, found the string"},
    {METHOD_JOB_SHOW, "{\"id\": 3.0}", "must be an integer"},
    {METHOD_JOB_SHOW, "{\"idd\": 3}",
     "unknown parameter \"idd\" of job.show; did you mean \"id\"?"},
    {METHOD_JOB_LIST, "{\"zebra\": 3}", "allowed are states, user, limit, cursor"},
    {METHOD_JOB_LIST, "{\"states\": [\"running\"], \"limit\": 2}", NULL},
    {METHOD_JOB_LIST, "{\"states\": \"running\"}", "must be a list of strings"},
    {METHOD_JOB_LIST, "{\"states\": [1]}", "a list of strings, found the number 1 in it"},
    {METHOD_JOB_WAIT, "{\"ids\": [1, 2], \"any\": true, \"timeout\": 1.5}", NULL},
    {METHOD_JOB_WAIT, "{\"ids\": [1, 2], \"timeout\": 1}", NULL},
    {METHOD_JOB_WAIT, "{\"ids\": [1, \"2\"]}",
     "must be a list of integers, found the string \"2\" in it"},
    {METHOD_JOB_WAIT, "{\"ids\": [1], \"any\": 1}", "must be true or false, found the number 1"},
    {METHOD_JOB_WAIT, "{\"ids\": [1], \"timeout\": null}", "must be a number, found null"},
    {METHOD_JOB_SUBMIT, "{\"job\": {}, \"cwd\": \"/\", \"dry_run\": true}", NULL},
    {METHOD_JOB_SUBMIT, "{\"job\": [], \"cwd\": \"/\"}", "must be an object"},
    {METHOD_JOB_SUBMIT, "{\"job\": {}}", "job.submit needs cwd, a string"},
};

START_TEST(params_are_checked)
{
    json_t *params = json_loads(rows[_i].params, 0, NULL);
    struct err err = ERR_INIT;
    int rc = method_check(rows[_i].method, params, &err);
    json_decref(params);
    if (rows[_i].fragment == NULL) {
        ck_assert_msg(rc == 0, "%s", err.message);
        return;
    }
    ck_assert_int_eq(rc, ERR_PARAMS);
    ck_assert_msg(strstr(err.message, rows[_i].fragment) != NULL, "%s", err.message);
}
END_TEST

START_TEST(an_unknown_method_names_the_nearest)
{
    struct err err = ERR_INIT;
    ck_assert_int_eq(method_unknown("job.cancle", &err), ERR_METHOD);
    ck_assert_str_eq(err.message,
                     "there is no method \"job.cancle\"; did you mean \"job.cancel\"?");
    ck_assert_int_eq(method_unknown("frobnicate", &err), ERR_METHOD);
    ck_assert_str_eq(err.message, "there is no method \"frobnicate\"; server.describe lists them");
}
END_TEST

START_TEST(a_refused_value_is_told_with_what_is_allowed)
{
    struct err err = ERR_INIT;
    json_t *params = json_pack("{s:i}", "limit", 0);
    ck_assert_int_eq(method_refuse(&err, params, "limit", "1 to %d", 1000), ERR_PARAMS);
    ck_assert_str_eq(err.message, "limit must be 1 to 1000, found the number 0");
    json_decref(params);
}
END_TEST

START_TEST(describe_has_all)
{
    json_t *all = method_describe();
    const json_t *methods = json_object_get(all, "methods");
    ck_assert_uint_eq(json_array_size(methods), METHOD_COUNT);
    ck_assert_uint_eq(json_array_size(json_object_get(all, "errors")), ERR_COUNT);
    const json_t *submit = json_array_get(methods, METHOD_JOB_SUBMIT);
    ck_assert_str_eq(json_string_value(json_object_get(submit, "name")), "job.submit");
    json_t *expected = json_pack("{s:s, s:s, s:b}", "name", "job", "type", "object", "required", 1);
    ck_assert(json_equal(json_array_get(json_object_get(submit, "params"), 0), expected));
    json_decref(expected);
    json_decref(all);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proto/methods");
    TCase *tcase = checks_case(suite, "methods", 0);
    tcase_add_test(tcase, names_go_both_ways);
    tcase_add_loop_test(tcase, params_are_checked, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(tcase, an_unknown_method_names_the_nearest);
    tcase_add_test(tcase, a_refused_value_is_told_with_what_is_allowed);
    tcase_add_test(tcase, describe_has_all);
    return checks_run(suite);
}
