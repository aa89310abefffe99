/* check_precision.c: which values of a bf16 job's graph are BF16, where casts stand, and who
 * refuses such a job. */
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend/cpu/isa.h"
#include "engine/ops/registry.h"
#include "tests/engine/models.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

#define LOSS(type) "'loss': {'type': '" type "'}, 'optimizer': {'type': 'SGD', 'lr': 1}"
#define TRAIN(more) "'train': {'epochs': 1, 'batch_size': 4, 'precision': 'bf16'" more "}"

static const struct graph_options training = {.batch = 6, .training = true, .n_replicas = 1};
static const struct graph_options evaluation = {.batch = 6, .n_replicas = 1};

static void check_dump(const char *input, const char *layers, const char *more,
                       const struct graph_options *options, const char *want)
{
    struct err err = ERR_INIT;
    struct graph *graph;
    struct model *model = models_new(input, layers, more);
    int rc = graph_build(model, &op_registry, options, &graph, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    char *text = graph_dump(graph);
    ck_assert_str_eq(text, want);
    free(text);
    graph_free(graph);
    models_free(model);
}

#define MLP                                                                                        \
    "{'type': 'Linear', 'name': 'a', 'out_features': 4}, {'type': 'ReLU', 'name': 'r'},"           \
    "{'type': 'Linear', 'name': 'b', 'out_features': 3, 'bias': false}"

/* Weights are cast once, backward reads what forward did; the loss, the bias and what is written to
 * the gradients are F32. */
START_TEST(products_and_activations_are_low)
{
    check_dump("[5]", MLP, LOSS("MSELoss") ", " TRAIN(""), &training,
               "F a cast(input) -> %15 [6, 5] BF16\n"
               "F a cast(a.weight) -> %16 [4, 5] BF16\n"
               "F a linear(%15, %16, a.bias) -> %3 [6, 4] BF16\n"
               "F r relu(%3) -> %4 [6, 4] BF16\n"
               "F b cast(b.weight) -> %17 [3, 4] BF16\n"
               "F b linear(%4, %17, -) -> %6 [6, 3] BF16\n"
               "F loss cast(%6) -> %18 [6, 3]\n"
               "F loss mse(%18, target) -> %8 [1], %9 [6, 3]\n"
               "W b cast(%9) -> %19 [6, 3] BF16\n"
               "W b linear_weight_grad(%4, %19) -> b.weight.grad\n"
               "I b linear_input_grad(%19, %17) -> %11 [6, 4] BF16\n"
               "I r relu_grad(%4, %11) -> %12 [6, 4] BF16\n"
               "W a linear_weight_grad(%15, %12) -> a.weight.grad, a.bias.grad\n"
               "U a.weight sgd(a.weight, a.weight.grad)\n"
               "U a.bias sgd(a.bias, a.bias.grad)\n"
               "U b.weight sgd(b.weight, b.weight.grad)\n");
}
END_TEST

/* The host reads floats. */
START_TEST(outputs_are_floats)
{
    check_dump("[5]", "{'type': 'Linear', 'name': 'a', 'out_features': 4}",
               LOSS("CrossEntropyLoss") ", " TRAIN(""), &evaluation,
               "F a cast(input) -> %7 [6, 5] BF16\n"
               "F a cast(a.weight) -> %8 [4, 5] BF16\n"
               "F a linear(%7, %8, a.bias) -> %3 [6, 4] BF16\n"
               "F loss cast(%3) -> %9 [6, 4]\n"
               "F loss cross_entropy(%9, target) -> %5 [1]\n"
               "F loss argmax(%9) -> %6 [6]\n");
}
END_TEST

/* A norm of the data keeps floats; what is added to them is widened, as PyTorch promotes. */
START_TEST(other_ops_keep_what_comes)
{
    check_dump("[4]",
               "{'type': 'LayerNorm', 'name': 'n', 'elementwise_affine': false},"
               "{'type': 'Linear', 'name': 'a', 'out_features': 4, 'bias': false},"
               "{'type': 'LayerNorm', 'name': 'm', 'elementwise_affine': false},"
               "{'type': 'Add', 'name': 's', 'inputs': ['m', 'a']},"
               "{'type': 'Add', 'name': 't', 'inputs': ['s', 'n']},"
               "{'type': 'Softmax', 'name': 'p', 'dim': 1}",
               LOSS("MSELoss") ", " TRAIN(""), &evaluation,
               "F n layer_norm(input, -, -) -> %1 [6, 4]\n"
               "F a cast(%1) -> %10 [6, 4] BF16\n"
               "F a cast(a.weight) -> %11 [4, 4] BF16\n"
               "F a linear(%10, %11, -) -> %3 [6, 4] BF16\n"
               "F m layer_norm(%3, -, -) -> %4 [6, 4] BF16\n"
               "F s add(%4, %3) -> %5 [6, 4] BF16\n"
               "F t cast(%5) -> %12 [6, 4]\n"
               "F t add(%12, %1) -> %6 [6, 4]\n"
               "F p softmax(%6) -> %7 [6, 4]\n"
               "F loss mse(%7, target) -> %9 [1]\n");
}
END_TEST

/* A copy that a segment casts dies with it: before its gradients it is made again. */
START_TEST(recomputed_segments_cast_again)
{
    check_dump("[4]",
               "{'type': 'Linear', 'name': 'x', 'out_features': 4, 'bias': false},"
               "{'type': 'Softmax', 'name': 'p', 'dim': 1},"
               "{'type': 'Linear', 'name': 'y', 'out_features': 4, 'bias': false},"
               "{'type': 'ReLU', 'name': 'r'},"
               "{'type': 'Linear', 'name': 'z', 'out_features': 2, 'bias': false}",
               LOSS("MSELoss") ", " TRAIN(", 'checkpoint_activations': ['y']"), &training,
               "F x cast(input) -> %21 [6, 4] BF16\n"
               "F x cast(x.weight) -> %22 [4, 4] BF16\n"
               "F x linear(%21, %22, -) -> %2 [6, 4] BF16\n"
               "F p cast(%2) -> %23 [6, 4]\n"
               "F p softmax(%23) -> %3 [6, 4]\n"
               "F y cast(%3) -> %24 [6, 4] BF16\n"
               "F y cast(y.weight) -> %25 [4, 4] BF16\n"
               "F y linear(%24, %25, -) -> %5 [6, 4] BF16\n"
               "F r relu(%5) -> %6 [6, 4] BF16\n"
               "F z cast(z.weight) -> %26 [2, 4] BF16\n"
               "F z linear(%6, %26, -) -> %8 [6, 2] BF16\n"
               "F loss cast(%8) -> %27 [6, 2]\n"
               "F loss mse(%27, target) -> %10 [1], %11 [6, 2]\n"
               "W z cast(%11) -> %28 [6, 2] BF16\n"
               "W z linear_weight_grad(%6, %28) -> z.weight.grad\n"
               "I z linear_input_grad(%28, %26) -> %13 [6, 4] BF16\n"
               "I r relu_grad(%6, %13) -> %14 [6, 4] BF16\n"
               "C x cast(input) -> %29 [6, 4] BF16\n"
               "C x linear(%29, %22, -) -> %15 [6, 4] BF16\n"
               "C p cast(%15) -> %30 [6, 4]\n"
               "C p softmax(%30) -> %16 [6, 4]\n"
               "W y cast(%16) -> %31 [6, 4] BF16\n"
               "W y linear_weight_grad(%31, %14) -> y.weight.grad\n"
               "I y linear_input_grad(%14, %25) -> %18 [6, 4] BF16\n"
               "I p cast(%18) -> %32 [6, 4]\n"
               "I p softmax_grad(%16, %32) -> %19 [6, 4]\n"
               "W x cast(%19) -> %33 [6, 4] BF16\n"
               "W x linear_weight_grad(%29, %33) -> x.weight.grad\n"
               "U x.weight sgd(x.weight, x.weight.grad)\n"
               "U y.weight sgd(y.weight, y.weight.grad)\n"
               "U z.weight sgd(z.weight, z.weight.grad)\n");
}
END_TEST

static const struct {
    dnnl_cpu_isa_t isa;
    const char *refused; /* NULL: it is not */
} isa_rows[] = {
    {dnnl_cpu_isa_avx512_core_bf16, NULL},
    {dnnl_cpu_isa_avx512_core_amx, NULL},
    {dnnl_cpu_isa_avx512_core_vnni, "this one has AVX-512 with VNNI"},
    {dnnl_cpu_isa_avx512_core, "this one has AVX-512;"},
    {dnnl_cpu_isa_avx512_mic, "this one has AVX2;"},
    {dnnl_cpu_isa_avx2_vnni, "this one has AVX2 with VNNI"},
    {dnnl_cpu_isa_avx2, "this one has AVX2;"},
    {dnnl_cpu_isa_avx, "this one has AVX;"},
    {dnnl_cpu_isa_sse41, "this one has SSE4.1"},
    {dnnl_cpu_isa_all, "this one has less than SSE4.1"},
};

static void check_refused(int rc, const struct err *err, const char *part)
{
    ck_assert_int_eq(rc, ERR_JOB_UNSUPPORTED);
    ck_assert_str_eq(err->path, "/train/precision");
    ck_assert_msg(strstr(err->message, "bf16 needs a CPU with AVX512_BF16 or AMX") != NULL &&
                      strstr(err->message, part) != NULL,
                  "%s", err->message);
}

START_TEST(instructions)
{
    struct err err = ERR_INIT;
    ck_assert_int_eq(isa_check_precision(isa_rows[_i].isa, PRECISION_FP32, &err), 0);
    int rc = isa_check_precision(isa_rows[_i].isa, PRECISION_BF16, &err);
    if (isa_rows[_i].refused == NULL)
        ck_assert_int_eq(rc, 0);
    else
        check_refused(rc, &err, isa_rows[_i].refused);
}
END_TEST

/* The same of a machine whose oneDNN is told so before it looks. */
START_TEST(a_lesser_machine_refuses_to_plan_and_to_run)
{
    static struct run_job run;
    struct err err = ERR_INIT;
    struct trainer_plan plan;
    const char *patch = "{'train': {'precision': 'bf16'}}";
    ck_assert_int_eq(dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2), dnnl_success);
    struct job *job = run_job_parse(patch);
    struct trainer_config config = run_job_config(job, 2, checks_scratch());
    int rc = trainer_plan(&config, &plan, &err);
    check_refused(rc, &err, "this one has");
    job_free(job);
    run_job(patch, checks_scratch(), 2, 0, &run);
    check_refused(run.rc, &run.err, "this one has");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("precision");
    TCase *tcase = checks_case(suite, "graphs", 0);
    tcase_add_test(tcase, products_and_activations_are_low);
    tcase_add_test(tcase, outputs_are_floats);
    tcase_add_test(tcase, other_ops_keep_what_comes);
    tcase_add_test(tcase, recomputed_segments_cast_again);
    TCase *machines = checks_case(suite, "machines", 0);
    tcase_add_loop_test(machines, instructions, 0, sizeof isa_rows / sizeof isa_rows[0]);
    tcase_add_test(machines, a_lesser_machine_refuses_to_plan_and_to_run);
    return checks_run(suite);
}
