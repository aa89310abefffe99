/* kernel_test.c: see kernel_test.h. */
#include "tests/engine/kernel_test.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/graph/op.h"
#include "engine/ops/registry.h"
#include "tests/engine/low.h"
#include "tests/engine/test_device.h"
#include "tests/lib/apart.h"
#include "tests/lib/oom.h"
#include "tests/ref/ref.h"

/* A node with its values, and what the failure messages call it. */
struct bench {
    struct op_def op;
    struct node node;
    struct value values[NODE_MAX_IN + NODE_MAX_OUT];
    char name[512];
};

static bool runs_low(const struct kernel_test *test)
{
    const struct op_def *op = op_find(&op_registry, test->op);
    return low_on && op->low.rule != LOW_NEVER;
}

static void lower(struct tensor *tensors, int n, unsigned which)
{
    for (int i = 0; i < n; i++)
        if ((which >> i & 1) != 0 && tensors[i].dtype == DTYPE_F32 && !tensors[i].opaque)
            tensors[i].dtype = DTYPE_BF16;
}

static void lower_test(struct kernel_test *test)
{
    const struct op_def *op = op_find(&op_registry, test->op);
    if (!runs_low(test))
        return;
    lower(test->in, NODE_MAX_IN, op->low.in);
    lower(test->out, NODE_MAX_OUT, op->low.out);
}

static void add_values(struct bench *bench, struct tensor *tensors, int limit, struct value **slots,
                       int *ret_n)
{
    int first = slots == bench->node.in ? 0 : NODE_MAX_IN;
    for (int i = 0; i < limit; i++) {
        if (tensors[i].fill == FILL_ABSENT)
            continue;
        struct value *value = &bench->values[first + i];
        *value = (struct value){.id = first + i,
                                .name = "value",
                                .shape = tensors[i].shape,
                                .dtype = tensors[i].dtype,
                                .kind = VALUE_ACTIVATION,
                                .variable = -1};
        slots[i] = value;
        *ret_n = i + 1;
        char shape[160];
        size_t used = strlen(bench->name);
        snprintf(bench->name + used, sizeof bench->name - used, " %s",
                 shape_format(&tensors[i].shape, shape));
    }
}

static void make_node(struct bench *bench, struct kernel_test *test)
{
    *bench = (struct bench){.op = {.name = test->op}};
    snprintf(bench->name, sizeof bench->name, "%s", test->op);
    bench->node =
        (struct node){.op = &bench->op, .attr = test->attr, .name = "node", .low = runs_low(test)};
    add_values(bench, test->in, NODE_MAX_IN, bench->node.in, &bench->node.n_in);
    add_values(bench, test->out, NODE_MAX_OUT, bench->node.out, &bench->node.n_out);
}

static int64_t last_dim(const struct shape *shape)
{
    return shape->dim[shape->rank - 1];
}

