/* chunk_sizes against torch.chunk's own sizes. */
#include <stdlib.h>

#include "engine/parallel/chunk.h"
#include "tests/lib/checks.h"

static const struct chunk_case {
    int64_t batch;
    int n, chunks;
    int64_t sizes[8];
} cases[] = {
    {30, 1, 1, {30}},
    {30, 2, 2, {15, 15}},
    {30, 3, 3, {10, 10, 10}},
    {10, 3, 3, {4, 4, 2}},
    {30, 8, 8, {4, 4, 4, 4, 4, 4, 4, 2}},
    {10, 8, 5, {2, 2, 2, 2, 2}},
    {5, 4, 3, {2, 2, 1}},
    {9, 4, 3, {3, 3, 3}},
    {10, 4, 4, {3, 3, 3, 1}},
    {36, 7, 6, {6, 6, 6, 6, 6, 6}},
    {1, 4, 1, {1}},
};

START_TEST(equals_torch_chunk)
{
    const struct chunk_case *c = &cases[_i];
    int64_t sizes[8];
    ck_assert_int_eq(chunk_sizes(c->batch, c->n, sizes), c->chunks);
    for (int i = 0; i < c->n; i++)
        ck_assert_int_eq(sizes[i], c->sizes[i]);
}
END_TEST

/* Consecutive runs that differ by one chunk at most, the first one of the longest. */
START_TEST(runs_of_chunks)
{
    for (int n = 1; n <= 64; n++)
        for (int devices = 1; devices <= n; devices++) {
            ck_assert_int_eq(chunk_first(n, devices, 0), 0);
            ck_assert_int_eq(chunk_first(n, devices, devices), n);
            for (int d = 0; d < devices; d++) {
                int first = chunk_first(n, devices, d), end = chunk_first(n, devices, d + 1);
                ck_assert(end - first == n / devices || end - first == (n - 1) / devices + 1);
                ck_assert_int_ge(chunk_first(n, devices, 1), end - first);
            }
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chunk");
    TCase *tcase = checks_case(suite, "chunk", 0);
    tcase_add_loop_test(tcase, equals_torch_chunk, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(tcase, runs_of_chunks);
    return checks_run(suite);
}
