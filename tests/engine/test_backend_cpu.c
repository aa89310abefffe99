/* test_backend_cpu.c: this program tests the CPU's kernels. */
#include "engine/backend/cpu/layout.h"
#include "tests/engine/test_backend.h"

const int test_backend_teams[] = {1, 2};
const int test_backend_n_teams = 2;

/* In blocks of so many channels. */
const int64_t test_backend_arrivals[] = {0, 16, 8};
const int test_backend_n_arrivals = 3;

const struct backend *test_backend(const char **ret_missing)
{
    (void)ret_missing;
    return &backend_cpu;
}

const struct layout *test_backend_arrival(struct arena *arena, const struct shape *shape,
                                          enum dtype dtype, int64_t arrival)
{
    if (arrival == 0 || layout_data_type(dtype) == dnnl_data_type_undef)
        return layout_plain(arena, shape, dtype);
    return layout_blocked(arena, shape, dtype, arrival);
}