static double from_bf16(uint16_t bf16)
{
    uint32_t bits = (uint32_t)bf16 << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

/* The nearest, of two as near the even one; neither NaN nor infinite. */
static uint16_t to_bf16(double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint16_t below = (uint16_t)(bits >> 16);
    uint32_t rest = bits & 0xffff;
    return (uint16_t)(isfinite(x) && (rest > 0x8000 || (rest == 0x8000 && below % 2 == 1))
                          ? below + 1
                          : below);
}

/* Every element is of the tensor's type, and of the one that products are computed in, so that
 * kernel and reference see the same. */
static double random_element(const struct kernel_test *test, const struct tensor *tensor, int input,
                             int64_t i)
{
    if (input == 0 && test->override)
        return (double)test->override[i];
    uint32_t words[4];
    rng_block(rng_key(7, RNG_DATA, (uint64_t)input), 0, (uint64_t)i, words);
    double uniform = (double)rng_uniform(words[0]);
    switch (tensor->fill) {
    case FILL_POSITIVE:
        return (double)(float)(uniform + 0.5);
    case FILL_CLASS:
        return floor(uniform * (double)last_dim(&test->in[0].shape));
    case FILL_INDEX:
        return floor(uniform * (double)tensor->limit);
    case FILL_LENGTH:
        return 1 + floor(uniform * (double)tensor->limit);
    case FILL_NORMAL:
        return 2 * uniform - 1;
    default:
        return 0;
    }
}

static void make_reference_inputs(struct kernel_test *test)
{
    for (int k = 0; k < NODE_MAX_IN; k++) {
        struct tensor *tensor = &test->in[k];
        if (tensor->fill == FILL_ABSENT || tensor->reference)
            continue;
        int64_t n = shape_count(&tensor->shape);
        bool rounds = tensor->dtype == DTYPE_BF16 || (tensor->dtype == DTYPE_F32 && runs_low(test));
        tensor->reference = calloc((size_t)n, sizeof(double));
        for (int64_t i = 0; i < n; i++) {
            double x = random_element(test, tensor, k, i);
            tensor->reference[i] = rounds ? from_bf16(to_bf16(x)) : x;
        }
    }
}

static void to_memory(const double *from, enum dtype dtype, int64_t n, void *to)
{
    for (int64_t i = 0; i < n; i++)
        if (dtype == DTYPE_F32)
            ((float *)to)[i] = (float)from[i];
        else if (dtype == DTYPE_BF16)
            ((uint16_t *)to)[i] = to_bf16(from[i]);
        else if (dtype == DTYPE_I64)
            ((int64_t *)to)[i] = (int64_t)from[i];
        else
            ((double *)to)[i] = from[i];
}

static double element(const void *memory, enum dtype dtype, int64_t i)
{
    return dtype == DTYPE_F32    ? (double)((const float *)memory)[i]
           : dtype == DTYPE_BF16 ? from_bf16(((const uint16_t *)memory)[i])
           : dtype == DTYPE_I64  ? (double)((const int64_t *)memory)[i]
                                 : ((const double *)memory)[i];
}

/* `memory`, which holds the tensor, in another layout, freshly allocated. */
static void *reordered(const struct tensor *tensor, const void *memory, const struct layout *from,
                       const struct layout *to)
{
    struct op_def op = {.name = "reorder"};
    struct value x = {.shape = tensor->shape, .dtype = tensor->dtype}, y = x;
    struct node node = {.op = &op, .n_in = 1, .n_out = 1, .in = {&x}, .out = {&y}};
    const struct layout *in[NODE_MAX_IN] = {from, to};
    struct kernel_choice choice;
    struct err err = ERR_INIT;
    const struct step step = {0};
    const struct kernel *kernel = backend_kernel(test_device.backend, "reorder");
    int rc = kernel->query(&node, in, test_device.arena, &choice, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_msg(strncmp(choice.impl, "ref", 3) != 0, "reorder: %s", choice.impl);
    void *result = test_device_host_memory(test_device.backend->layout_bytes(to));
    struct instance instance = instance_new(kernel, &node, &choice);
    instance_run(&instance, (void *[]){(void *)(uintptr_t)memory}, (void *[]){result}, &step);
    instance_free(&instance);
    return result;
}

static const struct layout *plain(const struct tensor *tensor)
{
    return test_device.backend->layout_plain(test_device.arena, &tensor->shape, tensor->dtype);
}

/* The input as the kernel wants it. */
static void *input_memory(const struct tensor *tensor, const struct layout *wanted)
{
    void *memory = test_device_host_memory(test_device.backend->layout_bytes(plain(tensor)));
    to_memory(tensor->reference, tensor->dtype, shape_count(&tensor->shape), memory);
    if (test_device.backend->layout_equal(plain(tensor), wanted))
        return memory;
    void *result = reordered(tensor, memory, plain(tensor), wanted);
    free(memory);
    return result;
}

static void compare(const struct bench *bench, const char *what, int index,
                    const struct tensor *tensor, double tolerance)
{
    void *memory = tensor->memory, *plain_memory = NULL;
    if (!test_device.backend->layout_equal(tensor->layout, plain(tensor))) {
        memory = plain_memory = reordered(tensor, tensor->memory, tensor->layout, plain(tensor));
        void *again = reordered(tensor, memory, plain(tensor), tensor->layout);
        ck_assert_msg(
            memcmp(again, tensor->memory, test_device.backend->layout_bytes(tensor->layout)) == 0,
            "%s: %s %d: padded channels are not zero", bench->name, what, index);
        free(again);
    }
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < shape_count(&tensor->shape); i++) {
        double a = element(memory, tensor->dtype, i), b = tensor->reference[i];
        if (isnan(a) && isnan(b))
            continue;
        ck_assert_msg(!isnan(a) && !isnan(b), "%s: %s %d: element %lld is %g, not %g", bench->name,
                      what, index, (long long)i, a, b);
        if (a == b)
            continue;
        largest = fmax(largest, fabs(b));
        worst = fmax(worst, fabs(a - b));
    }
    ck_assert_msg(worst <= tolerance * largest || worst < 1e-30, "%s: %s %d: off by %g of %g",
                  bench->name, what, index, worst, largest);
    free(plain_memory);
}

/* The reference agrees with the golden but for what its inputs lost in F32 or BF16; from here on
 * the golden is what is compared with. */
static void settle(const struct bench *bench, const char *what, int index,
                   const struct tensor *tensor, double tolerance)
{
    struct apart apart = {0, 0};
    if (tensor->golden == NULL)
        return;
    for (int64_t i = 0; i < shape_count(&tensor->shape); i++) {
        apart_add(&apart, tensor->reference[i], tensor->golden[i]);
        tensor->reference[i] = tensor->golden[i];
    }
    ck_assert_msg(apart.worst <= tolerance * apart.largest,
                  "%s: %s %d: the reference is off by %g of PyTorch's %g", bench->name, what, index,
                  apart.worst, apart.largest);
}

/* The layouts in which the test's inputs arrive. */
static void arrive(const struct bench *bench, const struct kernel_test *test,
                   const struct layout **ret)
{
    for (int k = 0; k < bench->node.n_in; k++) {
        const struct tensor *tensor = &test->in[k];
        if (tensor->fill == FILL_ABSENT)
            continue;
        bool image = tensor->shape.rank == 4 && !tensor->variable;
        ret[k] = tensor->layout
                     ? tensor->layout
                     : test_backend_arrival(test_device.arena, &tensor->shape, tensor->dtype,
                                            image ? test->arrival_block : 0);
    }
}

static void query(const struct bench *bench, const struct kernel *kernel, struct kernel_test *test,
                  struct kernel_choice *ret_choice)
{
    const struct layout *arrival[NODE_MAX_IN] = {0};
    arrive(bench, test, arrival);
    struct err err = ERR_INIT;
    int rc = kernel->query(&bench->node, arrival, test_device.arena, ret_choice, &err);
    ck_assert_msg(rc == 0, "%s: %s", bench->name, err.message);
    ck_assert_msg(strncmp(ret_choice->impl, "ref", 3) != 0, "%s: %s", bench->name,
                  ret_choice->impl);
    strcpy(test->impl, ret_choice->impl);
    for (int k = 0; k < bench->node.n_in; k++)
        if (test->in[k].fill != FILL_ABSENT && test->in[k].variable)
            ck_assert_msg(test_device.backend->layout_equal(ret_choice->in[k], plain(&test->in[k])),
                          "%s: input %d, a variable, is wanted otherwise than plain", bench->name,
                          k);
}

/* Fresh memory for a run: the inputs as they are wanted, the outputs full of NaN. */
static void make_memory(struct kernel_test *test, const struct kernel_choice *choice, void **in,
                        void **out)
{
    for (int k = 0; k < NODE_MAX_IN; k++) {
        struct tensor *tensor = &test->in[k];
        if (tensor->fill != FILL_ABSENT)
            in[k] = tensor->opaque ? tensor->memory : input_memory(tensor, choice->in[k]);
    }
    for (int k = 0; k < NODE_MAX_OUT; k++)
        if (test->out[k].fill != FILL_ABSENT)
            out[k] = test_device_host_memory(test_device.backend->layout_bytes(choice->out[k]));
}

static void free_inputs(const struct kernel_test *test, void **in)
{
    for (int k = 0; k < NODE_MAX_IN; k++)
        if (!test->in[k].opaque)
            free(in[k]);
}

static void run_reference(const struct bench *bench, struct kernel_test *test)
{
    double *in[NODE_MAX_IN] = {0}, *out[NODE_MAX_OUT] = {0};
    for (int k = 0; k < NODE_MAX_IN; k++)
        in[k] = test->in[k].reference;
    for (int k = 0; k < NODE_MAX_OUT; k++)
        if (test->out[k].fill != FILL_ABSENT)
            out[k] = test->out[k].reference =
                calloc((size_t)shape_count(&test->out[k].shape), sizeof(double));
    ref_find(test->op)(&bench->node, in, out, &test->step);
}

void kernel_test_run(struct kernel_test *test)
{
    struct bench bench;
    double tolerance = runs_low(test) ? 2e-2 : 1e-5, settled = runs_low(test) ? 2e-2 : 1e-6;
    lower_test(test);
    make_node(&bench, test);
    make_reference_inputs(test);
    const struct kernel *kernel = backend_kernel(test_device.backend, test->op);
    ck_assert_ptr_nonnull(kernel);
    struct kernel_choice choice;
    query(&bench, kernel, test, &choice);

    void *in[2][NODE_MAX_IN] = {0}, *out[2][NODE_MAX_OUT] = {0};
    struct instance instance = instance_new(kernel, &bench.node, &choice);
    for (int r = 0; r < 2; r++) {
        make_memory(test, &choice, in[r], out[r]);
        instance_run(&instance, in[r], out[r], &test->step);
    }
    instance_free(&instance);
    run_reference(&bench, test);
    for (int k = 0; k < NODE_MAX_OUT; k++) {
        struct tensor *tensor = &test->out[k];
        if (tensor->fill == FILL_ABSENT)
            continue;
        tensor->memory = out[0][k];
        tensor->layout = choice.out[k];
        ck_assert_msg(
            memcmp(out[0][k], out[1][k], test_device.backend->layout_bytes(choice.out[k])) == 0,
            "%s: output %d: two runs differ", bench.name, k);
        free(out[1][k]);
        settle(&bench, "output", k, tensor, settled);
        if (!tensor->opaque)
            compare(&bench, "output", k, tensor, tolerance);
    }
    for (int k = 0; k < NODE_MAX_IN; k++) {
        struct tensor *tensor = &test->in[k];
        if (!tensor->mutated)
            continue;
        struct tensor after = *tensor;
        after.memory = in[0][k];
        after.layout = choice.in[k];
        settle(&bench, "input", k, tensor, settled);
        compare(&bench, "input", k, &after, tolerance);
    }
    free_inputs(test, in[0]);
    free_inputs(test, in[1]);
}

void kernel_test_refuses(struct kernel_test *test, int code, const char *says)
{
    struct bench bench;
    struct kernel_choice choice;
    struct err err = ERR_INIT;
    void *in[NODE_MAX_IN] = {0}, *out[NODE_MAX_OUT] = {0};
    make_node(&bench, test);
    make_reference_inputs(test);
    const struct kernel *kernel = backend_kernel(test_device.backend, test->op);
    query(&bench, kernel, test, &choice);
    struct instance instance = instance_new(kernel, &bench.node, &choice);
    make_memory(test, &choice, in, out);
    ck_assert_int_eq(instance_try(&instance, in, out, &test->step, &err), code);
    ck_assert_str_eq(err.message, says);
    instance_free(&instance);
    free_inputs(test, in);
    for (int k = 0; k < NODE_MAX_OUT; k++)
        free(out[k]);
    test_device_close(); /* what it was told stays with it */
    test_device_open(1);
}

float kernel_test_of_run(const char *op, const void *attr, float *run, int64_t n)
{
    struct op_def def = {.name = op};
    struct value values[] = {{.shape = SHAPE(n - 3)}, {.shape = SHAPE(3)}, {.shape = SHAPE(1)}};
    struct node node = {.op = &def, .attr = attr, .n_in = 2, .n_out = 1};
    node.in[0] = &values[0], node.in[1] = &values[1], node.out[0] = &values[2];
    const struct kernel *kernel = backend_kernel(test_device.backend, op);
    const struct layout *arrival[NODE_MAX_IN] = {NULL};
    const struct step step = {0};
    struct kernel_choice choice;
    struct err err = ERR_INIT;
    float result = NAN;
    ck_assert_int_eq(kernel->query(&node, arrival, test_device.arena, &choice, &err), 0);
    struct instance instance = instance_new(kernel, &node, &choice);
    size_t bytes = (size_t)n * sizeof *run;
    char *memory = test_device_copy(run, bytes);
    void *out = test_device_copy(&result, sizeof result);
    void *scratch = test_device.backend->alloc(test_device.device, choice.scratch_bytes);
    const struct kernel_args args = {.in = (void *[]){memory, memory + bytes - 3 * sizeof *run},
                                     .out = &out,
                                     .scratch = scratch,
                                     .step = &step};
    ck_assert_int_eq(test_device_run(&instance, &args, &err), 0);
    test_device_take(run, memory, bytes);
    test_device_take(&result, out, sizeof result);
    test_device.backend->free(test_device.device, scratch, choice.scratch_bytes);
    instance_free(&instance);
    return result;
}

double kernel_test_element(const struct tensor *tensor, int64_t i)
{
    return element(tensor->memory, tensor->dtype, i);
}

void kernel_test_done(struct kernel_test *test)
{
    for (int k = 0; k < NODE_MAX_IN; k++) {
        free(test->in[k].golden);
        if (!test->in[k].opaque)
            free(test->in[k].reference);
    }
    for (int k = 0; k < NODE_MAX_OUT; k++) {
        free(test->out[k].golden);
        free(test->out[k].reference);
        free(test->out[k].memory);
    }
}

/* One attempt; whatever it made is freed. */
static int query_and_create(const struct bench *bench, const struct kernel *kernel,
                            const struct layout *const *arrival, struct err *err)
{
    struct arena *layouts = arena_new();
    struct kernel_choice choice;
    void *state = NULL;
    int rc = layouts ? kernel->query(&bench->node, arrival, layouts, &choice, err)
                     : err_set(err, ERR_NOMEM, "no arena");
    if (rc == 0)
        rc = kernel->create(test_device.device, &bench->node, &choice, &state, err);
    if (rc == 0)
        kernel->destroy(state);
    arena_free(layouts);
    return rc;
}

void kernel_test_allocations(struct kernel_test *test)
{
    struct bench bench;
    if (test_device.backend != &backend_cpu)
        return; /* a module's allocations are not this program's */
    lower_test(test);
    make_node(&bench, test);
    const struct kernel *kernel = backend_kernel(test_device.backend, test->op);
    const struct layout *arrival[NODE_MAX_IN] = {0};
    arrive(&bench, test, arrival);
    for (long n = 1;; n++) {
        struct err err = ERR_INIT;
        oom_arm(n);
        int rc = query_and_create(&bench, kernel, arrival, &err);
        if (!oom_disarm()) {
            ck_assert_msg(rc == 0, "%s: %s", bench.name, err.message);
            ck_assert_int_gt(n, 1);
            return;
        }
        ck_assert_msg(rc == ERR_NOMEM, "%s: allocation %ld failed, and the result is %d",
                      bench.name, n, rc);
    }
}

void kernel_test_arrivals(const struct kernel_test *test)
{
    if (low_on && !runs_low(test))
        return; /* the program that is not low has it */
    for (int i = 0; i < test_backend_n_arrivals; i++) {
        struct kernel_test one = *test;
        one.arrival_block = test_backend_arrivals[i];
        kernel_test_run(&one);
        kernel_test_done(&one);
    }
}

struct tensor kernel_test_activation(struct shape shape)
{
    return (struct tensor){.shape = shape, .fill = FILL_NORMAL};
}

struct tensor kernel_test_variable(struct shape shape, enum fill fill)
{
    return (struct tensor){.shape = shape, .fill = fill, .variable = true};
}

struct tensor kernel_test_mutated(struct shape shape, enum fill fill)
{
    return (struct tensor){.shape = shape, .fill = fill, .variable = true, .mutated = true};
}

static void setup_first(void)
{
    test_device_open(test_backend_teams[0]);
}

static void setup_second(void)
{
    test_device_open(test_backend_teams[1]);
}

static const char *missing(void)
{
    const char *why = low_missing();
    return why == NULL && test_backend(&why) != NULL ? NULL : why;
}

int kernel_test_main(const char *name, const TTest *const *tests, int n)
{
    if (missing() != NULL) {
        const char *skipped[64];
        assert(n <= ROWS(skipped));
        for (int i = 0; i < n; i++)
            skipped[i] = tests[i]->name;
        return checks_skip(skipped, (size_t)n, missing());
    }
    void (*const setups[])(void) = {setup_first, setup_second};
    const char *const names[] = {"one thread", "two threads"};
    Suite *suite = suite_create(name);
    for (int s = 0; s < test_backend_n_teams; s++) {
        TCase *tcase = checks_case(suite, names[s], 120);
        tcase_add_checked_fixture(tcase, setups[s], test_device_close);
        for (int i = 0; i < n; i++)
            tcase_add_test(tcase, tests[i]);
    }
    return checks_run(suite);
}
