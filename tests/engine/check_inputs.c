/* check_inputs.c: a model with several inputs, of which one has lengths, from the document to the
 * devices. */
#include <string.h>

#include "engine/graph/graph.h"
#include "engine/ops/registry.h"
#include "proto/json.h"
#include "tests/engine/idx_files.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

static const char document[] =
    "{\"version\": 1, \"model\": {"
    " \"inputs\": {\"left\": {\"shape\": [4, 5], \"lengths\": true}, \"right\": {\"shape\": [4, "
    "5]}},"
    " \"layers\": ["
    "  {\"type\": \"Linear\", \"name\": \"a\", \"inputs\": [\"left\"], \"out_features\": 6},"
    "  {\"type\": \"Linear\", \"name\": \"b\", \"inputs\": [\"right\"], \"out_features\": 6},"
    "  {\"type\": \"Add\", \"name\": \"sum\", \"inputs\": [\"b\", \"a\"]}, {\"type\": \"ReLU\"},"
    "  {\"type\": \"Flatten\"}, {\"type\": \"Linear\", \"name\": \"out\", \"out_features\": 3}]},"
    " \"data\": {\"train\": {\"format\": \"random\", \"samples\": 40, \"classes\": 3},"
    "   \"transform\": {\"scale\": 0.5}},"
    " \"loss\": {\"type\": \"CrossEntropyLoss\"}, \"optimizer\": {\"type\": \"SGD\", \"lr\": 0.1},"
    " \"train\": {\"epochs\": 2, \"batch_size\": 16, \"seed\": 1, \"trace\": [\"shapes\"]}}";

static struct job *parse(void)
{
    struct err err = ERR_INIT;
    struct job *job = NULL;
    ck_assert_msg(job_parse(document, strlen(document), &job, &err) == 0, "%s: %s", err.path,
                  err.message);
    return job;
}

static const struct node *find_node(const struct graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (strcmp(graph->nodes[i]->name, name) == 0)
            return graph->nodes[i];
    ck_abort_msg("no node %s", name);
}

START_TEST(lengths_follow_the_steps)
{
    const struct graph_options options = {.batch = 7, .training = true, .n_replicas = 1};
    struct err err = ERR_INIT;
    struct job *job = parse();
    struct model *model;
    struct graph *graph;
    ck_assert_int_eq(model_build(job, &op_registry, &model, &err), 0);
    ck_assert_int_eq(graph_build(model, &op_registry, &options, &graph, &err), 0);
    ck_assert_int_eq(model->n_inputs, 3);
    ck_assert_str_eq(model->inputs[2].name, "left.lengths");
    ck_assert_int_eq(model->inputs[2].of, 0);
    ck_assert_int_eq(model->inputs[0].lengths, 2);
    ck_assert_int_eq(model->inputs[1].lengths, -1);

    struct value *lengths = graph->data[2];
    ck_assert_int_eq(lengths->dtype, DTYPE_I64);
    ck_assert(shape_equal(&lengths->shape, &SHAPE(7)));
    ck_assert_ptr_eq(graph->data[0]->lengths, lengths);
    ck_assert_ptr_eq(find_node(graph, "a")->out[0]->lengths, lengths);
    ck_assert_ptr_null(find_node(graph, "b")->out[0]->lengths);
    ck_assert_ptr_eq(find_node(graph, "sum")->out[0]->lengths, lengths);
    ck_assert_ptr_null(find_node(graph, "4")->out[0]->lengths); /* Flatten: no steps any more */
    graph_free(graph);
    model_free(model);
    job_free(job);
}
END_TEST

START_TEST(every_input_is_scattered)
{
    static struct run_job one, more;
    struct job *job = parse();
    char output[64];
    snprintf(output, sizeof output, "%s/1", checks_scratch());
    run_job_parsed(job, output, 1, 0, &one);
    ck_assert_msg(one.rc == 0, "%s: %s", one.err.path, one.err.message);
    for (int n = 2; n <= 3; n++) {
        snprintf(output, sizeof output, "%s/%d", checks_scratch(), n);
        run_job_parsed(job, output, n, 0, &more);
        ck_assert_msg(more.rc == 0, "%s: %s", more.err.path, more.err.message);
        ck_assert_double_eq_tol(more.progress.loss, one.progress.loss, 1e-6 * one.progress.loss);
    }
    ck_assert_ptr_nonnull(
        strstr(more.said, "In Model: input size [6, 4, 5], [6, 4, 5], [6] output size [6, 3]\n"));
    job_free(job);
}
END_TEST

/* Two numbers for all of seven samples of two rows: whole, and once a sample. */

enum { SAMPLES = 7, SIZE = 4 };

