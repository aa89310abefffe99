/* check_autograd.c: what autograd, plan and kernels make together, against differences: along a
 * direction d of each parameter, (L(w + h d) - L(w - h d)) / 2h must be <gradient, d>. d has the
 * gradient's signs, so that a part of the gradient that is wrong shows; h is so small that the loss
 * changes by a hundredth, but no smaller than float allows; 2 % are for the kinks of poolings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/team.h"
#include "engine/exec/executor.h"
#include "engine/ops/registry.h"
#include "engine/train/init.h"
#include "tests/engine/models.h"
#include "tests/lib/checks.h"

enum { BATCH = 6 };
static const double lr_none = 0; /* the update leaves the parameters as they are */

struct machine {
    struct model *model;
    struct graph *graph;
    struct variable_map map;
    struct plan *plan;
    struct device *device;
    struct executor *executor;
    void *base[SPACE_COUNT];
    size_t bytes[SPACE_COUNT];
};

static float *variable_at(const struct machine *machine, int variable)
{
    return (float *)((char *)machine->base[SPACE_VARIABLES] + machine->map.offset[variable]);
}

static void machine_fill(struct machine *machine)
{
    const struct model *model = machine->model;
    for (size_t i = 0; i < model->n_variables; i++)
        init_variable(&model->variables[i], 3, variable_at(machine, (int)i));
    models_fill(machine->base[SPACE_DATA], machine->bytes[SPACE_DATA] / sizeof(float), 5);
    int64_t *labels = machine->base[SPACE_TARGET];
    for (int64_t i = 0; i < BATCH; i++)
        labels[i] = i % model->classes;
}

