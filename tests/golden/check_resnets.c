/* The ResNets against PyTorch's: names, types and shapes of the state_dict, and single steps from
 * full states, which are drawn here as generate_resnets.py draws them.
 *
 * A loss must agree to 1e-5 relative, each tensor after the step to max|a-b| <= 1e-4 * max|b|, at
 * the elements that the golden samples, and in its largest magnitude and its norm. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "engine/ops/registry.h"
#include "engine/parallel/strategy.h"
#include "tests/lib/checks.h"

enum {
    STEPS = 5,
    BATCH = 8,
    CLASSES = 10,
    WIDTH = 8,
    SAMPLES = 8,
    ROW = 2 + SAMPLES,
    IMAGE = 3 * 32 * 32
};
static const double loss_tolerance = 1e-5, tensor_tolerance = 1e-4;

static const struct {
    const char *name;
    size_t entries;
    int64_t parameters;
} nets[] = {
    {"resnet18", 122, 11689512},  {"resnet50", 320, 25557032},  {"resnet34", 218, 21797672},
    {"resnet101", 626, 44549160}, {"resnet152", 932, 60192808},
};
enum { N_NETS = sizeof nets / sizeof nets[0], N_GOLDEN = 2 /* the first have files */ };

static const char *golden_path(const char *name, const char *suffix)
{
    static char path[PATH_MAX];
    const char *source = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/golden/%s%s", source != NULL ? source : ".", name,
             suffix);
    return path;
}

static struct job *parse(const char *preset, int classes, int width, int size)
{
    char text[1024];
    struct err err = ERR_INIT;
    struct job *job;
    int n =
        snprintf(text, sizeof text,
                 "{\"version\": 1, \"model\": {\"preset\": \"%s\", \"args\": {\"num_classes\": %d, "
                 "\"width\": %d},"
                 " \"input\": {\"shape\": [3, %d, %d]}},"
                 "\"data\": {\"train\": {\"format\": \"random\", \"samples\": 1, \"classes\": %d}},"
                 "\"loss\": {\"type\": \"CrossEntropyLoss\"},"
                 "\"optimizer\": {\"type\": \"SGD\", \"lr\": 0.1, \"momentum\": 0.9, "
                 "\"weight_decay\": 1e-4},"
                 "\"train\": {\"max_steps\": 1, \"batch_size\": %d}}",
                 preset, classes, width, size, size, classes, BATCH);
    ck_assert_msg(job_parse(text, (size_t)n, &job, &err) == 0, "%s: %s", err.path, err.message);
    return job;
}

static struct model *build(const struct job *job)
{
    struct err err = ERR_INIT;
    struct model *model;
    ck_assert_msg(model_build(job, &op_registry, &model, &err) == 0, "%s: %s", err.path,
                  err.message);
    return model;
}

static bool in_state_dict(const struct variable *variable)
{
    return variable->kind == VARIABLE_PARAMETER || variable->kind == VARIABLE_BUFFER;
}

/* "conv1.weight F32 [64, 3, 7, 7]\n" */
static void check_names(const struct model *model, const char *name)
{
    FILE *file = fopen(golden_path(name, ".txt"), "r");
    ck_assert_ptr_nonnull(file);
    char want[256], got[512], shape[SHAPE_TEXT];
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *v = &model->variables[i];
        if (!in_state_dict(v))
            continue;
        ck_assert_msg(fgets(want, sizeof want, file) != NULL, "%s is too many", v->name);
        snprintf(got, sizeof got, "%s %s %s\n", v->name, dtype_name(v->dtype),
                 shape_format(&v->shape, shape));
        ck_assert_str_eq(got, want);
    }
    ck_assert_msg(fgets(want, sizeof want, file) == NULL, "%s is missing", want);
    fclose(file);
}

