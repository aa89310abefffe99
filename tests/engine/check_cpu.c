/* check_cpu.c: the CPU backend beside its kernels' arithmetic: which ops it has, layouts, memory.
 */
#include <stdint.h>
#include <string.h>

#include "engine/backend/cpu/layout.h"
#include "engine/ops/registry.h"
#include "tests/lib/checks.h"

START_TEST(every_op_has_a_kernel)
{
    for (size_t i = 0; i < op_registry.n_ops; i++) {
        const struct op_def *op = op_registry.ops[i];
        const struct kernel *kernel = backend_kernel(&backend_cpu, op->name);
        ck_assert_msg((op->view || op->send) == (kernel == NULL), "%s", op->name);
        if (kernel)
            ck_assert_str_eq(kernel->op, op->name);
    }
    ck_assert_uint_ge(op_registry.n_ops, backend_cpu.n_kernels);
    ck_assert_ptr_null(backend_kernel(&backend_cpu, "no such op"));
}
END_TEST

/* Of 20 channels a block of 16 pads 12, of 8 pads 4. */
static const struct layout_row {
    int64_t block;
    const char *name;
    size_t bytes;
    int64_t blocks;
} layout_rows[] = {
    {1, "nchw", 2 * 20 * 3 * 5 * 4, 20},
    {8, "nChw8c", 2 * 24 * 3 * 5 * 4, 3},
    {16, "nChw16c", 2 * 32 * 3 * 5 * 4, 2},
    {20, "nhwc", 2 * 20 * 3 * 5 * 4, 1},
};

START_TEST(grids)
{
    const struct layout_row *row = &layout_rows[_i];
    struct arena *arena = arena_new();
    struct shape shape = SHAPE(2, 20, 3, 5);
    const struct layout *layout = layout_blocked(arena, &shape, DTYPE_F32, row->block);
    char name[64];
    ck_assert_str_eq(backend_cpu.layout_name(layout, name), row->name);
    ck_assert_uint_eq(backend_cpu.layout_bytes(layout), row->bytes);
    struct grid grid;
    ck_assert(layout_grid(layout, &grid));
    ck_assert_int_eq(grid.blocks, row->blocks);
    ck_assert_int_eq(grid.channels, 20);
    ck_assert_int_eq(grid_count(&grid) * 4, (int64_t)row->bytes);
    for (int i = 0; i < 4; i++) {
        const struct layout *other = layout_blocked(arena, &shape, DTYPE_F32, layout_rows[i].block);
        ck_assert_int_eq(backend_cpu.layout_equal(layout, other), i == _i);
    }
    arena_free(arena);
}
END_TEST

START_TEST(plain_layouts)
{
    struct arena *arena = arena_new();
    const struct {
        struct shape shape;
        enum dtype dtype;
        size_t bytes;
    } rows[] = {
        {{0, {0}}, DTYPE_I64, 8},       {{0, {0}}, DTYPE_F32, 4},
        {{1, {7}}, DTYPE_F64, 56},      {{2, {3, 5}}, DTYPE_F32, 60},
        {{3, {2, 3, 5}}, DTYPE_U8, 30}, {{6, {1, 2, 1, 2, 1, 2}}, DTYPE_F32, 32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct layout *a = backend_cpu.layout_plain(arena, &rows[i].shape, rows[i].dtype);
        const struct layout *b = backend_cpu.layout_plain(arena, &rows[i].shape, rows[i].dtype);
        ck_assert_uint_eq(backend_cpu.layout_bytes(a), rows[i].bytes);
        ck_assert(backend_cpu.layout_equal(a, b));
        if (i > 0)
            ck_assert(!backend_cpu.layout_equal(
                a, backend_cpu.layout_plain(arena, &rows[i - 1].shape, rows[i - 1].dtype)));
    }
    arena_free(arena);
}
END_TEST

static struct device *open_device(void)
{
    struct device_config config = {.name = "cpu:0", .n_threads = 1};
    struct device *device;
    struct err err = ERR_INIT;
    ck_assert_int_eq(backend_cpu.device_open(&config, &device, &err), 0);
    return device;
}

START_TEST(device_memory)
{
    static const size_t sizes[] = {0, 1, 4096, 4097, (2 << 20) - 1, 2 << 20, (5 << 20) + 1};
    struct device *device = open_device();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t bytes = sizes[i];
        char *memory = backend_cpu.alloc(device, bytes);
        ck_assert_ptr_nonnull(memory);
        ck_assert_uint_eq((uintptr_t)memory % 64, 0);
        size_t written = 0;
        for (size_t k = 0; k < bytes; k++)
            written += memory[k] != 0;
        ck_assert_uint_eq(written, 0);
        if (bytes > 0) {
            struct err err = ERR_INIT;
            char last = 42, back = 0;
            ck_assert_int_eq(backend_cpu.write(device, memory + bytes - 1, &last, 1, &err), 0);
            ck_assert_int_eq(backend_cpu.read(device, &back, memory + bytes - 1, 1, &err), 0);
            ck_assert_int_eq(back, 42);
        }
        backend_cpu.free(device, memory, bytes);
    }
    backend_cpu.free(device, NULL, 4096);
    backend_cpu.device_close(device);
}
END_TEST

START_TEST(too_much_memory)
{
    struct device *device = open_device();
    ck_assert_ptr_null(backend_cpu.alloc(device, SIZE_MAX));
    ck_assert_ptr_null(backend_cpu.alloc(device, (size_t)1 << 60));
    backend_cpu.device_close(device);
    backend_cpu.device_close(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu");
    TCase *tcase = checks_case(suite, "backend", 0);
    tcase_add_test(tcase, every_op_has_a_kernel);
    tcase_add_loop_test(tcase, grids, 0, 4);
    tcase_add_test(tcase, plain_layouts);
    tcase_add_test(tcase, device_memory);
    tcase_add_test(tcase, too_much_memory);
    return checks_run(suite);
}
