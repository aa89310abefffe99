/* bce_with_logits.c: torch.nn.BCEWithLogitsLoss of logits against probabilities of their shape. */
#include "engine/ops/attr.h"
#include "engine/ops/loss.h"
#include "engine/ops/registry.h"

static int bce_target(struct model *model, struct err *err)
{
    const struct job_numbers *weight = &model->job->loss.pos_weight;
    int64_t last = model->output.rank > 0 ? model->output.dim[model->output.rank - 1] : 1;
    if (weight->n > 1 && (int64_t)weight->n != last)
        return err_at(err, ERR_MODEL_SHAPE, "/loss/pos_weight",
                      "pos_weight has %zu numbers, but the output's last dimension is %lld",
                      weight->n, (long long)last);
    return loss_value_target(model, err);
}

static int bce_build(struct build *build, struct value *output, struct value *target,
                     struct value **ret_loss, struct value **ret_grad, struct err *err)
{
    const struct job_numbers *weight = &build_job(build)->loss.pos_weight;
    const struct bce_attr attr = {.pos_weight = weight->v, .n_pos_weight = (int64_t)weight->n};
    return loss_build(build, "bce_with_logits", &attr, sizeof attr, output, target, ret_loss,
                      ret_grad, err);
}

const struct op_def op_bce_with_logits = {.name = "bce_with_logits"};
const struct loss_def loss_bce_with_logits = {bce_target, NULL, bce_build, NULL};
