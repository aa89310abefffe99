/* check_inputs.c: a model with several inputs, of which one has lengths, from the document to the
 * devices. */
#include <string.h>

#include "engine/graph/graph.h"
#include "engine/ops/registry.h"
#include "proto/json.h"
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

int main(void)
{
    Suite *suite = suite_create("inputs");
    TCase *tcase = checks_case(suite, "inputs", 30);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, lengths_follow_the_steps);
    tcase_add_test(tcase, every_input_is_scattered);
    return checks_run(suite);
}