static const char shared_job[] =
    "{'version': 1, 'model': {"
    " 'inputs': {'shift': {'shape': [2, 2], 'scatter': %s}, 'x': {'shape': [2, 2]}},"
    " 'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 2, 'inputs': ['shift']},"
    "  {'type': 'Add', 'name': 'sum', 'inputs': ['a', 'x', 'shift']}, {'type': 'Flatten'},"
    "  {'type': 'Linear', 'name': 'out', 'out_features': 3}]},"
    " 'data': {'train': {'format': 'idx', 'inputs': {'x': '%s', 'shift': '%s'}, 'targets': '%s'},"
    "  'transform': {'scale': %s}},"
    " 'loss': {'type': 'CrossEntropyLoss'}, 'optimizer': {'type': 'SGD', 'lr': 0.1},"
    " 'train': {'epochs': 2, 'batch_size': 5, 'trace': ['shapes']}}";

static const char *rows_file(const char *name, uint32_t samples, int rank, const uint8_t *rows)
{
    const uint32_t dim[] = {samples, 2, 2};
    uint8_t file[64];
    return idx_file(name, file,
                    idx_make(file, 8, rank, samples > 0 ? dim : dim + 1, rows,
                             rank == 1 ? samples : (samples > 0 ? samples : 1) * SIZE));
}

static void run_shared(const char *scatter, const char *scale, int n_devices, const char *output,
                       struct run_job *run)
{
    static const uint8_t shift[SIZE] = {3, 1, 4, 2}, targets[SAMPLES] = {0, 1, 2, 0, 1, 2, 0};
    uint8_t x[SAMPLES * SIZE], shifts[SAMPLES * SIZE];
    char text[1024];
    struct err err = ERR_INIT;
    struct job *job = NULL;
    bool whole = strcmp(scatter, "false") == 0;
    for (int i = 0; i < SAMPLES * SIZE; i++) {
        x[i] = (uint8_t)(i * 5 % 7);
        shifts[i] = shift[i % SIZE];
    }
    snprintf(text, sizeof text, shared_job, scatter, rows_file("x.idx", SAMPLES, 3, x),
             whole ? rows_file("whole.idx", 0, 2, shift)
                   : rows_file("shifts.idx", SAMPLES, 3, shifts),
             rows_file("y.idx", SAMPLES, 1, targets), scale);
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    int rc = job_parse(text, strlen(text), &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    run_job_parsed(job, output, n_devices, 0, run);
    job_free(job);
}

START_TEST(an_input_is_not_scattered)
{
    static struct run_job whole, each;
    char a[64], b[64];
    snprintf(a, sizeof a, "%s/whole", checks_scratch());
    snprintf(b, sizeof b, "%s/each", checks_scratch());
    run_shared("false", "1", _i, a, &whole);
    ck_assert_msg(whole.rc == 0, "%s: %s", whole.err.path, whole.err.message);
    run_shared("true", "1", _i, b, &each);
    ck_assert_msg(each.rc == 0, "%s: %s", each.err.path, each.err.message);
    run_job_same_file(a, b, "weights.safetensors");
    ck_assert_ptr_nonnull(
        strstr(whole.said, "Outside: input size [2, 2], [5, 2, 2] output size [5, 3]\n"));
    ck_assert_ptr_null(strstr(each.said, "input size [2, 2]"));
}
END_TEST

/* The transform is of samples. */
START_TEST(what_is_shared_is_not_transformed)
{
    static struct run_job run;
    char a[64], b[64];
    snprintf(a, sizeof a, "%s/two", checks_scratch());
    snprintf(b, sizeof b, "%s/channels", checks_scratch());
    run_shared("false", "0.5", 1, a, &run);
    double loss = run.progress.loss;
    run_shared("true", "0.5", 1, b, &run);
    ck_assert_int_eq(run.rc, 0);
    ck_assert_double_ne(run.progress.loss, loss);
}
END_TEST

START_TEST(what_is_whole_has_no_lengths)
{
    struct err err = ERR_INIT;
    struct job *job = NULL;
    json_t *root = json_loads(document, 0, NULL);
    json_object_set_new(
        json_object_get(json_object_get(root, "model"), "inputs"), "right",
        json_pack("{s:[i, i], s:b, s:b}", "shape", 4, 5, "scatter", false, "lengths", true));
    ck_assert_int_eq(job_from_json(root, &job, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.path, "/model/inputs/right/lengths");
    ck_assert_str_eq(err.message,
                     "an input that is not scattered has no samples, and so no lengths");
    json_decref(root);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inputs");
    TCase *tcase = checks_case(suite, "inputs", 30);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, lengths_follow_the_steps);
    tcase_add_test(tcase, every_input_is_scattered);
    tcase_add_loop_test(tcase, an_input_is_not_scattered, 1, 4);
    tcase_add_test(tcase, what_is_shared_is_not_transformed);
    tcase_add_test(tcase, what_is_whole_has_no_lengths);
    return checks_run(suite);
}
