/* check_base.c: arena, shape, dtype, team and thread. */
#include <stdint.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/dtype.h"
#include "engine/base/shape.h"
#include "engine/base/team.h"
#include "engine/base/thread.h"
#include "tests/lib/checks.h"

static bool all_bytes_are(const unsigned char *bytes, size_t size, unsigned char want)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != want)
            return false;
    return true;
}

START_TEST(arena_pieces_are_zeroed_aligned_and_apart)
{
    struct arena *arena = arena_new();
    ck_assert_ptr_nonnull(arena);
    unsigned char *piece[200];
    for (size_t i = 0; i < 200; i++) {
        size_t size = i * i + 1; /* small ones and ones with a block of their own */
        piece[i] = arena_alloc(arena, size);
        ck_assert_ptr_nonnull(piece[i]);
        ck_assert_uint_eq((uintptr_t)piece[i] % _Alignof(max_align_t), 0);
        ck_assert(all_bytes_are(piece[i], size, 0));
        memset(piece[i], (int)i + 1, size);
    }
    for (size_t i = 0; i < 200; i++)
        ck_assert(all_bytes_are(piece[i], i * i + 1, (unsigned char)(i + 1)));
    arena_free(arena);
    arena_free(NULL);
}
END_TEST

START_TEST(arena_refuses_sizes_that_overflow)
{
    struct arena *arena = arena_new();
    ck_assert_ptr_null(arena_alloc(arena, SIZE_MAX));
    ck_assert_ptr_null(arena_array(arena, SIZE_MAX / 4, 8));
    ck_assert_ptr_nonnull(arena_array(arena, 0, 8));
    arena_free(arena);
}
END_TEST

START_TEST(arena_text_and_growing_arrays)
{
    struct arena *arena = arena_new();
    ck_assert_str_eq(arena_format(arena, "%s.%d", "layer", 12), "layer.12");
    int *items = NULL;
    size_t capacity = 0;
    for (size_t n = 0; n < 100; n++) {
        items = arena_grow(arena, items, n, &capacity, sizeof *items);
        ck_assert_ptr_nonnull(items);
        ck_assert_uint_gt(capacity, n);
        items[n] = (int)n;
    }
    for (int n = 0; n < 100; n++)
        ck_assert_int_eq(items[n], n);
    arena_free(arena);
}
END_TEST

START_TEST(shapes)
{
    char buf[SHAPE_TEXT];
    struct shape scalar = {0}, image = SHAPE(15, 3, 32, 32);
    ck_assert_int_eq(shape_count(&scalar), 1);
    ck_assert_int_eq(shape_count(&image), 15 * 3 * 32 * 32);
    ck_assert_int_eq(shape_count(&SHAPE(INT64_MAX / 2, 3)), -1);
    ck_assert_str_eq(shape_format(&scalar, buf), "[]");
    ck_assert_str_eq(shape_format(&SHAPE(15, 5), buf), "[15, 5]");
    ck_assert_uint_lt(
        strlen(shape_format(
            &SHAPE(INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN), buf)),
        SHAPE_TEXT - 1);
    ck_assert(shape_equal(&image, &SHAPE(15, 3, 32, 32)));
    ck_assert(!shape_equal(&image, &SHAPE(15, 3, 32, 31)));
    ck_assert(!shape_equal(&image, &SHAPE(15, 3, 32)));
}
END_TEST

START_TEST(dtypes)
{
    ck_assert_str_eq(dtype_name(DTYPE_F32), "F32");
    ck_assert_str_eq(dtype_name(DTYPE_I64), "I64");
    ck_assert_uint_eq(dtype_size(DTYPE_F32), 4);
    ck_assert_uint_eq(dtype_size(DTYPE_F64), 8);
    ck_assert_uint_eq(dtype_size(DTYPE_I64), 8);
    ck_assert_uint_eq(dtype_size(DTYPE_U8), 1);
}
END_TEST

struct cover {
    int hits[1000];
    int ends[1000]; /* 1 where a part ended */
};

static void cover_part(int64_t begin, int64_t end, void *context)
{
    struct cover *cover = context;
    for (int64_t i = begin; i < end; i++)
        cover->hits[i]++;
    cover->ends[end - 1] = 1;
}

static int cover_parts(int64_t n, int64_t grain, int n_threads)
{
    static struct cover cover;
    memset(&cover, 0, sizeof cover);
    team_set_size(n_threads);
    ck_assert_int_eq(team_size(), n_threads);
    team_for(n, grain, cover_part, &cover);
    int parts = 0;
    for (int64_t i = 0; i < 1000; i++) {
        ck_assert_int_eq(cover.hits[i], i < n);
        parts += cover.ends[i];
    }
    return parts;
}

START_TEST(team_covers_each_index_once_in_equal_parts)
{
    ck_assert_int_eq(cover_parts(0, 1, 2), 0);
    ck_assert_int_eq(cover_parts(1, 1, 3), 1);
    ck_assert_int_eq(cover_parts(2, 1, 3), 2);
    ck_assert_int_eq(cover_parts(1000, 1, 1), 1);
    ck_assert_int_eq(cover_parts(1000, 1, 2), 2);
    ck_assert_int_eq(cover_parts(1000, 1, 3), 3);
    ck_assert_int_eq(cover_parts(999, 500, 3), 1); /* less than two grains: not worth a team */
    ck_assert_int_eq(cover_parts(1000, 500, 3), 3);
}
END_TEST

struct trail {
    int order[200];
    int n;
    int team;
};

static void append(void *context)
{
    struct trail *trail = context;
    trail->order[trail->n] = trail->n;
    trail->n++;
    trail->team = team_size();
}

START_TEST(thread_runs_tasks_in_order)
{
    struct err err = ERR_INIT;
    struct thread *thread = NULL;
    struct trail trail = {.n = 0};
    ck_assert_int_eq(thread_start("cpu:0", NULL, 0, 2, &thread, &err), 0);
    thread_wait(thread); /* nothing was submitted */
    for (int i = 0; i < 150; i++)
        thread_submit(thread, append, &trail);
    thread_wait(thread);
    ck_assert_int_eq(trail.n, 150);
    ck_assert_int_eq(trail.team, 2);
    for (int i = 0; i < 50; i++)
        thread_submit(thread, append, &trail);
    thread_stop(thread); /* runs what waits */
    ck_assert_int_eq(trail.n, 200);
    thread_stop(NULL);
}
END_TEST

START_TEST(thread_on_an_impossible_core_is_an_error)
{
    struct err err = ERR_INIT;
    struct thread *thread = NULL;
    int core = 100000;
    ck_assert_int_eq(thread_start("cpu:7", &core, 1, 1, &thread, &err), ERR_DEVICE_FAILED);
    ck_assert_ptr_null(thread);
    ck_assert_ptr_nonnull(strstr(err.message, "cpu:7"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base");
    TCase *memory = checks_case(suite, "memory", 0);
    tcase_add_test(memory, arena_pieces_are_zeroed_aligned_and_apart);
    tcase_add_test(memory, arena_refuses_sizes_that_overflow);
    tcase_add_test(memory, arena_text_and_growing_arrays);
    tcase_add_test(memory, shapes);
    tcase_add_test(memory, dtypes);
    TCase *threads = checks_case(suite, "threads", 0);
    tcase_add_test(threads, team_covers_each_index_once_in_equal_parts);
    tcase_add_test(threads, thread_runs_tasks_in_order);
    tcase_add_test(threads, thread_on_an_impossible_core_is_an_error);
    return checks_run(suite);
}
