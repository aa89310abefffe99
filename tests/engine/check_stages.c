/* strategy by stages: whatever the schedule, the split, the micro-batches and the devices, a step
 * is the single device's; delays change no bit; a failure stops all.
 *
 * TRAIND_DELAYED_STEPS: how many steps are made with delays, 60 by default. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/models.h"
#include "tests/engine/shaky.h"
#include "tests/engine/stages_case.h"
#include "tests/lib/checks.h"

enum { STEPS = 3, PARAMETERS = 1 << VARIABLE_PARAMETER, BUFFERS = 1 << VARIABLE_BUFFER };

static const char *const schedules[] = {"none", "gpipe", "1f1b", "zero_bubble"};
enum { N_SCHEDULES = sizeof schedules / sizeof schedules[0] };

/* How a network is spread. Schedule «none» takes only those without micro-batches. */
static const struct spread {
    int stages, pipelines;
    const char *rule; /* a member of parallel */
    int64_t batch;
} spreads[] = {
    {2, 1, NULL, 13},
    {4, 1, NULL, 13},
    {2, 2, NULL, 13},
    {2, 1, "'split_size': 4", 13},
    {2, 1, "'split_size': 100", 13},
    {3, 1, "'microbatches': 5", 13},
    {4, 1, "'split_size': 1", 13},
    {4, 1, "'microbatches': 4", 3},
    {2, 1, "'microbatches': 40", 13},
    {2, 2, "'split_size': 2", 13},
    {3, 2, "'microbatches': 3", 13},
    {2, 2, "'microbatches': 3", 1}, /* the second pipeline rests */
};
enum { N_SPREADS = sizeof spreads / sizeof spreads[0] };

static const char *parallel_text(const struct stages_network *network, const struct spread *spread,
                                 const char *schedule)
{
    static char text[512];
    int n = snprintf(text, sizeof text,
                     "{'mode': 'stages', 'devices': %d, 'replicas': %d, 'schedule': '%s', %s%s"
                     "'split': [",
                     spread->stages * spread->pipelines, spread->pipelines, schedule,
                     spread->rule != NULL ? spread->rule : "", spread->rule != NULL ? ", " : "");
    for (int i = 0; i + 1 < spread->stages; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s'%s'", i > 0 ? ", " : "",
                      network->split[i]);
    snprintf(text + n, sizeof text - (size_t)n, "]}");
    return text;
}

static void compare_steps(struct stages_case *one, struct stages_case *many, int64_t n,
                          const char *what)
{
    for (int64_t number = 1; number <= STEPS; number++) {
        struct strategy_result a = stages_case_train(one, n, number);
        struct strategy_result b = stages_case_train(many, n, number);
        ck_assert_msg(fabs(a.loss - b.loss) <= 1e-6 * fabs(a.loss), "%s: loss %.9g, not %.9g", what,
                      b.loss, a.loss);
        int64_t samples = 0;
        for (int r = 0; r < LIMIT_DEVICES; r++)
            samples += b.replicas[r].samples;
        ck_assert_int_eq(samples, n);
    }
    stages_case_same(many, one, PARAMETERS, 1e-6);
    struct strategy_result a = stages_case_evaluate(one, n, STEPS);
    struct strategy_result b = stages_case_evaluate(many, n, STEPS);
    ck_assert_msg(fabs(a.loss - b.loss) <= 1e-6 * fabs(a.loss), "%s: validation loss", what);
    ck_assert_mem_eq(a.predictions, b.predictions,
                     (size_t)(n * one->model->loss_terms) * sizeof *a.predictions);
    for (int64_t i = 0; i < n * shape_count(&one->model->output); i++)
        ck_assert_float_eq_tol(b.outputs[i], a.outputs[i], 1e-5F);
}

static void check_spread(const struct stages_network *network, const struct spread *spread,
                         const char *schedule, double clip)
{
    static struct stages_case one, many;
    char what[128];
    struct stages_config config = {
        .n_devices = 1, .sizes = &spread->batch, .n_sizes = 1, .clip = clip};
    stages_case_open(&one, network, &config);
    config.parallel = parallel_text(network, spread, schedule);
    config.n_devices = spread->stages * spread->pipelines;
    snprintf(what, sizeof what, "%s, %s, %d stages, %s", network->name, schedule, spread->stages,
             spread->rule);
    stages_case_open(&many, network, &config);
    compare_steps(&one, &many, spread->batch, what);
    stages_case_close(&many);
    stages_case_close(&one);
}

