/* gemm_bf16.c: see gemm_bf16.h.
 *
 * The processor multiplies pairs: of two neighbours along k. Both operands are packed as pairs, a
 * block of k at a time: A in tiles of ROWS rows, B in panels of COLUMNS columns, filled up with
 * zeros. A tile times a panel stays in registers; packed blocks stay in the caches, on the stack.
 */
#include "engine/backend/cpu/gemm_bf16.h"

#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/real.h"
#include "engine/base/team.h"

enum {
    ROWS = 8,
    COLUMNS = 32,
    PAIRS = 128,       /* of a block of k */
    ROWS_PACKED = 128, /* of A at once */
};

struct operand {
    const float *at;
    int64_t stride;
    bool along; /* k runs along a row of memory; else across the rows */
};

struct product {
    struct operand a, b; /* rows of A, columns of B */
    int64_t m, n, k;
    float alpha, beta, *c;
    int64_t ldc;
};

VECTOR_INLINE uint32_t pair_of(float first, float second)
{
    return real_round(first) | (uint32_t)real_round(second) << 16;
}

/* Lines `from` … of an operand, `n` of at most `width`, as to[pair][width]. */
VECTOR_CLONES static void pack(const struct operand *operand, int64_t from, int64_t n, int width,
                               int64_t k, int64_t k_end, uint32_t *to)
{
    int64_t pairs = (k_end - k + 1) / 2, whole = (k_end - k) / 2, stride = operand->stride;
    if (n < width || whole < pairs)
        memset(to, 0, (size_t)(pairs * width) * sizeof *to);
    for (int64_t l = 0; operand->along && l < n; l++) {
        const float *line = operand->at + (from + l) * stride + k;
        for (int64_t p = 0; p < whole; p++)
            to[p * width + l] = pair_of(line[2 * p], line[2 * p + 1]);
        if (whole < pairs)
            to[whole * width + l] = pair_of(line[2 * whole], 0);
    }
    for (int64_t p = 0; !operand->along && p < pairs; p++) {
        const float *first = operand->at + (k + 2 * p) * stride + from;
        const float *second = p < whole ? first + stride : first;
        uint32_t keep = p < whole ? 0xffffffff : 0xffff;
#pragma omp simd
        for (int64_t l = 0; l < n; l++)
            to[p * width + l] = pair_of(first[l], second[l]) & keep;
    }
}

#if defined __x86_64__
#include <immintrin.h>

enum { LANES = 16, VECTORS = COLUMNS / LANES };

__attribute__((target("avx512f,avx512bf16"))) static void
multiply(const uint32_t *a, const uint32_t *b, int64_t pairs, float out[ROWS][COLUMNS])
{
    __m512 sum[ROWS][VECTORS];
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < VECTORS; v++)
            sum[r][v] = _mm512_setzero_ps();
    for (int64_t p = 0; p < pairs; p++) {
        __m512bh columns[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            columns[v] = (__m512bh)_mm512_loadu_si512(b + p * COLUMNS + v * LANES);
        for (int r = 0; r < ROWS; r++) {
            __m512bh row = (__m512bh)_mm512_set1_epi32((int)a[p * ROWS + r]);
            for (int v = 0; v < VECTORS; v++)
                sum[r][v] = _mm512_dpbf16_ps(sum[r][v], row, columns[v]);
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_ps(out[r] + v * LANES, sum[r][v]);
}
#else
static float dot_pair(uint32_t a, uint32_t b)
{
    return real_widen((uint16_t)a) * real_widen((uint16_t)b) +
           real_widen((uint16_t)(a >> 16)) * real_widen((uint16_t)(b >> 16));
}

static void multiply(const uint32_t *a, const uint32_t *b, int64_t pairs, float out[ROWS][COLUMNS])
{
    memset(out, 0, sizeof(float) * ROWS * COLUMNS);
    for (int64_t p = 0; p < pairs; p++)
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++)
                out[r][c] += dot_pair(a[p * ROWS + r], b[p * COLUMNS + c]);
}
#endif

/* A tile's sums to C; the first block of k finds what beta is of. */
static void settle(const struct product *product, float tile[ROWS][COLUMNS], int64_t row,
                   int64_t rows, int64_t column, int64_t columns, bool is_first)
{
    float beta = is_first ? product->beta : 1;
    for (int64_t r = 0; r < rows; r++) {
        float *c = product->c + (row + r) * product->ldc + column;
        for (int64_t i = 0; i < columns; i++)
            c[i] = product->alpha * tile[r][i] + (beta == 0 ? 0 : beta * c[i]);
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows m … of A, packed, times a panel. */
static void multiply_panel(const struct product *product, const uint32_t *a, const uint32_t *b,
                           int64_t m, int64_t m_end, int64_t column, int64_t k, int64_t k_end)
{
    float tile[ROWS][COLUMNS];
    int64_t pairs = (k_end - k + 1) / 2;
    for (int64_t row = m; row < m_end; row += ROWS) {
        multiply(a + (row - m) * pairs, b, pairs, tile);
        settle(product, tile, row, least(ROWS, m_end - row), column,
               least(COLUMNS, product->n - column), k == 0);
    }
}

/* Panels `begin` to `end` of all rows. */
static void multiply_panels(int64_t begin, int64_t end, void *context)
{
    const struct product *product = context;
    uint32_t a[ROWS_PACKED * PAIRS], b[COLUMNS * PAIRS];
    for (int64_t k = 0; k < product->k; k += 2 * PAIRS) {
        int64_t k_end = least(k + 2 * PAIRS, product->k), pairs = (k_end - k + 1) / 2;
        for (int64_t m = 0; m < product->m; m += ROWS_PACKED) {
            int64_t m_end = least(m + ROWS_PACKED, product->m);
            for (int64_t row = m; row < m_end; row += ROWS)
                pack(&product->a, row, least(ROWS, m_end - row), ROWS, k, k_end,
                     a + (row - m) * pairs);
            for (int64_t panel = begin; panel < end; panel++) {
                int64_t column = panel * COLUMNS;
                pack(&product->b, column, least(COLUMNS, product->n - column), COLUMNS, k, k_end,
                     b);
                multiply_panel(product, a, b, m, m_end, column, k, k_end);
            }
        }
    }
}

static struct product product_of(char transa, char transb, int64_t m, int64_t n, int64_t k,
                                 float alpha, const float *a, int64_t lda, const float *b,
                                 int64_t ldb, float beta, float *c, int64_t ldc)
{
    return (struct product){
        .a = {a, lda, transa == 'N'},
        .b = {b, ldb, transb == 'T'},
        .m = m,
        .n = n,
        .k = k,
        .alpha = alpha,
        .beta = beta,
        .c = c,
        .ldc = ldc,
    };
}

dnnl_status_t gemm_bf16_alone(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                              float alpha, const float *a, dnnl_dim_t lda, const float *b,
                              dnnl_dim_t ldb, float beta, float *c, dnnl_dim_t ldc)
{
    struct product product =
        product_of(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    multiply_panels(0, (n + COLUMNS - 1) / COLUMNS, &product);
    return dnnl_success;
}

dnnl_status_t gemm_bf16(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                        float alpha, const float *a, dnnl_dim_t lda, const float *b, dnnl_dim_t ldb,
                        float beta, float *c, dnnl_dim_t ldc)
{
    struct product product =
        product_of(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    int64_t panels = (n + COLUMNS - 1) / COLUMNS, work = m * k * COLUMNS / 8;
    team_for(panels, OWN_GRAIN / work + 1, multiply_panels, &product);
    return dnnl_success;
}
