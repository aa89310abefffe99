#include "engine/ops/loss.h"

#include "engine/ops/attr.h"

int loss_build(struct build *build, const char *op, const void *attr, size_t attr_size,
               struct value *output, struct value *target, struct value **ret_loss,
               struct value **ret_grad, struct err *err)
{
    struct node *node = build_node(build, op, PHASE_FORWARD, attr, attr_size, err);
    if (node == NULL)
        return err->code;
    build_in(node, output);
    build_in(node, target);
    bool none = build_job(build)->loss.reduction == REDUCTION_NONE;
    *ret_loss = build_out(build, node, SHAPE(none ? output->shape.dim[0] : 1), DTYPE_F64, err);
    if (*ret_loss == NULL)
        return err->code;
    if (ret_grad == NULL)
        return 0;
    *ret_grad = build_out(build, node, output->shape, DTYPE_F32, err);
    return *ret_grad == NULL ? err->code : 0;
}

int loss_value_target(struct model *model, struct err *err)
{
    (void)err;
    model->target = model->output;
    model->target_dtype = DTYPE_F32;
    model->classes = model->output.rank == 1 ? model->output.dim[0] : 0;
    model->loss_terms = shape_count(&model->output);
    return 0;
}

static int check_class_output(const struct model *model, struct err *err)
{
    const struct job_model *layers = &model->job->model;
    const struct job_layer *last = &layers->layers[layers->n_layers - 1];
    char text[SHAPE_TEXT];
    struct shape batch = {.rank = model->output.rank + 1, .dim = {1}};
    if (model->output.rank > 0)
        return 0;
    return err_at(err, ERR_MODEL_SHAPE, "/loss/type",
                  "%s takes an output of [N, C] or [N, ..., C], but the last layer \"%s\" (%s) "
                  "gives %s",
                  loss_type_name(model->job->loss.type), last->name, layer_type_name(last->type),
                  build_shape_text(&batch, text));
}

int loss_class_target(struct model *model, struct err *err)
{
    const struct job_loss *loss = &model->job->loss;
    int rc = check_class_output(model, err);
    if (rc != 0)
        return rc;
    int64_t classes = model->output.dim[model->output.rank - 1];
    if (loss->weight.n > 0 && (int64_t)loss->weight.n != classes)
        return err_at(err, ERR_MODEL_SHAPE, "/loss/weight",
                      "weight has %zu numbers, but the output has %lld classes", loss->weight.n,
                      (long long)classes);
    model->target = model->output;
    model->target.rank--;
    model->target_dtype = DTYPE_I64;
    model->classes = classes;
    model->loss_terms = shape_count(&model->target);
    model->ignored = &loss->ignore_index;
    return 0;
}

/* The targets that count, or the sum of their weights. */
double loss_class_divisor(const struct model *model, const void *targets, int64_t n)
{
    const struct job_loss *loss = &model->job->loss;
    const int64_t *target = targets;
    double divisor = 0;
    for (int64_t i = 0; i < n * model->loss_terms; i++)
        if (target[i] != loss->ignore_index)
            divisor += loss->weight.n > 0 ? loss->weight.v[target[i]] : 1;
    return divisor;
}

int loss_class_build(struct build *build, const char *op, struct value *output,
                     struct value *target, struct value **ret_loss, struct value **ret_grad,
                     struct err *err)
{
    const struct job_loss *loss = &build_job(build)->loss;
    const struct class_loss_attr attr = {.label_smoothing = loss->label_smoothing,
                                         .ignore_index = loss->ignore_index,
                                         .weight = loss->weight.n > 0 ? loss->weight.v : NULL};
    return loss_build(build, op, &attr, sizeof attr, output, target, ret_loss, ret_grad, err);
}

int loss_class_predict(struct build *build, struct value *output, struct value **ret_prediction,
                       struct err *err)
{
    struct node *node = build_node(build, "argmax", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    build_in(node, output);
    struct shape shape = output->shape;
    shape.rank--;
    *ret_prediction = build_out(build, node, shape, DTYPE_I64, err);
    return *ret_prediction == NULL ? err->code : 0;
}
