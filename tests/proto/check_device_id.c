#include <stdio.h>
#include <string.h>

#include "proto/device_id.h"
#include "tests/lib/checks.h"

static const struct {
    const char *text;
    enum device_type type; /* DEVICE_DEFAULT: refused */
    int index;
} names[] = {
    {"cpu", DEVICE_CPU, -1},       {"cpu:0", DEVICE_CPU, 0},
    {"cuda:12", DEVICE_CUDA, 12},  {"cuda", DEVICE_CUDA, -1},
    {"cpu:", DEVICE_DEFAULT, 0},   {"cpu:-1", DEVICE_DEFAULT, 0},
    {"cpu:01", DEVICE_DEFAULT, 0}, {"cpu:0x1", DEVICE_DEFAULT, 0},
    {"cpu: 1", DEVICE_DEFAULT, 0}, {"CPU:0", DEVICE_DEFAULT, 0},
    {"gpu:0", DEVICE_DEFAULT, 0},  {"", DEVICE_DEFAULT, 0},
    {"cpus", DEVICE_DEFAULT, 0},   {"cuda:99999999999999999999", DEVICE_DEFAULT, 0},
};

START_TEST(names_are_parsed)
{
    struct device_id id;
    struct err err = ERR_INIT;
    int rc = device_id_parse(names[_i].text, &id, &err);
    if (names[_i].type == DEVICE_DEFAULT) {
        ck_assert_int_eq(rc, ERR_DEVICE_UNKNOWN);
        ck_assert_ptr_nonnull(strstr(err.message, "names no device"));
        return;
    }
    char buf[32];
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq((int)id.type, (int)names[_i].type);
    ck_assert_int_eq(id.index, names[_i].index);
    ck_assert_str_eq(device_id_format(id, buf), names[_i].text);
}
END_TEST

#define UNSET "unset"
static const struct {
    const char *value;
    const char *seen; /* indices; "!": refused */
} visible[] = {
    {UNSET, "0 1 2 3"},
    {"", ""},
    {"   ", ""},
    {"0", "0"},
    {"3,1", "3 1"},
    {" 3 , 1\t", "3 1"},
    {"0,1,2,3", "0 1 2 3"},
    {"-1", ""},
    {"0,-1,1", "0"},
    {"2,4,1", "2"},
    {"1,x,2", "1"},
    {"1,,2", "1"},
    {",1", ""},
    {"1,", "1"},
    {"00", ""},
    {"1a", ""},
    {"99999999999999999999", ""},
    {"NoDevFiles", ""},
    {"GPU-aaaa1111", "0"},
    {"GPU-b,GPU-aaaa1", "3 0"},
    {"GPU-aaaa", ""},       /* two begin with it */
    {"1,GPU-aaaa,2", "1"},  /* hides itself and all after it */
    {"GPU-aaaa2222-x", ""}, /* longer than any */
    {"GPU-", ""},
    {"GPU", ""},
    {"gpu-b", ""},
    {"2,GPU-cc", "2 1"},
    {"0,0", "!"},
    {"0,1,0", "!"},
    {"3,GPU-b", "!"},
    {"0,9,0", "0"}, /* the repeat is hidden */
};

START_TEST(variable_shows_devices)
{
    static const char *const uuids[] = {"GPU-aaaa1111-0000", "GPU-cccc", "GPU-aaaa2222",
                                        "GPU-bbbb"};
    const char *value = strcmp(visible[_i].value, UNSET) == 0 ? NULL : visible[_i].value;
    int index[4];
    size_t n = 77;
    struct err err = ERR_INIT;
    int rc = device_visible(value, uuids, 4, index, &n, &err);
    if (strcmp(visible[_i].seen, "!") == 0) {
        ck_assert_int_eq(rc, ERR_DEVICE_UNKNOWN);
        ck_assert_ptr_nonnull(strstr(err.message, "twice"));
        ck_assert_uint_eq(n, 77);
        return;
    }
    ck_assert_int_eq(rc, 0);
    char seen[32] = "";
    for (size_t i = 0; i < n; i++)
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s%d", i > 0 ? " " : "",
                 index[i]);
    ck_assert_str_eq(seen, visible[_i].seen);
}
END_TEST

START_TEST(no_devices_at_all)
{
    size_t n = 77;
    struct err err = ERR_INIT;
    ck_assert_int_eq(device_visible(NULL, NULL, 0, NULL, &n, &err), 0);
    ck_assert_uint_eq(n, 0);
    n = 77;
    ck_assert_int_eq(device_visible("0", NULL, 0, NULL, &n, &err), 0);
    ck_assert_uint_eq(n, 0);
}
END_TEST

