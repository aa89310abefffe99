/* onednn.c: which implementation oneDNN gives each convolution and Linear, in which layouts, and
 * how long a call takes: the table of doc/onednn.md.
 *
 *     make bench/onednn && bench/onednn [THREADS]
 *
 * Each row runs through the backend as a plan would run it (the weight's reorder included), once to
 * warm up, then for a tenth of a second; the fastest call counts. Other work on the machine shows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/backend/cpu/layout.h"
#include "engine/base/team.h"
#include "engine/graph/op.h"
#include "engine/ops/attr.h"

static const struct conv_row {
    const char *name;
    int64_t n, c, size, o, kernel, stride, padding;
} conv_rows[] = {
    {"digits conv1 1→32, 8x8", 64, 1, 8, 32, 3, 1, 1},
    {"digits conv1, batch 32", 32, 1, 8, 32, 3, 1, 1},
    {"digits conv2 32→64, 8x8", 64, 32, 8, 64, 3, 1, 1},
    {"digits conv2, batch 32", 32, 32, 8, 64, 3, 1, 1},
    {"ResNet-50 7x7 3→64 /2, 128x128", 20, 3, 128, 64, 7, 2, 3},
    {"ResNet-50 1x1 64→256, 32x32", 20, 64, 32, 256, 1, 1, 0},
    {"ResNet-50 3x3 64→64, 32x32", 20, 64, 32, 64, 3, 1, 1},
    {"ResNet-50 3x3 128→128 /2, 32x32", 20, 128, 32, 128, 3, 2, 1},
    {"ResNet-50 1x1 256→512 /2, 32x32", 20, 256, 32, 512, 1, 2, 0},
    {"ResNet-50 3x3 512→512, 4x4", 20, 512, 4, 512, 3, 1, 1},
};

static const struct linear_row {
    const char *name;
    int64_t n, f, o;
} linear_rows[] = {
    {"digits fc 1024→10", 64, 1024, 10},
    {"MLP 784→512", 64, 784, 512},
    {"ResNet-50 fc 2048→1000", 20, 2048, 1000},
};

struct bench {
    struct device *device;
    struct arena *arena;
    const char *name; /* of the row */
};

