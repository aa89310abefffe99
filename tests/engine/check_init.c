/* check_init.c: variables at the start: a function of seed, name and element. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/ops/registry.h"
#include "engine/train/init.h"
#include "tests/engine/models.h"
#include "tests/lib/checks.h"

enum { N = 4001 };

static const struct variable weight = {
    .name = "fc.weight", .shape = {1, {N}}, .dtype = DTYPE_F32, .init = {INIT_UNIFORM, 0.125, 0}};

START_TEST(uniform_fills_its_interval)
{
    static float w[N];
    float low = 1, high = -1;
    double sum = 0, square = 0;
    init_variable(&weight, 3, w);
    for (int i = 0; i < N; i++) {
        low = fminf(low, w[i]);
        high = fmaxf(high, w[i]);
        sum += w[i];
        square += w[i] * w[i];
    }
    ck_assert_float_ge(low, -0.125f);
    ck_assert_float_lt(low, -0.124f);
    ck_assert_float_le(high, 0.125f);
    ck_assert_float_gt(high, 0.124f);
    /* Four standard errors around 0 and bound²/3. */
    ck_assert_double_lt(fabs(sum / N), 4 * 0.125 / sqrt(3.0 * N));
    ck_assert_double_lt(fabs(square / N / (0.125 * 0.125 / 3) - 1), 0.06);
}
END_TEST

START_TEST(it_depends_on_seed_and_name_alone)
{
    static float a[N], b[N];
    struct variable shorter = weight, other = weight;
    init_variable(&weight, 3, a);
    init_variable(&weight, 3, b);
    ck_assert_mem_eq(a, b, sizeof a);
    shorter.shape.dim[0] = 10;
    memset(b, 0, sizeof b);
    init_variable(&shorter, 3, b);
    ck_assert_mem_eq(a, b, 10 * sizeof a[0]);
    ck_assert_float_eq(b[10], 0);
    init_variable(&weight, 4, b);
    ck_assert_mem_ne(a, b, sizeof a);
    other.name = "fc2.weight";
    init_variable(&other, 3, b);
    ck_assert_mem_ne(a, b, sizeof a);
}
END_TEST

START_TEST(zeros_and_ones_of_both_types)
{
    float f[3] = {5, 5, 5};
    int64_t whole[3] = {5, 5, 5};
    struct variable variable = {
        .name = "v", .shape = {1, {3}}, .dtype = DTYPE_F32, .init = {INIT_ONE, 0, 0}};
    init_variable(&variable, 1, f);
    ck_assert_float_eq(f[0], 1);
    ck_assert_float_eq(f[2], 1);
    variable.init.kind = INIT_ZERO;
    init_variable(&variable, 1, f);
    ck_assert_float_eq(f[0], 0);
    ck_assert_float_eq(f[2], 0);
    variable.dtype = DTYPE_I64;
    init_variable(&variable, 1, whole);
    ck_assert_int_eq(whole[2], 0);
    variable.init.kind = INIT_ONE;
    init_variable(&variable, 1, whole);
    ck_assert_int_eq(whole[0], 1);
}
END_TEST

START_TEST(normal_has_its_mean_and_deviation)
{
    static float w[N];
    struct variable variable = weight;
    double sum = 0, square = 0;
    variable.init = (struct init_rule){INIT_NORMAL, 0.5, 3};
    init_variable(&variable, 3, w);
    for (int i = 0; i < N; i++) {
        sum += w[i] - 3;
        square += (w[i] - 3) * (w[i] - 3);
    }
    ck_assert_double_lt(fabs(sum / N), 4 * 0.5 / sqrt(N));
    ck_assert_double_lt(fabs(square / N / 0.25 - 1), 4 * sqrt(2.0 / N));
    variable.init = (struct init_rule){INIT_CONSTANT, 0, -1.5};
    init_variable(&variable, 3, w);
    ck_assert_float_eq(w[0], -1.5f);
    ck_assert_float_eq(w[N - 1], -1.5f);
}
END_TEST

/* Of a weight [8, 2, 3, 5] (fan in 30, fan out 120) and its bias. */
static const struct {
    const char *init;
    struct init_rule rule;
} rules[] = {
    {"'weight_init': {'type': 'constant', 'val': -2}", {INIT_CONSTANT, 0, -2}},
    {"'weight_init': {'type': 'uniform'}", {INIT_UNIFORM, 0.5, 0.5}},
    {"'weight_init': {'type': 'uniform', 'a': -3, 'b': 1}", {INIT_UNIFORM, 2, -1}},
    {"'weight_init': {'type': 'normal'}", {INIT_NORMAL, 1, 0}},
    {"'weight_init': {'type': 'normal', 'mean': 1, 'std': 0.02}", {INIT_NORMAL, 0.02, 1}},
    {"'weight_init': {'type': 'xavier_uniform'}", {INIT_UNIFORM, 0.2, 0}},
    {"'weight_init': {'type': 'xavier_normal', 'gain': 3}", {INIT_NORMAL, 0.346410162, 0}},
    {"'weight_init': {'type': 'kaiming_uniform', 'a': 2.23606798}", {INIT_UNIFORM, 0.182574186, 0}},
    {"'weight_init': {'type': 'kaiming_normal'}", {INIT_NORMAL, 0.258198890, 0}},
    {"'weight_init': {'type': 'kaiming_normal', 'mode': 'fan_out', 'nonlinearity': 'relu'}",
     {INIT_NORMAL, 0.129099445, 0}},
    {"'weight_init': {'type': 'kaiming_normal', 'nonlinearity': 'tanh'}",
     {INIT_NORMAL, 0.304290310, 0}},
    {"'bias_init': {'type': 'constant', 'val': 7}", {INIT_UNIFORM, 0.182574186, 0}},
};