START_TEST(equals_one_device)
{
    for (int s = 0; s < N_SCHEDULES; s++)
        for (int i = 0; i < N_SPREADS; i++)
            if (spreads[i].rule == NULL || s > 0)
                check_spread(&stages_networks[_i], &spreads[i], schedules[s], 0);
}
END_TEST

/* The norm is that of all stages' gradients, whoever has them. */
START_TEST(clips_over_all_stages)
{
    for (int i = 0; i < N_SPREADS; i++)
        check_spread(&stages_networks[_i], &spreads[i],
                     spreads[i].rule == NULL ? "none" : "zero_bubble", 0.02);
}
END_TEST

/* Devices of the first and of the second stage: a part of the network is data parallel. */
static const int wide[][2] = {{1, 2}, {3, 2}, {4, 1}};
enum { N_WIDE = sizeof wide / sizeof wide[0] };

static const char *wide_text(const struct stages_network *network, const char *first_layer,
                             const int *widths)
{
    static char text[512];
    int device = 0, n = snprintf(text, sizeof text,
                                 "{'mode': 'stages', 'schedule': '1f1b', 'split_size': 5,"
                                 " 'stages': [");
    for (int s = 0; s < 2; s++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "%s{'begin': '%s', 'devices': [",
                      s > 0 ? ", " : "", s == 0 ? first_layer : network->split[0]);
        for (int i = 0; i < widths[s]; i++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s'cpu:%d'", i > 0 ? ", " : "",
                          device++);
        n += snprintf(text + n, sizeof text - (size_t)n, "]}");
    }
    snprintf(text + n, sizeof text - (size_t)n, "]}");
    return text;
}

START_TEST(a_stage_may_have_several_devices)
{
    static struct stages_case one, many;
    const struct stages_network *network = &stages_networks[_i];
    for (int w = 0; w < N_WIDE; w++) {
        struct stages_config config = {.n_devices = 1, .clip = 0.05};
        stages_case_open(&one, network, &config);
        config.parallel = wide_text(network, one.model->job->model.layers[0].name, wide[w]);
        config.n_devices = wide[w][0] + wide[w][1];
        stages_case_open(&many, network, &config);
        compare_steps(&one, &many, STAGES_BATCH, network->name);
        stages_case_close(&many);
        stages_case_close(&one);
    }
}
END_TEST

/* Several batches to an update, of unequal sizes. */
static const int64_t window_sizes[] = {5, 5, 3};

static void train_window(struct stages_case *c, int64_t number)
{
    struct err err = ERR_INIT;
    struct strategy_result result;
    static const enum step_part parts[] = {STEP_FIRST, STEP_MIDDLE, STEP_LAST};
    int64_t first = 0;
    for (int i = 0; i < 3; i++) {
        int rc = stages_case_try(c, first, window_sizes[i], parts[i], number, &result, &err);
        ck_assert_msg(rc == 0, "%s", err.message);
        first += window_sizes[i];
    }
}

START_TEST(accumulates_batches)
{
    static struct stages_case one, many;
    const struct stages_network *network = &stages_networks[_i];
    struct stages_config config = {
        .n_devices = 1, .sizes = window_sizes, .n_sizes = 3, .windows = true, .clip = 0.1};
    stages_case_open(&one, network, &config);
    for (int64_t number = 1; number <= STEPS; number++)
        train_window(&one, number);
    for (int s = 1; s < N_SCHEDULES; s++) {
        const struct spread spread = {3, 2, "'split_size': 2", 0};
        config.parallel = parallel_text(network, &spread, schedules[s]);
        config.n_devices = 6;
        stages_case_open(&many, network, &config);
        for (int64_t number = 1; number <= STEPS; number++)
            train_window(&many, number);
        stages_case_same(&many, &one, PARAMETERS, 1e-6);
        stages_case_close(&many);
    }
    stages_case_close(&one);
}
END_TEST

static const struct stages_network normed = {
    .name = "normed",
    .input = "[1, 8, 8]",
    .layers = "{'type': 'Conv2d', 'name': 'a', 'out_channels': 4, 'kernel_size': 3},"
              "{'type': 'BatchNorm2d', 'name': 'n'}, {'type': 'ReLU', 'name': 'r'},"
              "{'type': 'Flatten', 'name': 'f'}, {'type': 'Linear', 'name': 'b',"
              " 'out_features': 8}, {'type': 'BatchNorm1d', 'name': 'm'},"
              "{'type': 'ReLU', 'name': 's'}, {'type': 'Linear', 'name': 'e', 'out_features': 5}",
    .split = {"r", "m", "e"},
};