START_TEST(state_dicts_are_torchvisions)
{
    static const int sizes[] = {32, 128, 224};
    struct job *job = parse(nets[_i].name, 1000, 64, sizes[_i % 3]);
    struct model *model = build(job);
    size_t entries = 0;
    for (size_t i = 0; i < model->n_variables; i++)
        entries += in_state_dict(&model->variables[i]);
    ck_assert_uint_eq(entries, nets[_i].entries);
    ck_assert_int_eq(model->n_parameters, nets[_i].parameters);
    if (_i < N_GOLDEN)
        check_names(model, nets[_i].name);
    model_free(model);
    job_free(job);
}
END_TEST

static uint64_t fnv1a(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h;
}

/* Word i of a tensor at a step: splitmix64. */
static uint64_t word(uint64_t stream, size_t i)
{
    uint64_t z = stream + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* The middle and half the width of what a tensor's elements are drawn from. */
struct interval {
    double middle, half;
};

static struct interval interval_of(const char *name, const struct shape *shape)
{
    if (ends_with(name, "momentum_buffer"))
        return (struct interval){0, 0.01};
    if (ends_with(name, "running_var"))
        return (struct interval){1, 0.5};
    if (ends_with(name, "bn3.weight"))
        return (struct interval){0.1, 0.1};
    if (shape->rank == 1)
        return ends_with(name, "weight") ? (struct interval){1, 0.5} : (struct interval){0, 0.125};
    if (shape->rank == 2)
        return (struct interval){0, 1 / sqrt((double)shape->dim[1])};
    double fan_out = (double)shape_count(shape) / (double)shape->dim[1];
    return (struct interval){0, sqrt(6.0 / fan_out)};
}

static void draw(const char *name, int64_t step, const struct shape *shape, float *ret)
{
    uint64_t stream = fnv1a(name) + (uint64_t)step;
    struct interval interval = interval_of(name, shape);
    for (size_t i = 0; i < (size_t)shape_count(shape); i++) {
        double unit = (double)(word(stream, i) >> 40) * 0x1p-24;
        ret[i] = (float)(interval.middle + (2 * unit - 1) * interval.half);
    }
}

static bool in_state(const struct variable *variable)
{
    return in_state_dict(variable) || variable->kind == VARIABLE_OPTIMIZER;
}

static void load_state(struct strategy *strategy, const struct model *model, int64_t step)
{
    struct err err = ERR_INIT;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *v = &model->variables[i];
        if (!in_state(v))
            continue;
        float *elements = v->dtype == DTYPE_I64 ? NULL : malloc((size_t)shape_count(&v->shape) * 4);
        if (elements != NULL)
            draw(v->name, step, &v->shape, elements);
        const void *from = elements != NULL ? (const void *)elements : &step;
        ck_assert_int_eq(strategy_write(strategy, (int)i, from, &err), 0);
        free(elements);
    }
}

static double train(struct strategy *strategy, int64_t number)
{
    static float images[BATCH * IMAGE];
    int64_t targets[BATCH];
    struct strategy_result result;
    struct err err = ERR_INIT;
    const struct shape shape = {4, {BATCH, 3, 32, 32}};
    draw("input", number, &shape, images);
    for (size_t i = 0; i < BATCH * IMAGE; i++)
        images[i] *= 32;
    uint64_t stream = fnv1a("target") + (uint64_t)number;
    for (size_t i = 0; i < BATCH; i++)
        targets[i] = (int64_t)(word(stream, i) % CLASSES);
    const struct batch batch = {BATCH, {images}, targets};
    /* Not the first step, which would begin the momentum buffers anew. */
    const struct step step = {.number = 1 + number, .loss_divisor = BATCH, .lr = 0.1};
    ck_assert_msg(strategy_train(strategy, &batch, STEP_WHOLE, &step, &result, &err) == 0, "%s",
                  err.message);
    return result.loss;
}

static double element(const struct variable *variable, const void *elements, size_t i)
{
    return variable->dtype == DTYPE_I64 ? (double)((const int64_t *)elements)[i]
                                        : (double)((const float *)elements)[i];
}

/* The tensor's largest magnitude, norm and samples, drawn as `number`, against a row of the golden.
 */
