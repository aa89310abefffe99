/* machine_deal by value; machine_resolve against the document's ways to ask. */
#include <string.h>

#include "engine/worker/machine.h"
#include "tests/lib/checks.h"

static const int cores[] = {2, 3, 5, 7, 11};

static const struct {
    size_t n_cores, n_devices, device, count;
    int first; /* core */
} deals[] = {
    {5, 1, 0, 5, 2}, {5, 2, 0, 2, 2}, {5, 2, 1, 3, 5}, {5, 5, 4, 1, 11},
    {2, 2, 1, 1, 3}, {2, 8, 0, 1, 2}, {2, 8, 5, 1, 3}, {2, 8, 6, 1, 2},
};

START_TEST(cores_are_dealt)
{
    struct device_config got =
        machine_deal(cores, deals[_i].n_cores, deals[_i].n_devices, deals[_i].device);
    ck_assert_uint_eq(got.n_cores, deals[_i].count);
    ck_assert_int_eq(got.cores[0], deals[_i].first);
    ck_assert_int_eq(got.n_threads, (int)deals[_i].count);
}
END_TEST

START_TEST(a_job_gets_its_devices_in_its_order)
{
    struct machine machine;
    struct err err = ERR_INIT;
    struct device_config devices[LIMIT_DEVICES];
    const struct backend *backend;
    int n;
    char *names[] = {"cpu:5", "cpu:1"};
    struct job_parallel list = {.n_devices = 2, .devices = names};
    struct job_parallel count = {.n_devices = 9};
    ck_assert_int_eq(machine_probe(8, false, &machine, &err), 0);
    ck_assert_uint_eq(machine.n_devices, 8);
    ck_assert_int_gt(machine.memory_bytes, 0);
    ck_assert_int_eq(machine_resolve(&machine, &list, &backend, devices, &n, &err), 0);
    ck_assert_int_eq(n, 2);
    ck_assert_ptr_eq(backend, &backend_cpu);
    ck_assert_str_eq(devices[0].name, "cpu:5");
    ck_assert_str_eq(devices[1].name, "cpu:1");
    ck_assert_int_eq(machine_resolve(&machine, &count, &backend, devices, &n, &err),
                     ERR_DEVICE_UNKNOWN);
    machine_done(&machine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine");
    TCase *tcase = checks_case(suite, "machine", 0);
    tcase_add_loop_test(tcase, cores_are_dealt, 0, (int)(sizeof deals / sizeof deals[0]));
    tcase_add_test(tcase, a_job_gets_its_devices_in_its_order);
    return checks_run(suite);
}