#define C DEVICE_CPU
#define G DEVICE_CUDA
static const struct {
    int64_t count; /* with `list` unused */
    const char *list[4];
    enum device_type asked;
    enum device_type types[6]; /* ends with 0 */
    const char *picked;        /* or the message's part after "!" */
    const char *path;
} picks[] = {
    {1, {NULL}, DEVICE_DEFAULT, {C, C}, "0", ""},
    {2, {NULL}, DEVICE_DEFAULT, {C, C}, "0 1", ""},
    {2, {NULL}, DEVICE_DEFAULT, {C, C, G, G}, "2 3", ""},
    {2, {NULL}, DEVICE_CPU, {G, C, G, C}, "1 3", ""},
    {0, {NULL}, DEVICE_DEFAULT, {C, C, C}, "0 1 2", ""},
    {0, {NULL}, DEVICE_CPU, {C, G}, "0", ""},
    {3,
     {NULL},
     DEVICE_DEFAULT,
     {C, C},
     "!asks for 3 cpu devices, but there are cpu:0 to cpu:1",
     "/parallel/devices"},
    {3,
     {NULL},
     DEVICE_DEFAULT,
     {C, C, G},
     "!asks for 3 cuda devices, but there is cuda:0 only",
     "/parallel/devices"},
    {0, {NULL}, DEVICE_CUDA, {C}, "!there is no cuda device", "/parallel/devices"},
    {1, {NULL}, DEVICE_DEFAULT, {0}, "!there is no cpu device", "/parallel/devices"},
    {65, {NULL}, DEVICE_DEFAULT, {C}, "!more than the 64", "/parallel/devices"},
    {0, {"cpu:1", "cpu:0"}, DEVICE_DEFAULT, {C, C}, "1 0", ""},
    {0, {"cuda:1"}, DEVICE_DEFAULT, {G, C, G}, "2", ""},
    {0, {"cpu", "cpu:0"}, DEVICE_DEFAULT, {C, C}, "1 0", ""},
    {0, {"cpu", "cpu"}, DEVICE_DEFAULT, {C, C, C}, "0 1", ""},
    {0,
     {"cpu:0", "cpu:2"},
     DEVICE_DEFAULT,
     {C, C},
     "!asks for cpu:2, but there are cpu:0 to cpu:1",
     "/parallel/devices/1"},
    {0,
     {"cuda:0"},
     DEVICE_DEFAULT,
     {C, C},
     "!asks for cuda:0, but there is no cuda device",
     "/parallel/devices/0"},
    {0, {"cpu:1", "cpu:1"}, DEVICE_DEFAULT, {C, C}, "!named twice", "/parallel/devices/1"},
    {0, {"cpu", "cpu", "cpu:0"}, DEVICE_DEFAULT, {C, C}, "!names every one", "/parallel/devices/1"},
    {0, {"cpu", "tpu:0"}, DEVICE_DEFAULT, {C, C}, "!names no device", "/parallel/devices/1"},
};

START_TEST(jobs_pick_devices)
{
    struct job_parallel parallel = {.n_devices = picks[_i].count, .device_type = picks[_i].asked};
    char *list[4];
    if (picks[_i].list[0] != NULL) {
        parallel.devices = list;
        for (; parallel.n_devices < 4 && picks[_i].list[parallel.n_devices] != NULL;
             parallel.n_devices++)
            list[parallel.n_devices] = (char *)picks[_i].list[parallel.n_devices];
    }
    size_t n_types = 0, n = 77;
    while (n_types < 6 && picks[_i].types[n_types] != DEVICE_DEFAULT)
        n_types++;
    int index[LIMIT_DEVICES];
    struct err err = ERR_INIT;
    int rc = device_resolve(&parallel, picks[_i].types, n_types, index, &n, &err);
    if (picks[_i].picked[0] == '!') {
        ck_assert_int_eq(rc, ERR_DEVICE_UNKNOWN);
        ck_assert_msg(strstr(err.message, picks[_i].picked + 1) != NULL, "%s", err.message);
        ck_assert_str_eq(err.path, picks[_i].path);
        ck_assert_uint_eq(n, 77);
        return;
    }
    ck_assert_msg(rc == 0, "%s", err.message);
    char picked[64] = "";
    for (size_t i = 0; i < n; i++)
        snprintf(picked + strlen(picked), sizeof picked - strlen(picked), "%s%d", i > 0 ? " " : "",
                 index[i]);
    ck_assert_str_eq(picked, picks[_i].picked);
}
END_TEST

/* What a stage names is missing there, not in the list that was made of it. */
START_TEST(stages_are_named_in_errors)
{
    static const enum device_type types[] = {C, C};
    char *list[] = {"cpu:0", "cpu:1", "cpu:9"};
    struct job_stage stages[] = {{"a", list, 1}, {"b", list + 1, 2}};
    struct job_parallel parallel = {
        .n_devices = 3, .devices = list, .stages = stages, .n_stages = 2};
    int index[LIMIT_DEVICES];
    size_t n;
    struct err err = ERR_INIT;
    ck_assert_int_eq(device_resolve(&parallel, types, 2, index, &n, &err), ERR_DEVICE_UNKNOWN);
    ck_assert_str_eq(err.path, "/parallel/stages/1/devices/1");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proto/device_id");
    TCase *tcase = checks_case(suite, "device_id", 0);
    tcase_add_loop_test(tcase, names_are_parsed, 0, sizeof names / sizeof names[0]);
    tcase_add_loop_test(tcase, variable_shows_devices, 0, sizeof visible / sizeof visible[0]);
    tcase_add_test(tcase, no_devices_at_all);
    tcase_add_loop_test(tcase, jobs_pick_devices, 0, sizeof picks / sizeof picks[0]);
    tcase_add_test(tcase, stages_are_named_in_errors);
    return checks_run(suite);
}
