/* ResNets at their full width as PyTorch trains them (train_resnet.py, beside this): each of five
 * steps begins with all of PyTorch's state, optimizer's included, and must come to PyTorch's: the
 * loss to 1e-5 relative, each tensor to max|a-b| <= 1e-4 * max|b|.
 *
 * Where an input of a ReLU is 0 but for rounding, its gradient is there or not by chance, in
 * PyTorch and here, and a step that meets such a one shows nothing: then another batch is tried. An
 * error would show in every batch. (check_resnets.c has such steps as files, from drawn states.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/safetensors.h"
#include "engine/ops/registry.h"
#include "engine/parallel/strategy.h"
#include "tests/lib/apart.h"
#include "tests/lib/checks.h"

enum { STEPS = 5, TRIES = 4, BATCH = 8 };
static const char python[] = "/usr/bin/python3"; /* Debian's torch is there */
static const char *const nets[] = {"resnet18", "resnet50"};
enum { N_NETS = sizeof nets / sizeof nets[0] };

/* The script, and the pipes to and from it. */
struct trainer {
    pid_t pid;
    FILE *to, *from;
};

static struct trainer start(const char *net)
{
    char script[1024];
    const char *source = getenv("srcdir"), *folder = checks_scratch();
    int in[2], out[2];
    snprintf(script, sizeof script, "%s/tests/golden/train_resnet.py",
             source != NULL ? source : ".");
    ck_assert(pipe(in) == 0 && pipe(out) == 0);
    struct trainer trainer = {.pid = fork()};
    ck_assert_int_ge(trainer.pid, 0);
    if (trainer.pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        for (int i = 0; i < 2; i++) {
            close(in[i]);
            close(out[i]);
        }
        execl(python, python, "-B", script, net, folder, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    trainer.to = fdopen(in[1], "w");
    trainer.from = fdopen(out[0], "r");
    return trainer;
}

static void say(struct trainer *trainer, const char *answer)
{
    fprintf(trainer->to, "%s\n", answer);
    fflush(trainer->to);
}

static void stop(struct trainer *trainer)
{
    int status;
    fclose(trainer->to);
    fclose(trainer->from);
    ck_assert_int_eq(waitpid(trainer->pid, &status, 0), trainer->pid);
    ck_assert_int_eq(status, 0);
}

static struct safetensors *opened(const char *name)
{
    char path[1024];
    struct err err = ERR_INIT;
    struct safetensors *file;
    snprintf(path, sizeof path, "%s/%s.safetensors", checks_scratch(), name);
    ck_assert_msg(safetensors_open(path, &file, &err) == 0, "%s", err.message);
    return file;
}

static const void *data_of(const struct safetensors *file, const char *name)
{
    const struct safetensor *tensor = safetensors_find(file, name);
    ck_assert_msg(tensor != NULL, "there is no %s", name);
    return tensor->data;
}

static bool in_state(const struct variable *variable)
{
    return variable->kind == VARIABLE_PARAMETER || variable->kind == VARIABLE_BUFFER ||
           variable->kind == VARIABLE_OPTIMIZER;
}

static void load(struct strategy *strategy, const struct model *model)
{
    struct err err = ERR_INIT;
    struct safetensors *file = opened("before");
    size_t n = 0;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        if (!in_state(variable))
            continue;
        const void *data = data_of(file, variable->name);
        ck_assert_int_eq(strategy_write(strategy, (int)i, data, &err), 0);
        n++;
    }
    ck_assert_uint_eq(n, safetensors_count(file));
    safetensors_close(file);
}

/* max|a-b| / max|b|; 0 of equals. */
static double distance(const struct variable *variable, const void *a, const void *b)
{
    size_t n = (size_t)shape_count(&variable->shape);
    if (variable->dtype != DTYPE_F32)
        return memcmp(a, b, n * dtype_size(variable->dtype)) == 0 ? 0 : INFINITY;
    struct apart apart = apart_floats(a, b, n);
    return apart.worst > 0 ? apart.worst / apart.largest : 0;
}

/* The farthest tensor's. */
static double compare(struct strategy *strategy, const struct model *model,
                      const struct safetensors *file)
{
    struct err err = ERR_INIT;
    double farthest = 0;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        if (!in_state(variable))
            continue;
        void *elements =
            malloc((size_t)shape_count(&variable->shape) * dtype_size(variable->dtype));
        ck_assert_ptr_nonnull(elements);
        ck_assert_int_eq(strategy_read(strategy, (int)i, elements, &err), 0);
        double d = distance(variable, elements, data_of(file, variable->name));
        farthest = fmax(farthest, d);
        free(elements);
    }
    return farthest;
}

