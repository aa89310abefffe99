/* check_updates.c: the kernels of optimizers against their references, and the norm that clips. */
#include <math.h>
#include <stdlib.h>

#include "engine/base/rng.h"
#include "engine/graph/op.h"
#include "engine/ops/attr.h"
#include "tests/engine/kernel_test.h"

enum { N_SHAPES = 4, MAX_STATES = 3 };
static const struct shape shapes[N_SHAPES] = {
    {1, {1}}, {2, {3, 5}}, {4, {7, 3, 5, 2}}, {2, {33, 301}}};

/* Steps 1, 2 and 1000 of an update with these states, the gradient scaled and not. */
static void check_update(const char *op, const void *attr, struct shape shape,
                         const enum fill states[MAX_STATES])
{
    static const int64_t numbers[] = {1, 2, 1000};
    for (int k = 0; k < 2 * ROWS(numbers); k++) {
        struct kernel_test test = {.op = op, .attr = attr};
        test.step = (struct step){.number = numbers[k / 2], .lr = 0.1};
        test.in[0] = kernel_test_mutated(shape, FILL_NORMAL);
        test.in[1] = kernel_test_variable(shape, FILL_NORMAL);
        if (k % 2)
            test.in[2] = kernel_test_activation(SHAPE(1));
        for (int i = 0; i < MAX_STATES; i++)
            if (states[i] != FILL_ABSENT)
                test.in[3 + i] = kernel_test_mutated(shape, states[i]);
        kernel_test_run(&test);
        kernel_test_done(&test);
    }
}

static const struct sgd_attr sgd_rows[] = {
    {0, 0, 0, false},     {0, 0, 0.01, false},  {0.9, 0, 0, false},
    {0.9, 0.1, 0, false}, {0.9, 0, 1e-4, true}, {0.5, 0.3, 0.01, false},
};

static void sgd_row(int row)
{
    enum fill buffer = sgd_rows[row].momentum > 0 ? FILL_NORMAL : FILL_ABSENT;
    for (int s = 0; s < N_SHAPES; s++)
        check_update("sgd", &sgd_rows[row], shapes[s], (enum fill[MAX_STATES]){buffer});
}
ALL_ROWS(sgd, sgd_rows)

static const struct adam_row {
    struct adam_attr attr; /* beta1, beta2, eps, weight_decay, decoupled */
    bool amsgrad;
} adam_rows[] = {
    {{0.9, 0.999, 1e-8, 0, false}, false},   {{0.9, 0.999, 1e-8, 0.1, false}, false},
    {{0.9, 0.999, 1e-8, 0.01, true}, false}, {{0.5, 0.9, 1e-3, 0, false}, true},
    {{0.9, 0.99, 1e-8, 0.1, true}, true},    {{0, 0, 1e-8, 0, false}, false},
};

static void adam_row(int row)
{
    const struct adam_row *r = &adam_rows[row];
    enum fill largest = r->amsgrad ? FILL_POSITIVE : FILL_ABSENT;
    for (int s = 0; s < N_SHAPES; s++)
        check_update("adam", &r->attr, shapes[s],
                     (enum fill[MAX_STATES]){FILL_NORMAL, FILL_POSITIVE, largest});
}
ALL_ROWS(adam, adam_rows)

static const struct rmsprop_row {
    struct rmsprop_attr attr; /* alpha, eps, momentum, weight_decay */
    bool centered;
} rmsprop_rows[] = {
    {{0.99, 1e-8, 0, 0}, false},    {{0.99, 1e-8, 0.9, 0}, false}, {{0.9, 1e-6, 0, 0.1}, true},
    {{0.9, 1e-8, 0.5, 0.01}, true}, {{0.5, 1e-3, 0, 0}, false},
};

static void rmsprop_row(int row)
{
    const struct rmsprop_row *r = &rmsprop_rows[row];
    enum fill buffer = r->attr.momentum > 0 ? FILL_NORMAL : FILL_ABSENT;
    enum fill mean = r->centered ? FILL_ZERO : FILL_ABSENT; /* its square is below square_avg */
    for (int s = 0; s < N_SHAPES; s++)
        check_update("rmsprop", &r->attr, shapes[s],
                     (enum fill[MAX_STATES]){FILL_POSITIVE, buffer, mean});
}
ALL_ROWS(rmsprop, rmsprop_rows)

static float clip_scale(float *run, int64_t n, double max_norm)
{
    const struct clip_grad_norm_attr attr = {max_norm};
    return kernel_test_of_run("clip_grad_norm", &attr, run, n);
}

static const int64_t run_sizes[] = {4, 11, 255, 256, 257, 4099, 100003};

static void clip_row(int row)
{
    int64_t n = run_sizes[row];
    float *run = malloc((size_t)n * sizeof *run);
    double squares = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t words[4];
        rng_block(rng_key(5, RNG_DATA, 0), 0, (uint64_t)i, words);
        run[i] = rng_uniform(words[0]) - 0.5f;
        squares += (double)run[i] * (double)run[i];
    }
    double norm = sqrt(squares);
    ck_assert_float_eq_tol(clip_scale(run, n, norm / 3), (float)(norm / 3 / (norm + 1e-6)), 1e-7f);
    ck_assert_float_eq(clip_scale(run, n, 2 * norm), 1);
    run[n / 2] = NAN;
    ck_assert(isnan(clip_scale(run, n, 1)));
    run[n / 2] = INFINITY;
    ck_assert_float_eq(clip_scale(run, n, 1), 0);
    free(run);
}
ALL_ROWS(clip, run_sizes)

int main(void)
{
    const TTest *const tests[] = {sgd, adam, rmsprop, clip};
    return kernel_test_main("updates", tests, ROWS(tests));
}