static void machine_open(struct machine *machine, const char *input, const char *layers)
{
    static const struct graph_options options = {.batch = BATCH, .training = true, .n_replicas = 1};
    struct device_config config = {.name = "cpu:0", .n_threads = 1};
    struct err err = ERR_INIT;
    *machine = (struct machine){.model = models_new(input, layers, NULL)};
    team_set_size(1);
    int rc = graph_build(machine->model, &op_registry, &options, &machine->graph, &err);
    if (rc == 0)
        rc =
            variable_map_build(machine->model, NULL, 0, machine->model->arena, &machine->map, &err);
    if (rc == 0)
        rc =
            plan_build(&backend_cpu, machine->graph, &machine->map, CUT_NONE, &machine->plan, &err);
    if (rc == 0)
        rc = backend_cpu.device_open(&config, &machine->device, &err);
    if (rc == 0)
        rc = executor_new(machine->device, machine->plan, &machine->executor, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    machine->bytes[SPACE_VARIABLES] = machine->map.bytes;
    machine->bytes[SPACE_ARENA] = machine->plan->arena_bytes;
    machine->bytes[SPACE_DATA] =
        (size_t)shape_count(&machine->graph->data[0]->shape) * sizeof(float);
    machine->bytes[SPACE_TARGET] = BATCH * sizeof(int64_t);
    for (int space = SPACE_VARIABLES; space <= SPACE_DATA; space++) {
        machine->base[space] = backend_cpu.alloc(machine->device, machine->bytes[space]);
        ck_assert_ptr_nonnull(machine->base[space]);
    }
    machine_fill(machine);
}

static void machine_close(struct machine *machine)
{
    executor_free(machine->executor);
    for (int space = SPACE_VARIABLES; space <= SPACE_DATA; space++)
        backend_cpu.free(machine->device, machine->base[space], machine->bytes[space]);
    backend_cpu.device_close(machine->device);
    plan_free(machine->plan);
    graph_free(machine->graph);
    models_free(machine->model);
}

/* The sum of the batch's losses; the gradients are in their variables. */
static double machine_loss(struct machine *machine)
{
    struct err err = ERR_INIT;
    const struct step step = {.seed = 1, .number = 1, .loss_divisor = 1, .lr = lr_none};
    int rc =
        executor_run(machine->executor, &(struct run){.base = machine->base, .step = &step}, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    return *(double *)((char *)machine->base[SPACE_ARENA] + machine->plan->loss.offset);
}

static double loss_along(struct machine *machine, int parameter, const float *start,
                         const float *direction, size_t n, double h)
{
    float *w = variable_at(machine, parameter);
    for (size_t i = 0; i < n; i++)
        w[i] = (float)((double)start[i] + h * (double)direction[i]);
    double loss = machine_loss(machine);
    memcpy(w, start, n * sizeof *w);
    return loss;
}

static void check_parameter(struct machine *machine, int parameter)
{
    const struct variable *variable = &machine->model->variables[parameter];
    size_t n = (size_t)shape_count(&variable->shape);
    float *start = malloc(n * sizeof *start), *direction = malloc(n * sizeof *direction);
    ck_assert(start != NULL && direction != NULL);
    machine_loss(machine);
    const float *gradient = variable_at(machine, variable->gradient);
    memcpy(start, variable_at(machine, parameter), n * sizeof *start);
    models_fill(direction, n, (uint64_t)parameter);
    double slope = 0;
    for (size_t i = 0; i < n; i++) {
        direction[i] = copysignf(direction[i], gradient[i]);
        slope += (double)gradient[i] * (double)direction[i];
    }
    double h = fmin(2e-3, 0.01 / slope);
    double difference = (loss_along(machine, parameter, start, direction, n, h) -
                         loss_along(machine, parameter, start, direction, n, -h)) /
                        (2 * h);
    ck_assert_msg(fabs(difference - slope) <= 0.02 * slope + 0.005, "%s: %g by differences, %g",
                  variable->name, difference, slope);
    free(start);
    free(direction);
}

static const struct {
    const char *input, *layers;
} nets[] = {
    /* Linear on leading dimensions, a fan-out, a value read twice by one node, dropout. */
    {"[3, 5]", "{'type': 'Linear', 'name': 'a', 'out_features': 5},"
               "{'type': 'Dropout', 'name': 'd', 'p': 0.3},"
               "{'type': 'Add', 'name': 's', 'inputs': ['a', 'd', 'input', 'a']},"
               "{'type': 'Linear', 'name': 'b', 'out_features': 5},"
               "{'type': 'Add', 'name': 't', 'inputs': ['b', 's']},"
               "{'type': 'Flatten'}, {'type': 'Linear', 'name': 'fc', 'out_features': 4}"},
    /* A residual block with a strided short cut, padded channels, both poolings. */
    {"[3, 9, 9]",
     "{'type': 'Conv2d', 'name': 'c1', 'out_channels': 10, 'kernel_size': 3, 'stride': 2},"
     "{'type': 'BatchNorm2d', 'name': 'b1'},"
     "{'type': 'Conv2d', 'name': 'c2', 'out_channels': 10, 'kernel_size': 3, 'padding': 1,"
     " 'bias': false},"
     "{'type': 'BatchNorm2d', 'name': 'b2'},"
     "{'type': 'Conv2d', 'name': 'short', 'out_channels': 10, 'kernel_size': 1, 'stride': 2,"
     " 'padding': 0, 'groups': 1, 'inputs': ['b1']},"
     "{'type': 'MaxPool2d', 'name': 'p2', 'kernel_size': 2, 'ceil_mode': true, 'inputs': ['b2']},"
     "{'type': 'Add', 'name': 's', 'inputs': ['p2', 'short']},"
     "{'type': 'AdaptiveAvgPool2d', 'output_size': 1},"
     "{'type': 'Flatten'}, {'type': 'BatchNorm1d', 'name': 'b3', 'affine': false},"
     "{'type': 'Linear', 'name': 'fc', 'out_features': 4}"},
    /* Dilation and groups; ReLU. */
    {"[4, 8, 8]", "{'type': 'Conv2d', 'name': 'c1', 'out_channels': 8, 'kernel_size': 3,"
                  " 'dilation': 2, 'padding': [2, 1], 'groups': 2},"
                  "{'type': 'ReLU'}, {'type': 'MaxPool2d', 'kernel_size': 3, 'stride': 2,"
                  " 'padding': 1}, {'type': 'Flatten'},"
                  "{'type': 'Linear', 'name': 'fc', 'out_features': 4}"},
};

START_TEST(gradients_are_those_of_the_loss)
{
    struct machine machine;
    machine_open(&machine, nets[_i].input, nets[_i].layers);
    for (size_t i = 0; i < machine.model->n_variables; i++)
        if (machine.model->variables[i].kind == VARIABLE_PARAMETER)
            check_parameter(&machine, (int)i);
    machine_close(&machine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("autograd");
    TCase *tcase = checks_case(suite, "autograd", 60);
    tcase_add_loop_test(tcase, gradients_are_those_of_the_loss, 0,
                        (int)(sizeof nets / sizeof *nets));
    return checks_run(suite);
}
