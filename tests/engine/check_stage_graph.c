/* A stage's graph as text, and what crosses between stages. */
#include <stdlib.h>
#include <string.h>

#include "engine/ops/registry.h"
#include "tests/engine/models.h"
#include "tests/lib/checks.h"

/* r is read in its own stage, in the next and in the last; "aside" by nobody. */
static const char residual[] = "{'type': 'Linear', 'name': 'a', 'out_features': 3},"
                               "{'type': 'ReLU', 'name': 'r'},"
                               "{'type': 'Linear', 'name': 'b', 'out_features': 3},"
                               "{'type': 'Linear', 'name': 'aside', 'out_features': 7},"
                               "{'type': 'Add', 'name': 's', 'inputs': ['b', 'r']},"
                               "{'type': 'Linear', 'name': 'c', 'out_features': 3},"
                               "{'type': 'Add', 'name': 't', 'inputs': ['c', 'r']}";
static const char mse[] = "'loss': {'type': 'MSELoss'}, 'optimizer': {'type': 'SGD', 'lr': 1}";
static const struct split in_three = {.n_stages = 3, .first_layer = {0, 2, 5, 7}};

static struct graph *build(const struct model *model, const struct split *split, int stage,
                           struct graph_options options)
{
    struct err err = ERR_INIT;
    struct graph *graph = NULL;
    options.n_replicas = 1;
    options.split = split;
    options.stage = stage;
    int rc = graph_build(model, &op_registry, &options, &graph, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    return graph;
}

static void check_dump(const struct model *model, const struct split *split, int stage,
                       struct graph_options options, const char *want)
{
    struct graph *graph = build(model, split, stage, options);
    char *text = graph_dump(graph);
    ck_assert_str_eq(text, want);
    free(text);
    graph_free(graph);
}

static const struct graph_options first = {.batch = 4, .training = true, .part = STEP_FIRST};

START_TEST(a_residual_crosses_to_each_stage_that_reads_it)
{
    struct model *model = models_new("[2]", residual, mse);
    check_dump(model, &in_three, 0, first,
               "F a linear(input, a.weight, a.bias) -> %3 [4, 3]\n"
               "F r relu(%3) -> %4 [4, 3]\n"
               "F r send(%4) -> %5\n"
               "I r add(%6, %7) -> %8 [4, 3]\n"
               "I r relu_grad(%4, %8) -> %9 [4, 3]\n"
               "W a linear_weight_grad(input, %9) -> a.weight.grad, a.bias.grad\n");
    check_dump(model, &in_three, 1, first,
               "F b linear(r, b.weight, b.bias) -> %4 [4, 3]\n"
               "F s add(%4, r) -> %5 [4, 3]\n"
               "F s send(%5) -> %6\n"
               "W b linear_weight_grad(r, %7) -> b.weight.grad, b.bias.grad\n"
               "I b linear_input_grad(%7, b.weight) -> %10 [4, 3]\n"
               "I b add(%7, %10) -> %11 [4, 3]\n"
               "I r send(%11) -> %12\n");
    check_dump(model, &in_three, 2, first,
               "F c linear(s, c.weight, c.bias) -> %5 [4, 3]\n"
               "F t add(%5, r) -> %6 [4, 3]\n"
               "F loss mse(%6, target) -> %8 [1], %9 [4, 3]\n"
               "W c linear_weight_grad(s, %9) -> c.weight.grad, c.bias.grad\n"
               "I c linear_input_grad(%9, c.weight) -> %12 [4, 3]\n"
               "I r send(%9) -> %13\n"
               "I s send(%12) -> %14\n");
    models_free(model);
}
END_TEST

START_TEST(later_micro_batches_add_their_gradients)
{
    struct model *model = models_new("[2]", residual, mse);
    check_dump(model, &in_three, 1,
               (struct graph_options){.batch = 4, .training = true, .part = STEP_MIDDLE},
               "F b linear(r, b.weight, b.bias) -> %4 [4, 3]\n"
               "F s add(%4, r) -> %5 [4, 3]\n"
               "F s send(%5) -> %6\n"
               "W b linear_weight_grad(r, %7) -> %9 [3, 3], %11 [3]\n"
               "W gradients add(b.weight.grad, %9) -> b.weight.grad\n"
               "W gradients add(b.bias.grad, %11) -> b.bias.grad\n"
               "I b linear_input_grad(%7, b.weight) -> %12 [4, 3]\n"
               "I b add(%7, %12) -> %13 [4, 3]\n"
               "I r send(%13) -> %14\n");
    models_free(model);
}
END_TEST

START_TEST(the_end_of_a_window_is_about_the_stages_own_gradients)
{
    static const char clipped[] =
        "'loss': {'type': 'MSELoss'}, 'optimizer': {'type': 'SGD', 'lr': 1},"
        "'train': {'epochs': 1, 'batch_size': 4, 'clip_grad_norm': 1}";
    struct model *model = models_new("[2]", residual, clipped);
    check_dump(model, &in_three, 1, (struct graph_options){.training = true, .part = STEP_END},
               "U gradients clip_grad_norm(b.weight.grad, b.bias.grad) -> %2 [1]\n"
               "U b.weight sgd(b.weight, b.weight.grad, %2)\n"
               "U b.bias sgd(b.bias, b.bias.grad, %2)\n");
    models_free(model);
}
END_TEST

/* It sends no gradient, and the norm of all gradients is summed without any of its own. */
START_TEST(a_frozen_prefix_gets_no_gradient)
{
    static const char frozen[] = "{'type': 'Linear', 'name': 'a', 'out_features': 3},"
                                 "{'type': 'ReLU', 'name': 'r'},"
                                 "{'type': 'Linear', 'name': 'b', 'out_features': 3}], "
                                 "'freeze': ['a'], 'init': {'seed': 1";
    static const struct split in_two = {.n_stages = 2, .first_layer = {0, 2, 3}};
    char text[1024];
    snprintf(text, sizeof text, "'input': {'shape': [2]}, 'layers': [%s}", frozen);
    struct model *model =
        models_of(text, "'data': {'train': {'format': 'random', 'samples': 4, 'seed': 1}},"
                        "'loss': {'type': 'MSELoss'}, 'optimizer': {'type': 'SGD', 'lr': 1},"
                        "'train': {'epochs': 1, 'batch_size': 4, 'clip_grad_norm': 1}");
    check_dump(model, &in_two, 0, first,
               "F a linear(input, a.weight, a.bias) -> %3 [4, 3]\n"
               "F r relu(%3) -> %4 [4, 3]\n"
               "F r send(%4) -> %5\n");
    check_dump(model, &in_two, 0, (struct graph_options){.training = true, .part = STEP_END},
               "U gradients clip_grad_norm(-, -) -> %0 [1]\n");
    check_dump(model, &in_two, 1, first,
               "F b linear(r, b.weight, b.bias) -> %4 [4, 3]\n"
               "F loss mse(%4, target) -> %6 [1], %7 [4, 3]\n"
               "W b linear_weight_grad(r, %7) -> b.weight.grad, b.bias.grad\n");
    models_free(model);
}
END_TEST

/* Dropout is no node then: what it would make is what it reads. */
START_TEST(an_evaluation_sends_values_and_no_more)
{
    static const char layers[] = "{'type': 'Linear', 'name': 'a', 'out_features': 3},"
                                 "{'type': 'Dropout', 'name': 'd'},"
                                 "{'type': 'Linear', 'name': 'b', 'out_features': 3}";
    static const struct split in_two = {.n_stages = 2, .first_layer = {0, 2, 3}};
    struct model *model = models_new("[2]", layers, mse);
    const struct graph_options evaluation = {.batch = 4};
    check_dump(model, &in_two, 0, evaluation,
               "F a linear(input, a.weight, a.bias) -> %3 [4, 3]\n"
               "F d send(%3) -> %4\n");
    check_dump(model, &in_two, 1, evaluation,
               "F b linear(d, b.weight, b.bias) -> %4 [4, 3]\n"
               "F loss mse(%4, target) -> %6 [1]\n");
    models_free(model);
}
END_TEST

START_TEST(crossings_are_each_layer_and_reader_once)
{
    static const struct crossing wanted[] = {
        {.layer = 1, .from = 0, .to = 1, .bytes = 12, .gradient = true},
        {.layer = 1, .from = 0, .to = 2, .bytes = 12, .gradient = true},
        {.layer = 4, .from = 1, .to = 2, .bytes = 12, .gradient = true},
    };
    struct model *model = models_new("[2]", residual, mse);
    struct arena *arena = arena_new();
    struct crossings crossings;
    struct err err = ERR_INIT;
    ck_assert_int_eq(split_crossings(model, &in_three, arena, &crossings, &err), 0);
    ck_assert_uint_eq(crossings.n, 3);
    for (size_t i = 0; i < crossings.n; i++) {
        const struct crossing *got = &crossings.list[i];
        ck_assert(got->layer == wanted[i].layer && got->from == wanted[i].from &&
                  got->to == wanted[i].to && got->bytes == wanted[i].bytes &&
                  got->gradient == wanted[i].gradient);
        ck_assert(shape_equal(&got->shape, &SHAPE(3)));
    }
    arena_free(arena);
    models_free(model);
}
END_TEST

/* Both ends of a crossing name each other, and agree on whether a gradient comes back. */
START_TEST(what_is_sent_is_received)
{
    struct model *model = models_new("[2]", residual, mse);
    struct graph *graphs[3];
    int n_sent = 0, n_received = 0;
    for (int s = 0; s < 3; s++) {
        graphs[s] = build(model, &in_three, s, first);
        n_sent += graphs[s]->n_sent;
        n_received += graphs[s]->n_received;
    }
    ck_assert_int_eq(n_sent, 3);
    ck_assert_int_eq(n_received, 3);
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < graphs[s]->n_received; i++) {
            const struct carried *received = &graphs[s]->received[i], *sent = NULL;
            const struct graph *from = graphs[received->stage];
            for (int k = 0; k < from->n_sent; k++)
                if (from->sent[k].layer == received->layer && from->sent[k].stage == s)
                    sent = &from->sent[k];
            ck_assert_ptr_nonnull(sent);
            ck_assert(shape_equal(&sent->value->shape, &received->value->shape));
            ck_assert_int_eq(sent->value->kind, VALUE_SENT);
            ck_assert_int_eq(received->value->kind, VALUE_RECEIVED);
            ck_assert_int_eq(sent->grad->kind, VALUE_RECEIVED);
            ck_assert_int_eq(received->grad->kind, VALUE_SENT);
        }
    for (int s = 0; s < 3; s++)
        graph_free(graphs[s]);
    models_free(model);
}
END_TEST

