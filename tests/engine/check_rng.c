/* check_rng.c: Random123's known answers, and what the engine derives from them. */
#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "tests/lib/checks.h"

/* Random123's kat_vectors, rows "philox4x32 10". */
static const struct {
    uint32_t counter[4], key[2], want[4];
} known_answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

START_TEST(philox_known_answer)
{
    uint32_t got[4];
    philox4x32(known_answers[_i].counter, known_answers[_i].key, got);
    ck_assert_mem_eq(got, known_answers[_i].want, sizeof got);
}
END_TEST

START_TEST(keys_differ_by_every_part_of_their_address)
{
    struct rng_key keys[] = {
        rng_key(1, RNG_INIT, 0),
        rng_key(2, RNG_INIT, 0),
        rng_key(1, RNG_DATA, 0),
        rng_key(1, RNG_INIT, 1),
        rng_key(1ull << 32, RNG_INIT, 0),
        rng_key(1, RNG_INIT, 1ull << 32),
        rng_subkey(rng_key(1, RNG_INIT, 0), 0),
        rng_subkey(rng_key(1, RNG_INIT, 0), 1),
        rng_subkey(rng_key(1, RNG_INIT, 0), 1ull << 32),
    };
    const size_t n = sizeof keys / sizeof *keys;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_mem_ne(&keys[i], &keys[k], sizeof *keys);
    struct rng_key again = rng_key(1, RNG_INIT, 0);
    ck_assert_mem_eq(&again, &keys[0], sizeof again);
}
END_TEST

START_TEST(a_block_is_a_function_of_its_address)
{
    struct rng_key key = rng_key(7, RNG_DROPOUT, 3);
    uint32_t a[4], b[4], c[4], again[4];
    rng_block(key, 5, 0, a);
    rng_block(key, 5, 1, b);
    rng_block(key, 6, 0, c);
    rng_block(key, 5, 0, again);
    ck_assert_mem_eq(a, again, sizeof a);
    ck_assert_mem_ne(a, b, sizeof a);
    ck_assert_mem_ne(a, c, sizeof a);
}
END_TEST

START_TEST(uniform_lies_in_its_interval)
{
    ck_assert_float_eq(rng_uniform(0), 0.0f);
    ck_assert_float_eq(rng_uniform(0x80000000u), 0.5f);
    ck_assert_float_lt(rng_uniform(UINT32_MAX), 1.0f);
}
END_TEST

START_TEST(normal_has_its_moments_and_no_infinity)
{
    float edge[2];
    rng_normal(0, 0, edge);
    ck_assert_float_finite(edge[0]);
    ck_assert_float_finite(edge[1]);
    rng_normal(UINT32_MAX, 12345, edge);
    ck_assert_float_eq(edge[0], 0.0f);

    struct rng_key key = rng_key(1, RNG_DATA, 0);
    enum { BLOCKS = 50000 };
    double moment[5] = {0};
    for (uint64_t i = 0; i < BLOCKS; i++) {
        uint32_t word[4];
        float x[4];
        rng_block(key, i, 0, word);
        rng_normal(word[0], word[1], x);
        rng_normal(word[2], word[3], x + 2);
        for (int k = 0; k < 4; k++)
            for (int m = 1; m <= 4; m++)
                moment[m] += pow((double)x[k], m) / (4.0 * BLOCKS);
    }
    ck_assert_double_eq_tol(moment[1], 0.0, 0.01);
    ck_assert_double_eq_tol(moment[2], 1.0, 0.02);
    ck_assert_double_eq_tol(moment[3], 0.0, 0.04);
    ck_assert_double_eq_tol(moment[4], 3.0, 0.1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rng");
    TCase *tcase = checks_case(suite, "rng", 0);
    tcase_add_loop_test(tcase, philox_known_answer, 0,
                        (int)(sizeof known_answers / sizeof *known_answers));
    tcase_add_test(tcase, keys_differ_by_every_part_of_their_address);
    tcase_add_test(tcase, a_block_is_a_function_of_its_address);
    tcase_add_test(tcase, uniform_lies_in_its_interval);
    tcase_add_test(tcase, normal_has_its_moments_and_no_infinity);
    return checks_run(suite);
}