/* Every micro-batch goes one power iteration on. */
static const struct stages_network spectral = {
    .name = "spectral",
    .input = "[6]",
    .layers = "{'type': 'Linear', 'name': 'a', 'out_features': 8, 'spectral_norm': true},"
              "{'type': 'Tanh', 'name': 'r'},"
              "{'type': 'Linear', 'name': 'b', 'out_features': 8, 'spectral_norm': true},"
              "{'type': 'ReLU', 'name': 's'},"
              "{'type': 'Linear', 'name': 'c', 'out_features': 8, 'spectral_norm': true},"
              "{'type': 'Linear', 'name': 'e', 'out_features': 5}",
    .split = {"b", "s", "c"},
};

/* Their forward passes change them, micro-batch by micro-batch, in order, as when a batch is split
 * by hand. */
static void check_buffers(const struct stages_network *network, int stages, const char *schedule)
{
    static struct stages_case one, many;
    struct stages_config config = {
        .n_devices = 1, .sizes = window_sizes, .n_sizes = 3, .windows = true};
    const struct spread spread = {stages, 1, "'split_size': 5", 0};
    static const int64_t whole[] = {STAGES_BATCH};
    stages_case_open(&one, network, &config);
    config = (struct stages_config){
        .parallel = parallel_text(network, &spread, schedule),
        .n_devices = spread.stages,
        .sizes = whole,
        .n_sizes = 1,
    };
    stages_case_open(&many, network, &config);
    for (int64_t number = 1; number <= STEPS; number++) {
        train_window(&one, number);
        stages_case_train(&many, STAGES_BATCH, number);
    }
    stages_case_same(&many, &one, PARAMETERS | BUFFERS, 1e-6);
    stages_case_close(&many);
    stages_case_close(&one);
}

START_TEST(buffers_follow_the_micro_batches)
{
    check_buffers(&normed, 2 + _i % 3, schedules[1 + _i / 3]);
    check_buffers(&spectral, 2 + _i % 3, schedules[1 + _i / 3]);
}
END_TEST

/* What crosses stages is not rounded on its way, which one device does. */
START_TEST(equals_one_device_in_bf16)
{
    static struct stages_case one, many;
    struct err err = ERR_INIT;
    if (backend_cpu.check_precision(PRECISION_BF16, &err) != 0)
        return;
    struct stages_network network = stages_networks[_i];
    network.more = "'loss': {'type': 'CrossEntropyLoss'}, 'optimizer': {'type': 'SGD', 'lr': 0.1},"
                   "'train': {'epochs': 1, 'batch_size': 4, 'precision': 'bf16'}";
    const struct spread spread = {4, 1, "'split_size': 4", 13};
    struct stages_config config = {.n_devices = 1};
    stages_case_open(&one, &network, &config);
    config.parallel = parallel_text(&network, &spread, "zero_bubble");
    config.n_devices = 4;
    stages_case_open(&many, &network, &config);
    struct strategy_result a = stages_case_train(&one, STAGES_BATCH, 1);
    struct strategy_result b = stages_case_train(&many, STAGES_BATCH, 1);
    ck_assert_double_eq_tol(b.loss, a.loss, 1e-3 * a.loss);
    stages_case_same(&many, &one, PARAMETERS, 1e-3);
    stages_case_close(&many);
    stages_case_close(&one);
}
END_TEST

/* Each device is given so long a delay before each of its kernels that it must show in its times:
 * where no stage overlaps, the others wait for it. */
START_TEST(says_where_time_goes)
{
    static struct stages_case c;
    const struct spread spread = {2, 1, NULL, 13};
    const struct stages_config config = {
        .parallel = parallel_text(&stages_networks[0], &spread, "none"),
        .n_devices = 2,
        .backend = &backend_shaky,
    };
    shaky_delay(200);
    stages_case_open(&c, &stages_networks[0], &config);
    struct strategy_result result = stages_case_train(&c, STAGES_BATCH, 1);
    const struct strategy_times *first = &result.times[0], *last = &result.times[1];
    for (int k = SECTION_FORWARD; k <= SECTION_BACKWARD; k++)
        ck_assert(first->sections[k] > 0 && last->sections[k] > 0);
    ck_assert(first->sections[SECTION_WEIGHTS] == 0);
    ck_assert_double_ge(first->waited,
                        last->sections[SECTION_FORWARD] + last->sections[SECTION_BACKWARD] - 1e-3);
    ck_assert_double_ge(last->waited, first->sections[SECTION_FORWARD] - 1e-3);
    ck_assert(first->reduced == 0 && last->reduced == 0);
    stages_case_close(&c);
    shaky_delay(0);
}
END_TEST