static void die(const char *what, const struct err *err)
{
    fprintf(stderr, "onednn: %s: %s\n", what, err->message);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Small numbers: denormal or huge ones would be timed differently. */
static void *new_tensor(const struct bench *bench, size_t bytes)
{
    float *data = backend_cpu.alloc(bench->device, bytes);
    if (!data)
        die("memory", &(struct err){.message = "too little"});
    for (size_t i = 0; i < bytes / sizeof *data; i++)
        data[i] = (float)(i % 17) * 0.01f;
    return data;
}

static double fastest(const struct kernel *kernel, void *state, const struct kernel_args *args)
{
    struct err err = ERR_INIT;
    double best = 1e9, end = 0;
    for (int i = 0; i < 4 || now() < end; i++) {
        double begin = now();
        if (kernel->run(state, args, &err))
            die(kernel->op, &err);
        double took = now() - begin;
        if (i == 0)
            end = now() + 0.1; /* the first is the warm-up */
        else if (took < best)
            best = took;
    }
    return best;
}

static void print_row(const struct bench *bench, const struct node *node,
                      const struct kernel_choice *choice, double seconds, double flops)
{
    char in[64], out[64];
    printf("| %s | %s | `%s` | ", bench->name, node->op->name, choice->impl);
    printf("%s → %s | ", backend_cpu.layout_name(choice->in[0], in),
           backend_cpu.layout_name(choice->out[0], out));
    printf(seconds < 1e-3 ? "%.3f | " : "%.2f | ", seconds * 1e3);
    if (flops > 0)
        printf("%.0f |\n", flops / seconds * 1e-9);
    else
        printf("– |\n");
}

/* Times one node; where its kernel leaves the layout to who comes before, images are nChw16c. */
static void run_node(const struct bench *bench, const struct node *node, double flops)
{
    const struct kernel *kernel = backend_kernel(&backend_cpu, node->op->name);
    const struct layout *arrival[NODE_MAX_IN];
    struct kernel_choice choice;
    struct err err = ERR_INIT;
    for (int i = 0; i < node->n_in; i++)
        arrival[i] = layout_blocked(bench->arena, &node->in[i]->shape, DTYPE_F32, 16);
    if (kernel->query(node, arrival, bench->arena, &choice, &err))
        die(node->op->name, &err);
    void *state, *in[NODE_MAX_IN], *out[NODE_MAX_OUT];
    void *scratch = new_tensor(bench, choice.scratch_bytes);
    if (kernel->create(bench->device, node, &choice, &state, &err))
        die(node->op->name, &err);
    for (int i = 0; i < node->n_in; i++)
        in[i] = new_tensor(bench, backend_cpu.layout_bytes(choice.in[i]));
    for (int i = 0; i < node->n_out; i++)
        out[i] = new_tensor(bench, backend_cpu.layout_bytes(choice.out[i]));
    struct kernel_args args = {.in = in, .out = out, .scratch = scratch};
    print_row(bench, node, &choice, fastest(kernel, state, &args), flops);
    kernel->destroy(state);
    for (int i = 0; i < node->n_in; i++)
        backend_cpu.free(bench->device, in[i], backend_cpu.layout_bytes(choice.in[i]));
    for (int i = 0; i < node->n_out; i++)
        backend_cpu.free(bench->device, out[i], backend_cpu.layout_bytes(choice.out[i]));
    backend_cpu.free(bench->device, scratch, choice.scratch_bytes);
}

/* A node of these values; absent ones end the lists. */
static void run_op(const struct bench *bench, const char *name, const void *attr,
                   struct value *const in[], int n_in, struct value *const out[], int n_out,
                   double flops)
{
    struct op_def op = {.name = name};
    struct node node = {.op = &op, .attr = attr, .n_in = n_in, .n_out = n_out};
    memcpy(node.in, in, (size_t)n_in * sizeof in[0]);
    memcpy(node.out, out, (size_t)n_out * sizeof out[0]);
    run_node(bench, &node, flops);
}

#define RUN(bench, op, attr, in, out, flops)                                                       \
    run_op(bench, op, attr, in, sizeof(in) / sizeof((in)[0]), out, sizeof(out) / sizeof((out)[0]), \
           flops)

static void run_conv(const struct bench *bench, const struct conv_row *r)
{
    int64_t size = (r->size + 2 * r->padding - r->kernel) / r->stride + 1;
    struct conv2d_attr attr = {{r->stride, r->stride}, {r->padding, r->padding}, {1, 1}, 1};
    struct value x = {.shape = SHAPE(r->n, r->c, r->size, r->size)};
    struct value w = {.shape = SHAPE(r->o, r->c, r->kernel, r->kernel)};
    struct value y = {.shape = SHAPE(r->n, r->o, size, size)};
    double flops = 2 * (double)shape_count(&y.shape) * (double)(r->c * r->kernel * r->kernel);
    RUN(bench, "conv2d", &attr, ((struct value *[]){&x, &w}), ((struct value *[]){&y}), flops);
    RUN(bench, "conv2d_input_grad", &attr, ((struct value *[]){&y, &w}), ((struct value *[]){&x}),
        flops);
    RUN(bench, "conv2d_weight_grad", &attr, ((struct value *[]){&x, &y}), ((struct value *[]){&w}),
        flops);
}

static void run_linear(const struct bench *bench, const struct linear_row *r)
{
    struct value x = {.shape = SHAPE(r->n, r->f)}, w = {.shape = SHAPE(r->o, r->f)};
    struct value y = {.shape = SHAPE(r->n, r->o)};
    double flops = 2 * (double)(r->n * r->f * r->o);
    RUN(bench, "linear", NULL, ((struct value *[]){&x, &w}), ((struct value *[]){&y}), flops);
    RUN(bench, "linear_input_grad", NULL, ((struct value *[]){&y, &w}), ((struct value *[]){&x}),
        flops);
    RUN(bench, "linear_weight_grad", NULL, ((struct value *[]){&x, &y}), ((struct value *[]){&w}),
        flops);
}

int main(int argc, char **argv)
{
    int n_threads = argc > 1 ? atoi(argv[1]) : 1;
    struct bench bench = {.arena = arena_new()};
    struct device_config config = {.name = "cpu:0", .n_threads = n_threads};
    struct err err = ERR_INIT;
    team_set_size(n_threads < 1 ? 1 : n_threads);
    if (backend_cpu.device_open(&config, &bench.device, &err))
        die("cpu:0", &err);
    printf("| layer | op | implementation | layouts | ms | GFLOP/s |\n|---|---|---|---|--:|--:|\n");
    for (size_t i = 0; i < sizeof conv_rows / sizeof conv_rows[0]; i++) {
        bench.name = conv_rows[i].name;
        run_conv(&bench, &conv_rows[i]);
    }
    for (size_t i = 0; i < sizeof linear_rows / sizeof linear_rows[0]; i++) {
        bench.name = linear_rows[i].name;
        run_linear(&bench, &linear_rows[i]);
    }
    backend_cpu.device_close(bench.device);
    arena_free(bench.arena);
    return 0;
}
