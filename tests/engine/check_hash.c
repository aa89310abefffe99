/* check_hash.c: XXH64's published values. */
#include <string.h>

#include "engine/base/hash.h"
#include "tests/lib/checks.h"

static const struct {
    const char *text;
    uint64_t seed, want;
} known_answers[] = {
    {"", 0, 0xEF46DB3751D8E999u},
    {"a", 0, 0xD24EC4F1A98C6E5Bu},
    {"abc", 0, 0x44BC2CF5AD770999u},
    {"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1u},
};

START_TEST(known_answer)
{
    ck_assert_uint_eq(
        hash64(known_answers[_i].text, strlen(known_answers[_i].text), known_answers[_i].seed),
        known_answers[_i].want);
}
END_TEST

/* Every bit counts, at every length and with every seed. */
START_TEST(one_bit_changes_it)
{
    uint8_t bytes[70] = {0};
    for (size_t n = 1; n <= sizeof bytes; n++) {
        uint64_t before = hash64(bytes, n, 1);
        ck_assert_uint_ne(before, hash64(bytes, n, 2));
        ck_assert_uint_ne(before, hash64(bytes, n - 1, 1));
        bytes[n - 1] ^= 0x10;
        ck_assert_uint_ne(before, hash64(bytes, n, 1));
        bytes[n - 1] ^= 0x10;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hash");
    TCase *tcase = checks_case(suite, "hash", 0);
    tcase_add_loop_test(tcase, known_answer, 0, sizeof known_answers / sizeof known_answers[0]);
    tcase_add_test(tcase, one_bit_changes_it);
    return checks_run(suite);
}