/* Buffers are those of a stage's first device in the first pipeline, for all devices. */
START_TEST(evaluates_with_the_first_pipelines_buffers)
{
    static struct stages_case one, many;
    const struct spread spread = {2, 2, "'split_size': 4", 13};
    struct stages_config config = {.n_devices = 1};
    stages_case_open(&one, &normed, &config);
    config.parallel = parallel_text(&normed, &spread, "zero_bubble");
    config.n_devices = 4;
    stages_case_open(&many, &normed, &config);
    stages_case_train(&many, STAGES_BATCH, 1);
    for (size_t i = 0; i < one.model->n_variables; i++) {
        const struct variable *v = &one.model->variables[i];
        struct err err = ERR_INIT;
        void *elements = malloc((size_t)shape_count(&v->shape) * dtype_size(v->dtype) + 1);
        ck_assert_int_eq(strategy_read(many.strategy, (int)i, elements, &err), 0);
        ck_assert_int_eq(strategy_write(one.strategy, (int)i, elements, &err), 0);
        free(elements);
    }
    struct strategy_result a = stages_case_evaluate(&one, STAGES_BATCH, 2);
    struct strategy_result b = stages_case_evaluate(&many, STAGES_BATCH, 2);
    ck_assert_double_eq_tol(b.loss, a.loss, 1e-6 * a.loss);
    stages_case_close(&many);
    stages_case_close(&one);
}
END_TEST

static int64_t delayed_steps(void)
{
    const char *wanted = getenv("TRAIND_DELAYED_STEPS");
    return wanted != NULL ? atol(wanted) : 60;
}

/* Whoever comes first: the bits are the same. */
START_TEST(delays_change_no_bit)
{
    static struct stages_case calm, shaken;
    const struct stages_network *network = &stages_networks[2];
    const char *rule = _i / 2 == 0 ? NULL : "'split_size': 2"; /* «none» has no micro-batches */
    const struct spread spread = {_i % 2 == 0 ? 4 : 3, _i % 2 == 0 ? 1 : 2, rule, 0};
    struct stages_config config = {
        .parallel = parallel_text(network, &spread, schedules[_i / 2]),
        .n_devices = spread.stages * spread.pipelines,
        .clip = 0.1,
    };
    stages_case_open(&calm, network, &config);
    config.backend = &backend_shaky;
    stages_case_open(&shaken, network, &config);
    int64_t steps = delayed_steps();
    ck_assert_int_gt(steps, 0);
    for (int64_t number = 1; number <= steps; number++) {
        stages_case_train(&calm, STAGES_BATCH, number);
        shaky_delay(number % 2 == 0 ? 60 : 300);
        stages_case_train(&shaken, STAGES_BATCH, number);
        shaky_delay(0);
        if (number % 10 == 0 || number == steps)
            stages_case_same(&shaken, &calm, PARAMETERS, 0);
    }
    stages_case_close(&shaken);
    stages_case_close(&calm);
}
END_TEST

/* A kernel that fails in the middle of a step: everybody stops, and no parameter has changed. */
static const struct {
    const char *op, *device, *message;
    long run;
} failures[] = {
    {"relu", "cpu:0", "stage 0 on cpu:0: relu of layer \"r\": shaken", 1},
    {"relu", "cpu:0", "stage 0 on cpu:0: relu of layer \"r\": shaken", 5},
    {"linear", "cpu:1", "stage 1 on cpu:1: linear of layer \"b\": shaken", 3},
    {"linear_weight_grad", "cpu:2", "stage 2 on cpu:2: linear_weight_grad of layer \"c\": shaken",
     7},
    {"linear_weight_grad", "cpu:0", "stage 0 on cpu:0: linear_weight_grad of layer \"a\": shaken",
     7},
    {"add", "cpu:3", "stage 3 on cpu:3: add of layer \"far\": shaken", 2},
};
enum { N_FAILURES = sizeof failures / sizeof failures[0] };