START_TEST(layers_may_say_how_they_begin)
{
    char layers[512];
    snprintf(layers, sizeof layers,
             "{'type': 'Conv2d', 'out_channels': 8, 'kernel_size': [3, 5], 'groups': 2, %s},"
             "{'type': 'Flatten'}",
             rules[_i].init);
    struct model *model = models_new("[4, 3, 5]", layers, NULL);
    const struct init_rule *rule = &model->variables[0].init, *want = &rules[_i].rule;
    ck_assert_int_eq(rule->kind, want->kind);
    ck_assert_double_eq_tol(rule->bound, want->bound, 1e-8);
    ck_assert_double_eq_tol(rule->center, want->center, 1e-8);
    bool bias = strstr(rules[_i].init, "bias") != NULL;
    ck_assert_int_eq(model->variables[1].init.kind, bias ? INIT_CONSTANT : INIT_UNIFORM);
    ck_assert_double_eq(model->variables[1].init.center, bias ? 7 : 0);
    models_free(model);
}
END_TEST

START_TEST(fans_need_a_matrix)
{
    struct err err = ERR_INIT;
    struct model *model;
    struct job *job = models_job("[4]",
                                 "{'type': 'Linear', 'name': 'fc', 'out_features': 3,"
                                 " 'bias_init': {'type': 'xavier_normal'}}",
                                 NULL);
    ck_assert_int_eq(model_build(job, &op_registry, &model, &err), ERR_MODEL_SHAPE);
    ck_assert_str_eq(err.path, "/model/layers/0");
    ck_assert_ptr_nonnull(strstr(err.message, "\"bias\" is [3]"));
    job_free(job);
}
END_TEST

START_TEST(an_embedding_begins_normal_with_a_zero_row)
{
    struct model *model = models_new("[4], 'dtype': 'int64'",
                                     "{'type': 'Embedding', 'name': 'e', 'num_embeddings': 5,"
                                     " 'embedding_dim': 3, 'padding_idx': -2},"
                                     "{'type': 'Flatten'}, {'type': 'Linear', 'out_features': 2}",
                                     NULL);
    const struct variable *variable = &model->variables[model_find(model, "e.weight")];
    float w[15];
    ck_assert_int_eq(variable->init.kind, INIT_NORMAL);
    ck_assert_double_eq(variable->init.bound, 1);
    init_variable(variable, 1, w);
    for (int i = 0; i < 15; i++)
        ck_assert_int_eq(w[i] == 0, i / 3 == 3);
    models_free(model);
}
END_TEST

/* Names, order and shapes of torch.nn.GRU's state_dict. */
START_TEST(a_gru_begins_uniform_by_its_hidden_size)
{
    static const struct {
        const char *name;
        struct shape shape;
    } want[] = {
        {"g.weight_ih_l0", {2, {12, 3}}},
        {"g.weight_hh_l0", {2, {12, 4}}},
        {"g.bias_ih_l0", {1, {12}}},
        {"g.bias_hh_l0", {1, {12}}},
        {"g.weight_ih_l0_reverse", {2, {12, 3}}},
        {"g.weight_hh_l0_reverse", {2, {12, 4}}},
        {"g.bias_ih_l0_reverse", {1, {12}}},
        {"g.bias_hh_l0_reverse", {1, {12}}},
        {"g.weight_ih_l1", {2, {12, 8}}},
        {"g.weight_hh_l1", {2, {12, 4}}},
    };
    struct model *model =
        models_new("[5, 3]",
                   "{'type': 'GRU', 'name': 'g', 'hidden_size': 4,"
                   " 'num_layers': 2, 'bidirectional': true},"
                   "{'type': 'SelectLast'}, {'type': 'Linear', 'out_features': 2}",
                   NULL);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct variable *variable = &model->variables[i];
        ck_assert_str_eq(variable->name, want[i].name);
        ck_assert(shape_equal(&variable->shape, &want[i].shape));
        ck_assert_int_eq(variable->init.kind, INIT_UNIFORM);
        ck_assert_double_eq(variable->init.bound, 0.5);
    }
    models_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("init");
    TCase *tcase = checks_case(suite, "init", 0);
    tcase_add_test(tcase, uniform_fills_its_interval);
    tcase_add_test(tcase, it_depends_on_seed_and_name_alone);
    tcase_add_test(tcase, zeros_and_ones_of_both_types);
    tcase_add_test(tcase, normal_has_its_mean_and_deviation);
    tcase_add_loop_test(tcase, layers_may_say_how_they_begin, 0, sizeof rules / sizeof *rules);
    tcase_add_test(tcase, fans_need_a_matrix);
    tcase_add_test(tcase, an_embedding_begins_normal_with_a_zero_row);
    tcase_add_test(tcase, a_gru_begins_uniform_by_its_hidden_size);
    return checks_run(suite);
}
