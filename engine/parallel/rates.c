/* rates.c: see rates.h. Each rate is that of one node, run through the backend as a plan would. */
#include "engine/parallel/rates.h"

#include <float.h>

#include "engine/base/clock.h"
#include "engine/graph/op.h"
#include "engine/parallel/memory.h"

enum { SIDE = 1536, ROWS = 1 << 13, COLUMNS = 1 << 12, LEAST_RUNS = 6 };

static const double least_seconds = 0.3;

struct trial {
    const struct backend *backend;
    struct device *device;
    const struct node *node;
    bool inplace; /* the first output is written over the first input */
    struct arena *arena;
    struct kernel_choice choice;
    const struct kernel *kernel;
    void *state;
    struct memory in[NODE_MAX_IN], out[NODE_MAX_OUT], scratch;
};

static int allocate(struct trial *trial, size_t bytes, struct memory *ret_memory, struct err *err)
{
    return memory_alloc(trial->backend, trial->device, "the device", bytes, "trial", ret_memory,
                        err);
}

static int prepare(struct trial *trial, struct err *err)
{
    const struct backend *backend = trial->backend;
    const struct node *node = trial->node;
    const struct layout *plain[NODE_MAX_IN];
    trial->kernel = backend_kernel(backend, node->op->name);
    if (trial->kernel == NULL)
        return err_set(err, ERR_DEVICE_FAILED, "there is no kernel");
    for (int i = 0; i < node->n_in; i++) {
        plain[i] = backend->layout_plain(trial->arena, &node->in[i]->shape, node->in[i]->dtype);
        if (plain[i] == NULL)
            return err_set(err, ERR_NOMEM, "out of memory");
    }
    int rc = trial->kernel->query(node, plain, trial->arena, &trial->choice, err);
    if (rc == 0)
        rc = trial->kernel->create(trial->device, node, &trial->choice, &trial->state, err);
    for (int i = 0; rc == 0 && i < node->n_in; i++) {
        rc = allocate(trial, backend->layout_bytes(trial->choice.in[i]), &trial->in[i], err);
        if (rc == 0)
            rc = memory_fill(backend, trial->device, &trial->in[i], 0, trial->in[i].bytes, 1, err);
    }
    for (int i = 0; rc == 0 && i < node->n_out; i++)
        rc = allocate(trial, backend->layout_bytes(trial->choice.out[i]), &trial->out[i], err);
    return rc == 0 ? allocate(trial, trial->choice.scratch_bytes, &trial->scratch, err) : rc;
}

/* The quickest of some runs: the first one touches the memory. */
static int time_runs(struct trial *trial, double *ret_seconds, struct err *err)
{
    void *in[NODE_MAX_IN], *out[NODE_MAX_OUT];
    const struct step step = {.number = 1, .loss_divisor = 1, .gradient_scale = 1};
    const struct kernel_args args = {
        .in = in, .out = out, .scratch = trial->scratch.at, .step = &step};
    double quickest = DBL_MAX, all = 0;
    int rc = 0;
    for (int i = 0; i < trial->node->n_in; i++)
        in[i] = trial->in[i].at;
    for (int i = 0; i < trial->node->n_out; i++)
        out[i] = trial->inplace && trial->choice.inplace[i] == 0 ? in[0] : trial->out[i].at;
    for (int i = 0; rc == 0 && (i < LEAST_RUNS || all < least_seconds); i++) {
        double begun = clock_seconds();
        rc = trial->kernel->run(trial->state, &args, err);
        double took = clock_seconds() - begun;
        all += took;
        quickest = took < quickest ? took : quickest;
    }
    *ret_seconds = quickest;
    return rc;
}

static int try_node(struct trial *trial, double *ret_seconds, struct err *err)
{
    trial->arena = arena_new();
    int rc = trial->arena != NULL ? prepare(trial, err) : err_set(err, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = time_runs(trial, ret_seconds, err);
    if (trial->state != NULL)
        trial->kernel->destroy(trial->state);
    for (int i = 0; i < NODE_MAX_IN; i++)
        memory_free(trial->backend, trial->device, &trial->in[i]);
    for (int i = 0; i < NODE_MAX_OUT; i++)
        memory_free(trial->backend, trial->device, &trial->out[i]);
    memory_free(trial->backend, trial->device, &trial->scratch);
    arena_free(trial->arena);
    return rc != 0 ? err_context(err, "%s", trial->node->op->name) : 0;
}

int rates_measure(const struct backend *backend, struct device *device, bool low,
                  struct estimate_rates *ret_rates, struct err *err)
{
    const struct op_def linear = {.name = "linear"}, add = {.name = "add"};
    enum dtype dtype = low ? DTYPE_BF16 : DTYPE_F32;
    struct value square = {.shape = SHAPE(SIDE, SIDE), .dtype = dtype}, weight = square,
                 product = square;
    struct value a = {.shape = SHAPE(ROWS, COLUMNS), .dtype = DTYPE_F32}, b = a, sum = a;
    const struct node product_node = {.op = &linear,
                                      .low = low,
                                      .n_in = 2,
                                      .n_out = 1,
                                      .in = {&square, &weight},
                                      .out = {&product}};
    const struct node sum_node = {.op = &add, .n_in = 2, .n_out = 1, .in = {&a, &b}, .out = {&sum}};
    struct trial computing = {.backend = backend, .device = device, .node = &product_node};
    struct trial moving = {
        .backend = backend, .device = device, .node = &sum_node, .inplace = true};
    double product_seconds, sum_seconds;
    int rc = try_node(&computing, &product_seconds, err);
    if (rc == 0)
        rc = try_node(&moving, &sum_seconds, err);
    if (rc != 0)
        return rc;
    *ret_rates = (struct estimate_rates){
        .flops = 2.0 * SIDE * SIDE * SIDE / product_seconds,
        .bytes = 3.0 * ROWS * COLUMNS * sizeof(float) / sum_seconds,
    };
    return 0;
}
