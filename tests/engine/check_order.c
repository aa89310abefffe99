/* check_order.c: the order of samples, by value. */
#include <stdlib.h>

#include "engine/data/order.h"
#include "tests/lib/checks.h"

enum { N = 1000 };

START_TEST(shuffle_is_a_permutation)
{
    int64_t index[N];
    bool seen[N] = {false};
    order_epoch(7, 3, true, N, index);
    for (int i = 0; i < N; i++) {
        ck_assert_int_ge(index[i], 0);
        ck_assert_int_lt(index[i], N);
        ck_assert(!seen[index[i]]);
        seen[index[i]] = true;
    }
}
END_TEST

START_TEST(shuffle_depends_on_seed_and_epoch_alone)
{
    int64_t a[N], b[N];
    order_epoch(7, 3, true, N, a);
    order_epoch(7, 3, true, N, b);
    ck_assert_mem_eq(a, b, sizeof a);
    order_epoch(7, 4, true, N, b);
    ck_assert_mem_ne(a, b, sizeof a);
    order_epoch(8, 3, true, N, b);
    ck_assert_mem_ne(a, b, sizeof a);
}
END_TEST

START_TEST(without_shuffle_it_is_file_order)
{
    int64_t index[N];
    order_epoch(7, 3, false, N, index);
    for (int64_t i = 0; i < N; i++)
        ck_assert_int_eq(index[i], i);
}
END_TEST

/* Each of the 6 orders of three samples comes about equally often: chi-square with 5 degrees of
 * freedom stays below 20.5 but once in a thousand, and the draws are fixed. */
START_TEST(every_permutation_is_as_likely)
{
    int count[27] = {0};
    double chi_square = 0;
    for (int64_t epoch = 0; epoch < 6000; epoch++) {
        int64_t index[3];
        order_epoch(1, epoch, true, 3, index);
        count[index[0] * 9 + index[1] * 3 + index[2]]++;
    }
    for (int i = 0; i < 27; i++)
        if (count[i] > 0)
            chi_square += (count[i] - 1000.0) * (count[i] - 1000.0) / 1000.0;
    ck_assert_double_lt(chi_square, 20.5);
}
END_TEST

static const struct {
    int64_t n, batch_size;
    bool drop_last;
    int64_t batches, last;
} epochs[] = {
    {100, 30, false, 4, 10}, {100, 30, true, 3, 30}, {90, 30, false, 3, 30},
    {7, 30, false, 1, 7},    {7, 30, true, 0, 0},    {1, 1, false, 1, 1},
};

START_TEST(batches_of_an_epoch)
{
    ck_assert_int_eq(order_batches(epochs[_i].n, epochs[_i].batch_size, epochs[_i].drop_last),
                     epochs[_i].batches);
    if (epochs[_i].batches > 0)
        ck_assert_int_eq(
            order_batch_samples(epochs[_i].n, epochs[_i].batch_size, epochs[_i].batches - 1),
            epochs[_i].last);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("order");
    TCase *tcase = checks_case(suite, "order", 0);
    tcase_add_test(tcase, shuffle_is_a_permutation);
    tcase_add_test(tcase, shuffle_depends_on_seed_and_epoch_alone);
    tcase_add_test(tcase, without_shuffle_it_is_file_order);
    tcase_add_test(tcase, every_permutation_is_as_likely);
    tcase_add_loop_test(tcase, batches_of_an_epoch, 0, sizeof epochs / sizeof epochs[0]);
    return checks_run(suite);
}
