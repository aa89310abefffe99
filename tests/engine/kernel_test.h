/* kernel_test.h: one node run by a kernel as the planner and executor would, and by its
 * reference.
 *
 * query with the arrival layouts → reorder what the kernel wants otherwise → create → run twice
 * into memory full of NaN → compare: both runs bit for bit, padded channels still zero, and every
 * result within 1e-5 of the reference in max|a-b| / max|b|.
 *
 * What is compared lies on the host; each run is of the device's copies. The backend is that of
 * test_backend.h.
 *
 * A program that is linked with low_on.c runs the same tables in bf16 (low.h): each op with those
 * operands in BF16 that its row in engine/ops names, within 2e-2. It is skipped on a CPU that has
 * no bf16.
 */
#ifndef TESTS_ENGINE_KERNEL_TEST_H
#define TESTS_ENGINE_KERNEL_TEST_H

#include "engine/backend/backend.h"
#include "tests/engine/test_backend.h"
#include "tests/lib/checks.h"

enum fill {
    FILL_ABSENT,
    FILL_NORMAL,   /* [-1, 1) */
    FILL_POSITIVE, /* [0.5, 1.5) */
    FILL_CLASS,    /* I64 class numbers below in[0]'s last dimension */
    FILL_INDEX,    /* I64 integers from 0 on, below the tensor's limit */
    FILL_LENGTH,   /* I64 integers from 1 to the tensor's limit */
    FILL_ZERO,
};

struct tensor {
    struct shape shape;
    enum fill fill;
    enum dtype dtype; /* F32 unless said, and BF16 instead where the op runs low */
    int64_t limit;    /* FILL_INDEX, FILL_LENGTH */
    bool variable;    /* always arrives plain */
    bool mutated;     /* an input that is compared afterwards */
    bool opaque;      /* the kernel's own: not compared */
    /* Filled by kernel_test_run. */
    double *reference; /* in plain order; given instead of made where it is not NULL before */
    double *golden; /* PyTorch's, or NULL: the reference has to agree, the kernel is compared with
                       it; freed by kernel_test_done */
    void *memory;   /* as the kernel left or got it; given with `layout` for what is opaque */
    const struct layout *layout;
};

struct kernel_test {
    const char *op;
    const void *attr;
    struct tensor in[NODE_MAX_IN], out[NODE_MAX_OUT];
    struct step step;
    int64_t arrival_block; /* test_backend_arrival of inputs of rank 4 that are no variables */
    const float *override; /* in[0]'s elements, instead of random ones */
    /* Filled by kernel_test_run. */
    char impl[64];
};

/* Tensors for a test's lists. */
struct tensor kernel_test_activation(struct shape shape);
struct tensor kernel_test_variable(struct shape shape, enum fill fill);
struct tensor kernel_test_mutated(struct shape shape, enum fill fill); /* a variable, written */

/* Runs and compares; the test fails on the first difference, naming the op and its shapes. */
void kernel_test_run(struct kernel_test *test);
/* Element i (row-major) of what a run left, plain. */
double kernel_test_element(const struct tensor *tensor, int64_t i);
/* Frees what run made. */
void kernel_test_done(struct kernel_test *test);
/* Runs and frees once an arrival of test_backend.h. */
void kernel_test_arrivals(const struct kernel_test *test);

/* Runs what must fail with that code and sentence; test->in[i].reference are its inputs. */
void kernel_test_refuses(struct kernel_test *test, int code, const char *says);
/* Runs an op of a run of gradients: the first has n - 3 elements, the last 3; its output. */
float kernel_test_of_run(const char *op, const void *attr, float *run, int64_t n);

/* Fails every allocation of query and create in turn: each must end as ERR_NOMEM. */
void kernel_test_allocations(struct kernel_test *test);

#define ROWS(table) (int)(sizeof(table) / sizeof((table)[0]))

/* The test of an op: all rows of its table in one process. */
#define ALL_ROWS(op, table)                                                                        \
    START_TEST(op)                                                                                 \
    {                                                                                              \
        for (int row = 0; row < ROWS(table); row++)                                                \
            op##_row(row);                                                                         \
    }                                                                                              \
    END_TEST

/* All tests, each on a device of each team size of test_backend.h. */
int kernel_test_main(const char *name, const TTest *const *tests, int n);

#endif
