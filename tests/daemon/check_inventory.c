/* check_inventory.c: the probe's list is believed only when it is right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/inventory.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

#define CPU0                                                                                       \
    "{\"name\": \"cpu:0\", \"type\": \"cpu\", \"uuid\": \"CPU-0\", \"model\": \"AMD\", "           \
    "\"cores\": "                                                                                  \
    "[0, 2], \"memory_bytes\": 25769803776}"
#define CUDA1                                                                                      \
    "{\"name\": \"cuda:1\", \"type\": \"cuda\", \"uuid\": \"GPU-1\", \"model\": \"H\", "           \
    "\"memory_bytes\": 0}"
#define GOOD "{\"devices\": [" CPU0 ", " CUDA1 "]}"

START_TEST(test_good)
{
    struct inventory *inventory;
    struct err err = ERR_INIT;
    ck_assert_msg(inventory_parse(GOOD, strlen(GOOD), &inventory, &err) == 0, "%s", err.message);
    ck_assert_uint_eq(inventory->n, 2);
    const struct inventory_device *cpu = &inventory->device[0], *gpu = &inventory->device[1];
    ck_assert_str_eq(cpu->name, "cpu:0");
    ck_assert_int_eq(cpu->type, DEVICE_CPU);
    ck_assert_str_eq(cpu->uuid, "CPU-0");
    ck_assert_str_eq(cpu->model, "AMD");
    ck_assert_uint_eq(cpu->n_cores, 2);
    ck_assert_int_eq(cpu->cores[1], 2);
    ck_assert_int_eq(cpu->memory_bytes, INT64_C(25769803776));
    ck_assert_int_eq(gpu->type, DEVICE_CUDA);
    ck_assert_ptr_null(gpu->cores);
    inventory_free(inventory);
}
END_TEST

#define ROW(name, type, uuid, model, rest)                                                         \
    "{\"devices\": [{\"name\": " name ", \"type\": " type ", \"uuid\": " uuid                      \
    ", \"model\": " model rest "}]}"

static const struct {
    const char *text, *part;
} bad[] = {
    {"", "list of devices"},
    {"{", "list of devices"},
    {"[]", "1 to 64 devices"},
    {"{\"devices\": []}", "1 to 64 devices"},
    {"{\"devices\": [1]}", "device 0 has no valid 'name'"},
    {"{\"devices\": [" CPU0 ", " CPU0 "]}", "names cpu:0 twice"},
    {"{\"devices\": [" CPU0 ", {}]}", "device 1 has no valid 'name'"},
    {ROW("\"cpu\"", "\"cpu\"", "\"u\"", "\"m\"", ", \"memory_bytes\": 1"), "'name'"},
    {ROW("\"tpu:0\"", "\"tpu\"", "\"u\"", "\"m\"", ", \"memory_bytes\": 1"), "'name'"},
    {ROW("\"cpu:0\"", "\"cuda\"", "\"u\"", "\"m\"", ", \"memory_bytes\": 1"), "'name'"},
    {ROW("\"cpu:0\"", "\"cpu\"", "\"\"", "\"m\"", ", \"memory_bytes\": 1"), "'uuid'"},
    {ROW("\"cpu:0\"", "\"cpu\"", "\"u\"", "5", ", \"memory_bytes\": 1"), "'model'"},
    {ROW("\"cpu:0\"", "\"cpu\"", "\"u\"", "\"m\"", ""), "'memory_bytes'"},
    {ROW("\"cpu:0\"", "\"cpu\"", "\"u\"", "\"m\"", ", \"memory_bytes\": -1"), "'memory_bytes'"},
    {ROW("\"cpu:0\"", "\"cpu\"", "\"u\"", "\"m\"", ", \"memory_bytes\": 1, \"cores\": 3"),
     "'cores'"},
    {ROW("\"cpu:0\"", "\"cpu\"", "\"u\"", "\"m\"", ", \"memory_bytes\": 1, \"cores\": [-1]"),
     "'cores'"},
};

START_TEST(test_bad)
{
    struct inventory *inventory = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(inventory_parse(bad[_i].text, strlen(bad[_i].text), &inventory, &err),
                     ERR_DEVICE_FAILED);
    ck_assert_ptr_null(inventory);
    ck_assert_msg(strstr(err.message, bad[_i].part) != NULL, "%s", err.message);
}
END_TEST

START_TEST(test_too_many)
{
    static char text[65536];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"devices\": [");
    for (int i = 0; i <= LIMIT_DEVICES; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s{\"name\": \"cpu:%d\"}",
                                 i > 0 ? ", " : "", i);
    used += (size_t)snprintf(text + used, sizeof text - used, "]}");
    struct inventory *inventory;
    struct err err = ERR_INIT;
    ck_assert_int_eq(inventory_parse(text, used, &inventory, &err), ERR_DEVICE_FAILED);
    ck_assert_ptr_nonnull(strstr(err.message, "1 to 64 devices"));
}
END_TEST

START_TEST(test_without_memory)
{
    long n = 1;
    for (;; n++) {
        struct inventory *inventory = NULL;
        struct err err = ERR_INIT;
        oom_arm(n);
        int rc = inventory_parse(GOOD, strlen(GOOD), &inventory, &err);
        if (!oom_disarm()) {
            ck_assert_int_eq(rc, 0);
            inventory_free(inventory);
            break;
        }
        /* jansson calls some failed allocations a syntax error: only its own can be told apart */
        ck_assert(rc == ERR_NOMEM || rc == ERR_DEVICE_FAILED);
        ck_assert_ptr_null(inventory);
    }
    ck_assert_int_gt(n, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inventory");
    TCase *tcase = checks_case(suite, "inventory", 0);
    tcase_add_test(tcase, test_good);
    tcase_add_loop_test(tcase, test_bad, 0, sizeof bad / sizeof *bad);
    tcase_add_test(tcase, test_too_many);
    tcase_add_test(tcase, test_without_memory);
    return checks_run(suite);
}
