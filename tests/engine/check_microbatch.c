/* Row ranges against Tensor.split and torch.chunk, and over pipelines, stages and devices. */
#include "engine/parallel/microbatch.h"
#include "tests/lib/checks.h"

static const struct cut_case {
    struct microbatch_rule rule;
    int64_t samples;
    int64_t sizes[8]; /* of the micro-batches, then 0 */
} cuts[] = {
    {{0}, 10, {10}},
    {{0}, 0, {0}},
    {{.split_size = 4}, 10, {4, 4, 2}},
    {{.split_size = 5}, 10, {5, 5}},
    {{.split_size = 1}, 3, {1, 1, 1}},
    {{.split_size = 20}, 10, {10}},
    {{.split_size = INT64_MAX}, 10, {10}},
    {{.split_size = 3}, 0, {0}},
    {{.microbatches = 4}, 10, {3, 3, 3, 1}},
    {{.microbatches = 7}, 36, {6, 6, 6, 6, 6, 6}},
    {{.microbatches = 4}, 5, {2, 2, 1}},
    {{.microbatches = 4}, 9, {3, 3, 3}},
    {{.microbatches = 8}, 3, {1, 1, 1}},
    {{.microbatches = 4}, 1, {1}},
    {{.microbatches = 4}, 0, {0}},
};

START_TEST(cuts_as_pytorch_does)
{
    const struct cut_case *c = &cuts[_i];
    struct microbatch_rows rows = {100, c->samples};
    int64_t first = 100, n = 0;
    for (; c->sizes[n] > 0; n++) {
        struct microbatch_rows part = microbatch_cut(&c->rule, rows, n);
        ck_assert_int_eq(part.first, first);
        ck_assert_int_eq(part.n, c->sizes[n]);
        first += part.n;
    }
    ck_assert_int_eq(first, 100 + c->samples);
    ck_assert_int_eq(microbatch_count(&c->rule, c->samples), n);
    ck_assert_int_eq(microbatch_cut(&c->rule, rows, n).n, 0);
    ck_assert_int_eq(microbatch_cut(&c->rule, rows, INT64_MAX).n, 0);
}
END_TEST

/* 13 samples over 2 pipelines are 7 and 6; micro-batches of 4; a stage of 3 devices. */
static const struct worker_case {
    int64_t pipeline, microbatch, device;
    struct microbatch_rows rows;
} workers[] = {
    {0, 0, 0, {0, 2}},  {0, 0, 1, {2, 2}},  {0, 0, 2, {4, 0}},  {0, 1, 0, {4, 1}},
    {0, 1, 1, {5, 1}},  {0, 1, 2, {6, 1}},  {0, 2, 0, {7, 0}},  {1, 0, 0, {7, 2}},
    {1, 0, 1, {9, 2}},  {1, 0, 2, {11, 0}}, {1, 1, 0, {11, 1}}, {1, 1, 1, {12, 1}},
    {1, 1, 2, {13, 0}},
};

START_TEST(a_worker_has_its_rows)
{
    const struct worker_case *c = &workers[_i];
    struct microbatch_rule rule = {.split_size = 4};
    struct microbatch_rows rows = microbatch_chunk((struct microbatch_rows){0, 13}, 2, c->pipeline);
    rows = microbatch_cut(&rule, rows, c->microbatch);
    rows = microbatch_chunk(rows, 3, c->device);
    ck_assert_int_eq(rows.n, c->rows.n);
    ck_assert_int_eq(rows.first, c->rows.first);
}
END_TEST

static const struct overlap_case {
    struct microbatch_rows a, b, both;
} overlaps[] = {
    {{0, 4}, {2, 4}, {2, 2}}, {{2, 4}, {0, 4}, {2, 2}}, {{0, 4}, {4, 4}, {4, 0}},
    {{0, 2}, {6, 2}, {6, 0}}, {{0, 8}, {3, 1}, {3, 1}}, {{5, 0}, {0, 8}, {5, 0}},
};

START_TEST(overlap_is_what_both_have)
{
    const struct overlap_case *c = &overlaps[_i];
    struct microbatch_rows both = microbatch_overlap(c->a, c->b);
    ck_assert_int_eq(both.n, c->both.n);
    ck_assert_int_eq(both.first, c->both.first);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("microbatch");
    TCase *tcase = checks_case(suite, "microbatch", 0);
    tcase_add_loop_test(tcase, cuts_as_pytorch_does, 0, (int)(sizeof cuts / sizeof cuts[0]));
    tcase_add_loop_test(tcase, a_worker_has_its_rows, 0, (int)(sizeof workers / sizeof workers[0]));
    tcase_add_loop_test(tcase, overlap_is_what_both_have, 0,
                        (int)(sizeof overlaps / sizeof overlaps[0]));
    return checks_run(suite);
}