/* The script's step once more; how far from its end ours is. */
static double make_step(struct strategy *strategy, const struct model *model, int64_t number)
{
    struct err err = ERR_INIT;
    struct strategy_result result;
    load(strategy, model);
    struct safetensors *file = opened("step");
    const struct batch batch = {BATCH, {data_of(file, "input")}, data_of(file, "target")};
    const struct step step = {.number = number, .loss_divisor = BATCH, .lr = 0.01};
    ck_assert_msg(strategy_train(strategy, &batch, STEP_WHOLE, &step, &result, &err) == 0, "%s",
                  err.message);
    double wanted = (double)*(const float *)data_of(file, "loss");
    ck_assert_msg(fabs(result.loss - wanted) <= 1e-5 * wanted, "step %lld: %.9g, PyTorch %.9g",
                  (long long)number, result.loss, wanted);
    double farthest = compare(strategy, model, file);
    safetensors_close(file);
    return farthest;
}

static void check_steps(struct trainer *trainer, struct strategy *strategy,
                        const struct model *model)
{
    char line[64];
    int tries = 0;
    double farthest = 0;
    for (int64_t number = 1; number <= STEPS;) {
        ck_assert_msg(fgets(line, sizeof line, trainer->from) != NULL, "the script has ended");
        farthest = make_step(strategy, model, number);
        bool near = farthest <= 1e-4;
        tries = near ? 0 : tries + 1;
        ck_assert_msg(tries < TRIES, "step %lld: a tensor is off by %g, in each of %d batches",
                      (long long)number, farthest, TRIES);
        number += near;
        say(trainer, !near ? "again" : number <= STEPS ? "next" : "end");
    }
}

static struct job *parse(const char *preset)
{
    char text[1024];
    struct err err = ERR_INIT;
    struct job *job;
    int n = snprintf(text, sizeof text,
                     "{\"version\": 1, \"model\": {\"preset\": \"%s\", \"args\": {\"num_classes\": "
                     "10}, \"input\": {\"shape\": [3, 32, 32]}},"
                     "\"data\": {\"train\": {\"format\": \"random\", \"samples\": 1, \"classes\": "
                     "10}}, \"loss\": {\"type\": \"CrossEntropyLoss\"},"
                     "\"optimizer\": {\"type\": \"SGD\", \"lr\": 0.01, \"momentum\": 0.9, "
                     "\"weight_decay\": 1e-4},"
                     "\"train\": {\"max_steps\": 1, \"batch_size\": %d}}",
                     preset, BATCH);
    ck_assert_msg(job_parse(text, (size_t)n, &job, &err) == 0, "%s: %s", err.path, err.message);
    return job;
}

START_TEST(steps_are_pytorchs)
{
    struct err err = ERR_INIT;
    struct model *model;
    struct strategy *strategy;
    struct trainer trainer = start(nets[_i]);
    struct job *job = parse(nets[_i]);
    ck_assert_int_eq(model_build(job, &op_registry, &model, &err), 0);
    const struct device_config device = {.name = "cpu:0", .n_threads = 1};
    const struct strategy_batch batch = {.n = BATCH};
    const struct strategy_config config = {.backend = &backend_cpu,
                                           .model = model,
                                           .devices = &device,
                                           .n_devices = 1,
                                           .train_batches = &batch,
                                           .n_train_batches = 1};
    ck_assert_msg(strategy_open(&config, &strategy, &err) == 0, "%s", err.message);
    check_steps(&trainer, strategy, model);
    stop(&trainer);
    strategy_close(strategy);
    model_free(model);
    job_free(job);
}
END_TEST

int main(void)
{
    char probe[128];
    snprintf(probe, sizeof probe, "%s -c 'import torch' 2>/dev/null", python);
    if (system(probe) != 0)
        return checks_skip(nets, N_NETS, "there is no PyTorch (python3-torch)");
    Suite *suite = suite_create("resnet_training");
    TCase *tcase = checks_case(suite, "resnet_training", 300);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_loop_test(tcase, steps_are_pytorchs, 0, N_NETS);
    return checks_run(suite);
}