/* In the state_dict's order parameters come first, gradients backwards, then the optimizer's state.
 */
START_TEST(a_stage_owns_its_layers_variables)
{
    struct model *model = models_new("[2]", residual, NULL);
    int begin, end, owned = 0;
    split_gradients(model, &in_three, 1, &begin, &end);
    ck_assert_int_eq(end - begin, 2);
    ck_assert_str_eq(model->variables[begin].name, "b.weight.grad");
    ck_assert_str_eq(model->variables[end - 1].name, "b.bias.grad");
    for (size_t v = 0; v < model->n_variables; v++) {
        int owners = 0;
        for (int s = 0; s < 3; s++)
            owners += split_owns(model, &in_three, s, (int)v);
        ck_assert_int_eq(owners, 1);
        owned += split_owns(model, &in_three, 1, (int)v);
    }
    ck_assert_int_eq(owned, 8); /* b: two parameters, gradients, momenta; aside: two parameters */
    models_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stage_graph");
    TCase *tcase = checks_case(suite, "stages", 30);
    tcase_add_test(tcase, a_residual_crosses_to_each_stage_that_reads_it);
    tcase_add_test(tcase, later_micro_batches_add_their_gradients);
    tcase_add_test(tcase, the_end_of_a_window_is_about_the_stages_own_gradients);
    tcase_add_test(tcase, a_frozen_prefix_gets_no_gradient);
    tcase_add_test(tcase, an_evaluation_sends_values_and_no_more);
    tcase_add_test(tcase, crossings_are_each_layer_and_reader_once);
    tcase_add_test(tcase, what_is_sent_is_received);
    tcase_add_test(tcase, a_stage_owns_its_layers_variables);
    return checks_run(suite);
}
