/* check_gemm_bf16.c: products in BF16 against sums in double, over edges of tiles, panels and
 * blocks of k; the same bits alone and on a team. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend/cpu/gemm_bf16.h"
#include "engine/base/team.h"
#include "tests/engine/low.h"
#include "tests/engine/models.h"
#include "tests/lib/checks.h"

static const struct row {
    int64_t m, n, k, gap; /* gap: behind each row of memory */
    float alpha, beta;
} rows[] = {
    {1, 1, 1, 0, 1, 0},      {8, 32, 2, 0, 1, 0},      {7, 31, 3, 2, 0.5f, 1},
    {9, 33, 255, 1, 1, 1},   {3, 65, 256, 0, 2, 0.5f}, {130, 40, 257, 3, 1, 0},
    {257, 5, 600, 0, -1, 1}, {64, 128, 64, 0, 1, 0},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static float *matrix(int64_t lines, int64_t stride, uint64_t seed)
{
    float *floats = malloc((size_t)(lines * stride) * sizeof *floats);
    models_fill(floats, (size_t)(lines * stride), seed);
    return floats;
}

/* The operand's element of row or column `line`, `k`-th along. */
static double element(const float *at, int64_t stride, bool along, int64_t line, int64_t k)
{
    return (double)(along ? at[line * stride + k] : at[k * stride + line]);
}

static void check_product(const struct row *r, char transa, char transb)
{
    bool along_a = transa == 'N', along_b = transb == 'T';
    int64_t lda = (along_a ? r->k : r->m) + r->gap, ldb = (along_b ? r->k : r->n) + r->gap;
    int64_t ldc = r->n + r->gap;
    size_t bytes = (size_t)(r->m * ldc) * sizeof(float);
    float *a = matrix(along_a ? r->m : r->k, lda, 1), *b = matrix(along_b ? r->n : r->k, ldb, 2);
    float *before = matrix(r->m, ldc, 3), *team = matrix(r->m, ldc, 3),
          *alone = matrix(r->m, ldc, 3);
    team_set_size(2);
    gemm_bf16(transa, transb, r->m, r->n, r->k, r->alpha, a, lda, b, ldb, r->beta, team, ldc);
    gemm_bf16_alone(transa, transb, r->m, r->n, r->k, r->alpha, a, lda, b, ldb, r->beta, alone,
                    ldc);
    ck_assert_mem_eq(team, alone, bytes);
    for (int64_t i = 0; i < r->m * ldc; i++) {
        double wanted = (double)before[i], largest = 0;
        if (i % ldc >= r->n) { /* nobody's */
            ck_assert(team[i] == before[i]);
            continue;
        }
        wanted *= (double)r->beta;
        for (int64_t k = 0; k < r->k; k++) {
            double term =
                element(a, lda, along_a, i / ldc, k) * element(b, ldb, along_b, i % ldc, k);
            wanted += (double)r->alpha * term;
            largest += fabs((double)r->alpha * term);
        }
        ck_assert_msg(fabs((double)team[i] - wanted) <= 8e-3 * largest, "%c%c row %d: %g, not %g",
                      transa, transb, (int)(r - rows), (double)team[i], wanted);
    }
    free(a);
    free(b);
    free(before);
    free(team);
    free(alone);
}

START_TEST(products)
{
    for (int i = 0; i < 4; i++)
        check_product(&rows[_i], i % 2 ? 'T' : 'N', i / 2 ? 'T' : 'N');
}
END_TEST

int main(void)
{
    static const char *const name = "products";
    if (low_missing() != NULL)
        return checks_skip(&name, 1, low_missing());
    Suite *suite = suite_create("gemm_bf16");
    tcase_add_loop_test(checks_case(suite, "gemm", 60), products, 0, N_ROWS);
    return checks_run(suite);
}