START_TEST(a_failure_stops_all)
{
    static struct stages_case calm, broken;
    const struct stages_network *network = &stages_networks[2];
    const struct spread spread = {4, 1, "'split_size': 2", 0};
    struct stages_config config = {.n_devices = 4, .clip = _i % 2 == 0 ? 0 : 0.1};
    struct strategy_result result;
    struct err err = ERR_INIT;
    config.parallel = parallel_text(network, &spread, "zero_bubble");
    stages_case_open(&calm, network, &config);
    config.backend = &backend_shaky;
    stages_case_open(&broken, network, &config);
    stages_case_train(&calm, STAGES_BATCH, 1);
    stages_case_train(&broken, STAGES_BATCH, 1);
    shaky_fail_run(failures[_i].device, failures[_i].op, failures[_i].run);
    int rc = stages_case_try(&broken, 0, STAGES_BATCH, STEP_WHOLE, 2, &result, &err);
    ck_assert_int_eq(rc, ERR_DEVICE_FAILED);
    ck_assert_str_eq(err.message, failures[_i].message);
    stages_case_same(&broken, &calm, PARAMETERS, 0);
    stages_case_close(&broken);
    stages_case_close(&calm);
}
END_TEST

START_TEST(too_little_memory_is_named)
{
    const struct stages_network *network = &stages_networks[0];
    const struct spread spread = {2, 1, "'split_size': 2", 0};
    const struct stages_config config = {
        .parallel = parallel_text(network, &spread, "1f1b"),
        .n_devices = 2,
        .backend = &backend_shaky,
    };
    struct model *model = stages_case_model(network, &config);
    struct strategy_config strategy_config = stages_case_config(model, &config);
    struct strategy *strategy = NULL;
    struct err err = ERR_INIT;
    shaky_fail_memory("cpu:1", 16);
    ck_assert_int_eq(strategy_open(&strategy_config, &strategy, &err), ERR_NOMEM);
    ck_assert_msg(strncmp(err.message, "stage 1 on cpu:1: cpu:1 has no memory for the ", 46) == 0,
                  "%s", err.message);
    models_free(model);
}
END_TEST

/* The plan is what the strategy takes, to the byte. */
START_TEST(plans_what_it_takes)
{
    static struct stages_case c;
    const struct stages_network *network = &stages_networks[1 + _i];
    const struct spread spread = {3, 2, "'split_size': 2", 0};
    const struct stages_config config = {
        .parallel = parallel_text(network, &spread, "zero_bubble"),
        .n_devices = 6,
        .backend = &backend_shaky,
    };
    struct strategy_memory memory[STAGES_DEVICES];
    struct err err = ERR_INIT;
    double flops;
    stages_case_open(&c, network, &config);
    struct strategy_config strategy = stages_case_config(c.model, &config);
    ck_assert_msg(strategy_plan(&strategy, memory, &flops, &err) == 0, "%s", err.message);
    ck_assert_double_gt(flops, 0);
    for (int d = 0; d < config.n_devices; d++) {
        ck_assert_int_eq(memory[d].samples, 2);
        ck_assert_uint_eq(strategy_bytes(&memory[d]), shaky_allocated(stages_devices[d].name));
    }
    stages_case_close(&c);
    ck_assert_uint_eq(shaky_allocated("cpu:0"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stages");
    TCase *tcase = checks_case(suite, "values", 120);
    tcase_add_loop_test(tcase, equals_one_device, 0, stages_n_networks);
    tcase_add_loop_test(tcase, clips_over_all_stages, 0, stages_n_networks);
    tcase_add_loop_test(tcase, a_stage_may_have_several_devices, 0, stages_n_networks);
    tcase_add_loop_test(tcase, accumulates_batches, 0, stages_n_networks);
    tcase_add_loop_test(tcase, buffers_follow_the_micro_batches, 0, 3 * (N_SCHEDULES - 1));
    tcase_add_loop_test(tcase, equals_one_device_in_bf16, 0, 3);
    tcase_add_test(tcase, says_where_time_goes);
    tcase_add_test(tcase, evaluates_with_the_first_pipelines_buffers);
    tcase_add_loop_test(tcase, plans_what_it_takes, 0, 3);
    tcase = checks_case(suite, "time", 600);
    tcase_add_loop_test(tcase, delays_change_no_bit, 0, 2 * N_SCHEDULES);
    tcase_add_loop_test(tcase, a_failure_stops_all, 0, N_FAILURES);
    tcase_add_test(tcase, too_little_memory_is_named);
    return checks_run(suite);
}
