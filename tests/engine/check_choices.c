/* What is measured when a job in stages begins, and that a resume keeps it. */
#include <stdio.h>
#include <string.h>

#include "engine/ops/registry.h"
#include "engine/parallel/choose.h"
#include "engine/parallel/profile.h"
#include "engine/train/choices.h"
#include "engine/worker/plan_profile.h"
#include "tests/engine/models.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

enum { MEMORY = 1 << 30 };

static const struct device_config device = {.name = "cpu:0", .n_threads = 1};

/* By each kind of input: floats, indices into a table, sequences. */
static const struct {
    const char *input, *layers;
    int heavy, light; /* layers far apart */
} models[] = {
    {"[64]",
     "{'type': 'Linear', 'out_features': 8}, {'type': 'Linear', 'out_features': 2048},"
     "{'type': 'ReLU'}, {'type': 'Linear', 'out_features': 2048}",
     3, 0},
    {"[16], 'dtype': 'int64'",
     "{'type': 'Embedding', 'num_embeddings': 10, 'embedding_dim': 256},"
     "{'type': 'Linear', 'out_features': 4}, {'type': 'Linear', 'out_features': 1024},"
     "{'type': 'Linear', 'out_features': 1024}",
     3, 1},
    {"[12, 8]",
     "{'type': 'LSTM', 'hidden_size': 128}, {'type': 'SelectLast'},"
     "{'type': 'Linear', 'out_features': 4}",
     0, 2},
};

static double sum(const struct balance_layer *layer)
{
    return layer->forward + layer->backward + layer->weight;
}