static void compare(const struct variable *variable, const void *elements, int64_t number,
                    const float *row)
{
    char name[512];
    double largest = 0, square = 0;
    size_t n = (size_t)shape_count(&variable->shape);
    for (size_t i = 0; i < n; i++) {
        double x = element(variable, elements, i);
        largest = fmax(largest, fabs(x));
        square += x * x;
    }
    double bound = tensor_tolerance * (double)row[0];
    ck_assert_msg(fabs(largest - (double)row[0]) <= bound, "%s: at most %g, PyTorch %g",
                  variable->name, largest, (double)row[0]);
    ck_assert_msg(fabs(sqrt(square) - (double)row[1]) <= tensor_tolerance * (double)row[1],
                  "%s: norm %g, PyTorch %g", variable->name, sqrt(square), (double)row[1]);
    snprintf(name, sizeof name, "%s.sample", variable->name);
    for (size_t k = 0; k < SAMPLES; k++) {
        size_t at = word(fnv1a(name) + (uint64_t)number, k) % n;
        double x = element(variable, elements, at), y = (double)row[2 + k];
        ck_assert_msg(fabs(x - y) <= bound, "%s[%zu]: %.9g, PyTorch %.9g", variable->name, at, x,
                      y);
    }
}

/* Every tensor of the state against its row. */
static void compare_state(struct strategy *strategy, const struct model *model, int64_t number,
                          const struct safetensor *wanted)
{
    int64_t rows = 0;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *v = &model->variables[i];
        if (!in_state(v))
            continue;
        ck_assert_int_lt(rows, wanted->shape.dim[0]);
        void *elements = malloc((size_t)shape_count(&v->shape) * dtype_size(v->dtype));
        ck_assert_ptr_nonnull(elements);
        ck_assert_int_eq(strategy_read(strategy, (int)i, elements, &err), 0);
        compare(v, elements, number, (const float *)wanted->data + rows++ * ROW);
        free(elements);
    }
    ck_assert_int_eq(rows, wanted->shape.dim[0]);
}

/* Step i of the golden: from its state, by its batch, to what PyTorch makes of it. */
static void check_step(struct strategy *strategy, const struct model *model,
                       const struct safetensors *golden, int i)
{
    char key[16];
    snprintf(key, sizeof key, "step%d", i);
    const int64_t *numbers = safetensors_find(golden, "numbers")->data;
    const float *losses = safetensors_find(golden, "losses")->data;
    const struct safetensor *wanted = safetensors_find(golden, key);
    ck_assert_ptr_nonnull(wanted);
    load_state(strategy, model, numbers[i]);
    double loss = train(strategy, numbers[i]), b = (double)losses[i];
    ck_assert_msg(fabs(loss - b) <= loss_tolerance * b, "%.9g, PyTorch %.9g", loss, b);
    compare_state(strategy, model, numbers[i], wanted);
}

START_TEST(single_steps_are_pytorchs)
{
    struct err err = ERR_INIT;
    struct job *job = parse(nets[_i].name, CLASSES, WIDTH, 32);
    struct model *model = build(job);
    struct safetensors *golden;
    ck_assert_msg(
        safetensors_open(golden_path(nets[_i].name, "-steps.safetensors"), &golden, &err) == 0,
        "%s", err.message);
    const struct device_config device = {.name = "cpu:0", .n_threads = 1};
    const struct strategy_batch batch = {.n = BATCH};
    const struct strategy_config config = {.backend = &backend_cpu,
                                           .model = model,
                                           .devices = &device,
                                           .n_devices = 1,
                                           .train_batches = &batch,
                                           .n_train_batches = 1};
    struct strategy *strategy;
    ck_assert_msg(strategy_open(&config, &strategy, &err) == 0, "%s", err.message);
    for (int i = 0; i < STEPS; i++)
        check_step(strategy, model, golden, i);
    strategy_close(strategy);
    safetensors_close(golden);
    model_free(model);
    job_free(job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("resnets");
    TCase *tcase = checks_case(suite, "resnets", 300);
    tcase_add_loop_test(tcase, state_dicts_are_torchvisions, 0, N_NETS);
    tcase_add_loop_test(tcase, single_steps_are_pytorchs, 0, N_GOLDEN);
    return checks_run(suite);
}
