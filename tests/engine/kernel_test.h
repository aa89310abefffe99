/* kernel_test.h: one node run by a CPU kernel as the planner and executor would, and by its
 * reference.
 *
 * query with the arrival layouts → reorder what the kernel wants otherwise → create → run twice
 * into memory full of NaN → compare: both runs bit for bit, padded channels still zero, and every
 * result within 1e-5 of the reference in max|a-b| / max|b|.
 */
#ifndef TESTS_ENGINE_KERNEL_TEST_H
#define TESTS_ENGINE_KERNEL_TEST_H

#include "engine/backend/backend.h"

enum fill {
    FILL_ABSENT,
    FILL_NORMAL,   /* [-1, 1) */
    FILL_POSITIVE, /* [0.5, 1.5) */
    FILL_CLASS,    /* I64 class numbers below in[0]'s dim[1] */
    FILL_ZERO,
};

struct tensor {
    struct shape shape;
    enum fill fill;
    enum dtype dtype; /* F32 unless said */
    bool variable;    /* always arrives plain */
    bool mutated;     /* an input that is compared afterwards */
    bool opaque;      /* the kernel's own: not compared */
    /* Filled by kernel_test_run. */
    double *reference; /* in plain order; given instead of made where it is not NULL before */
    void *memory;      /* as the kernel left or got it; given with `layout` for what is opaque */
    const struct layout *layout;
};

struct kernel_test {
    const char *op;
    const void *attr;
    struct tensor in[NODE_MAX_IN], out[NODE_MAX_OUT];
    struct step step;
    int64_t arrival_block; /* of inputs of rank 4 that are no variables; 0: plain */
    const float *override; /* in[0]'s elements, instead of random ones */
    /* Filled by kernel_test_run. */
    char impl[64];
};

/* Opens a device with a team of `n_threads`. */
void kernel_test_setup(int n_threads);
void kernel_test_teardown(void);
/* Runs and compares; the test fails on the first difference, naming the op and its shapes. */
void kernel_test_run(struct kernel_test *test);
/* Frees what run made. */
void kernel_test_done(struct kernel_test *test);

#endif