START_TEST(measures_every_layer)
{
    struct balance_layer layers[4] = {{.slot_bytes = 7}};
    struct err err = ERR_INIT;
    struct model *model = models_new(models[_i].input, models[_i].layers, NULL);
    const struct profile_config config = {&backend_cpu, &device, model, 32};
    int rc = profile_layers(&config, layers, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    for (size_t i = 0; i < model->job->model.n_layers; i++) {
        ck_assert_double_gt(layers[i].forward, 0);
        ck_assert_double_lt(sum(&layers[i]), 60);
    }
    ck_assert_double_gt(sum(&layers[models[_i].heavy]), sum(&layers[models[_i].light]));
    ck_assert_int_eq(layers[0].slot_bytes, 7);
    models_free(model);
}
END_TEST

START_TEST(a_device_that_fails_is_named)
{
    struct balance_layer layers[4];
    struct err err = ERR_INIT;
    const int no_such_core = 1 << 16;
    const struct device_config broken = {.name = "cpu:7", .cores = &no_such_core, .n_cores = 1};
    struct model *model = models_new(models[0].input, models[0].layers, NULL);
    const struct profile_config config = {&backend_cpu, &broken, model, 32};
    ck_assert_int_eq(profile_layers(&config, layers, &err), ERR_DEVICE_FAILED);
    struct profile *profile = NULL;
    ck_assert_int_eq(profile_nodes(&config, &profile, &err), ERR_DEVICE_FAILED);
    ck_assert_ptr_null(profile);
    models_free(model);
}
END_TEST

/* Every node of a step has its time, what the graph counts, and its share of what is possible. */
START_TEST(measures_every_node)
{
    struct err err = ERR_INIT;
    struct model *model = models_new(models[_i].input, models[_i].layers, NULL);
    const struct profile_config config = {&backend_cpu, &device, model, 32};
    const struct graph_options options = {.batch = 32, .training = true, .n_replicas = 1};
    struct profile *profile = NULL;
    struct graph *graph = NULL;
    double seconds = 0, flops = 0, floor = 0;
    size_t updates = 0;
    ck_assert_msg(profile_nodes(&config, &profile, &err) == 0, "%s", err.message);
    ck_assert_int_eq(graph_build(model, &op_registry, &options, &graph, &err), 0);
    for (size_t i = 0; i < profile->n_nodes; i++) {
        const struct profile_node *node = &profile->nodes[i];
        ck_assert_double_ge(node->seconds, 0);
        ck_assert(node->floor > 0 || strcmp(node->op, "reorder") == 0);
        ck_assert(node->name[0] != '\0' && node->op[0] != '\0');
        seconds += node->seconds;
        flops += node->flops;
        floor += node->floor;
        updates += node->phase == PHASE_UPDATE;
    }
    ck_assert_double_gt(profile->rates.flops, 0);
    ck_assert_double_gt(profile->rates.bytes, 0);
    ck_assert_double_eq_tol(seconds, profile->seconds, 1e-9);
    ck_assert_double_eq_tol(floor, profile->floor, 1e-9);
    ck_assert_double_eq(flops, graph_flops(graph));
    ck_assert_uint_eq(updates, (size_t)model->n_gradients);
    graph_free(graph);
    profile_free(profile);
    models_free(model);
}
END_TEST

/* Of a node that took no time by the clock there is no rate, but a trace. */
START_TEST(a_node_of_no_time_is_traced)
{
    char path[1024];
    struct profile_node node = {.op = "relu", .impl = "own", .name = "r", .bytes = 8};
    const struct profile profile = {.nodes = &node, .n_nodes = 1};
    const struct setup setup = {.devices = {{.name = "cpu:0"}}, .n_devices = 1};
    struct err err = ERR_INIT;
    snprintf(path, sizeof path, "%s/trace", checks_scratch());
    ck_assert_msg(plan_profile_trace(&setup, &profile, path, &err) == 0, "%s", err.message);
    json_t *trace = json_load_file(path, 0, NULL);
    const json_t *event = json_array_get(json_object_get(trace, "traceEvents"), 1);
    const json_t *rate = json_object_get(json_object_get(event, "args"), "GB/s");
    ck_assert(json_is_real(rate) && json_real_value(rate) == 0);
    json_decref(trace);
}
END_TEST

#define OPEN "{'parallel': {'mode': 'stages', 'devices': 2}}"
#define CUT "{'parallel': {'mode': 'stages', 'devices': 2, 'split': ['3'], 'microbatches': 2}}"

static void say(void *context, const char *line)
{
    snprintf(context, 256, "%s", line);
}

/* An open job as a run of the output directory settles it. */
static struct job *settle(const char *patch, int n_devices, const char *output,
                          char said[static 256])
{
    struct err err = ERR_INIT;
    struct job *job = run_job_parse(patch);
    struct trainer_config config = run_job_config(job, n_devices, output);
    config.sink = (struct trainer_sink){.say = say, .context = said};
    ck_assert_msg(choose_stages(job, (size_t)n_devices, MEMORY, &err) == 0, "%s", err.message);
    ck_assert(job->parallel.split_chosen || job->parallel.microbatches_chosen);
    ck_assert_msg(choices_settle(&config, job, MEMORY, &err) == 0, "%s", err.message);
    ck_assert_uint_eq(job->parallel.n_split, (size_t)n_devices - 1);
    return job;
}

START_TEST(a_new_job_measures)
{
    char said[256] = "", wanted[256];
    struct job *job = settle(OPEN, 2, checks_scratch(), said);
    snprintf(wanted, sizeof wanted, "Stages begin at \"%s\" (measured)", job->parallel.split[0]);
    ck_assert_str_eq(said, wanted);
    job_free(job);
}
END_TEST

/* The checkpoint's cut, though nothing would have been cut there. */
START_TEST(a_resume_keeps_the_checkpoints)
{
    static struct run_job run;
    char output[1024], said[256] = "";
    snprintf(output, sizeof output, "%s/run", checks_scratch());
    run_job_well(CUT, output, 2, &run);
    struct job *job = settle(OPEN, 2, output, said);
    ck_assert_str_eq(job->parallel.split[0], "3");
    ck_assert_str_eq(said, "");
    job_free(job);
}
END_TEST

#define PLAIN                                                                                      \
    "'model': {'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 8},"                     \
    "  {'type': 'ReLU', 'name': 'r'}, {'type': 'Linear', 'name': 'b', 'out_features': 3}]}"
#define COUNT "{" PLAIN ", 'parallel': {'mode': 'stages', 'devices': 2, 'split': ['b']}}"
#define COUNTED                                                                                    \
    "{" PLAIN ", 'parallel': {'mode': 'stages', 'devices': 2, 'split': ['b'], 'microbatches': 5}}"

/* The number alone is open: it is measured, and a resume keeps the checkpoint's. */
START_TEST(a_number_is_kept)
{
    static struct run_job run;
    char output[1024], said[256] = "", wanted[256];
    snprintf(output, sizeof output, "%s/run", checks_scratch());
    struct job *job = settle(COUNT, 2, output, said);
    snprintf(wanted, sizeof wanted, "Stages begin at \"b\", %d micro-batches (measured)",
             (int)job->parallel.microbatches);
    ck_assert_str_eq(said, wanted);
    job_free(job);
    run_job_well(COUNTED, output, 2, &run);
    said[0] = '\0';
    job = settle(COUNT, 2, output, said);
    ck_assert_int_eq(job->parallel.microbatches, 5);
    ck_assert_str_eq(said, "");
    job_free(job);
}
END_TEST

#define CUT_TWICE                                                                                  \
    "{'parallel': {'mode': 'stages', 'devices': 3, 'split': ['bn', 'b'], 'microbatches': 2}}"
#define OTHER_ORDER                                                                                \
    "{'model': {'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 8},"                    \
    "  {'type': 'Linear', 'name': 'b', 'out_features': 3},"                                        \
    "  {'type': 'BatchNorm1d', 'name': 'bn'}]},"                                                   \
    " 'parallel': {'mode': 'stages', 'devices': 3, 'microbatches': 2}}"

/* Stages must rise: a checkpoint of another model, which the resume will refuse, cuts nothing. */
START_TEST(another_models_checkpoint_cuts_nothing)
{
    static struct run_job run;
    char output[1024], said[256] = "";
    snprintf(output, sizeof output, "%s/run", checks_scratch());
    run_job_well(CUT_TWICE, output, 3, &run);
    struct job *job = settle(OTHER_ORDER, 3, output, said);
    ck_assert_str_eq(job->parallel.split[0], "b");
    ck_assert_str_eq(job->parallel.split[1], "bn");
    job_free(job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("choices");
    TCase *tcase = checks_case(suite, "choices", 60);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_loop_test(tcase, measures_every_layer, 0, (int)(sizeof models / sizeof models[0]));
    tcase_add_loop_test(tcase, measures_every_node, 0, (int)(sizeof models / sizeof models[0]));
    tcase_add_test(tcase, a_node_of_no_time_is_traced);
    tcase_add_test(tcase, a_device_that_fails_is_named);
    tcase_add_test(tcase, a_new_job_measures);
    tcase_add_test(tcase, a_resume_keeps_the_checkpoints);
    tcase_add_test(tcase, a_number_is_kept);
    tcase_add_test(tcase, another_models_checkpoint_cuts_nothing);
    return checks_run(suite);
}
