/* check_init.c: variables at the start: a function of seed, name and element. */
#include <math.h>
#include <string.h>

#include "engine/train/init.h"
#include "tests/lib/checks.h"

enum { N = 4001 };

static const struct variable weight = {
    .name = "fc.weight", .shape = {1, {N}}, .dtype = DTYPE_F32, .init = {INIT_UNIFORM, 0.125}};

START_TEST(uniform_fills_its_interval)
{
    static float w[N];
    float low = 1, high = -1;
    double sum = 0, square = 0;
    init_variable(&weight, 3, w);
    for (int i = 0; i < N; i++) {
        low = fminf(low, w[i]);
        high = fmaxf(high, w[i]);
        sum += w[i];
        square += w[i] * w[i];
    }
    ck_assert_float_ge(low, -0.125f);
    ck_assert_float_lt(low, -0.124f);
    ck_assert_float_le(high, 0.125f);
    ck_assert_float_gt(high, 0.124f);
    /* Four standard errors around 0 and bound²/3. */
    ck_assert_double_lt(fabs(sum / N), 4 * 0.125 / sqrt(3.0 * N));
    ck_assert_double_lt(fabs(square / N / (0.125 * 0.125 / 3) - 1), 0.06);
}
END_TEST

START_TEST(it_depends_on_seed_and_name_alone)
{
    static float a[N], b[N];
    struct variable shorter = weight, other = weight;
    init_variable(&weight, 3, a);
    init_variable(&weight, 3, b);
    ck_assert_mem_eq(a, b, sizeof a);
    shorter.shape.dim[0] = 10;
    memset(b, 0, sizeof b);
    init_variable(&shorter, 3, b);
    ck_assert_mem_eq(a, b, 10 * sizeof a[0]);
    ck_assert_float_eq(b[10], 0);
    init_variable(&weight, 4, b);
    ck_assert_mem_ne(a, b, sizeof a);
    other.name = "fc2.weight";
    init_variable(&other, 3, b);
    ck_assert_mem_ne(a, b, sizeof a);
}
END_TEST

START_TEST(zeros_and_ones_of_both_types)
{
    float f[3] = {5, 5, 5};
    int64_t whole[3] = {5, 5, 5};
    struct variable variable = {
        .name = "v", .shape = {1, {3}}, .dtype = DTYPE_F32, .init = {INIT_ONE, 0}};
    init_variable(&variable, 1, f);
    ck_assert_float_eq(f[0], 1);
    ck_assert_float_eq(f[2], 1);
    variable.init.kind = INIT_ZERO;
    init_variable(&variable, 1, f);
    ck_assert_float_eq(f[0], 0);
    ck_assert_float_eq(f[2], 0);
    variable.dtype = DTYPE_I64;
    init_variable(&variable, 1, whole);
    ck_assert_int_eq(whole[2], 0);
    variable.init.kind = INIT_ONE;
    init_variable(&variable, 1, whole);
    ck_assert_int_eq(whole[0], 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("init");
    TCase *tcase = checks_case(suite, "init", 0);
    tcase_add_test(tcase, uniform_fills_its_interval);
    tcase_add_test(tcase, it_depends_on_seed_and_name_alone);
    tcase_add_test(tcase, zeros_and_ones_of_both_types);
    return checks_run(suite);
}
