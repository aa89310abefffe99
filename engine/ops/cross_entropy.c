/* cross_entropy.c: torch.nn.CrossEntropyLoss of logits [N, C] against class numbers [N]. */
#include "engine/ops/loss.h"
#include "engine/ops/registry.h"

static int cross_entropy_target(struct model *model, struct err *err)
{
    const struct job_model *layers = &model->job->model;
    const struct job_layer *last = &layers->layers[layers->n_layers - 1];
    if (model->output.rank != 1) {
        char text[SHAPE_TEXT];
        struct shape batch = {.rank = model->output.rank + 1, .dim = {1}};
        for (int i = 0; i < model->output.rank; i++)
            batch.dim[i + 1] = model->output.dim[i];
        return err_at(err, ERR_MODEL_SHAPE, "/loss/type",
                      "CrossEntropyLoss takes an output of [N, C], but the last layer \"%s\" (%s) "
                      "gives %s",
                      last->name, layer_type_name(last->type), build_shape_text(&batch, text));
    }
    model->target = (struct shape){.rank = 0};
    model->target_dtype = DTYPE_I64;
    model->classes = model->output.dim[0];
    model->loss_terms = 1;
    return 0;
}

static int cross_entropy_build(struct build *build, struct value *output, struct value *target,
                               struct value **ret_loss, struct value **ret_grad, struct err *err)
{
    return loss_build(build, "cross_entropy", output, target, ret_loss, ret_grad, err);
}

static int predict(struct build *build, struct value *output, struct value **ret_prediction,
                   struct err *err)
{
    struct node *node = build_node(build, "argmax", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    build_in(node, output);
    *ret_prediction = build_out(build, node, SHAPE(output->shape.dim[0]), DTYPE_I64, err);
    return *ret_prediction == NULL ? err->code : 0;
}

const struct op_def op_cross_entropy = {.name = "cross_entropy"};
const struct op_def op_argmax = {.name = "argmax"};
const struct loss_def loss_cross_entropy = {cross_entropy_target, cross_entropy_build, predict};
