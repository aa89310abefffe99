/* value_loss.c: mse, l1 and bce_with_logits: torch.nn.MSELoss, L1Loss and BCEWithLogitsLoss with
 * their gradients, element by element. */
#include <stdlib.h>

#include "engine/backend/cuda/loss.h"
#include "engine/backend/cuda/own.h"
#include "engine/backend/cuda/reduce.h"
#include "engine/ops/attr.h"

struct value_loss_state {
    struct own own;
    double *pos_weight; /* the device's, or NULL */
    int64_t n_pos_weight;
};

static void value_loss_destroy(void *state)
{
    struct value_loss_state *loss = state;
    if (loss && loss->pos_weight)
        cuda_free(loss->own.device, loss->pos_weight, 0);
    free(loss);
}

static int value_loss_create(struct device *device, const struct node *node,
                             const struct kernel_choice *choice, void **ret_state, struct err *err)
{
    struct value_loss_state *loss = calloc(1, sizeof *loss);
    if (!loss)
        return err_set(err, ERR_NOMEM, "no memory for a kernel");
    loss->own = (struct own){device, node, choice};
    *ret_state = loss;
    return 0;
}

static int bce_create(struct device *device, const struct node *node,
                      const struct kernel_choice *choice, void **ret_state, struct err *err)
{
    const struct bce_attr *attr = node->attr;
    void *state = NULL;
    int rc = value_loss_create(device, node, choice, &state, err);
    if (rc)
        return rc;
    struct value_loss_state *loss = state;
    size_t bytes = (size_t)attr->n_pos_weight * sizeof *attr->pos_weight;
    loss->n_pos_weight = attr->n_pos_weight;
    if (bytes > 0) {
        loss->pos_weight = cuda_alloc(device, bytes);
        rc = loss->pos_weight
                 ? cuda_write(device, loss->pos_weight, attr->pos_weight, bytes, err)
                 : err_set(err, ERR_NOMEM, "no memory for the weights of positive targets");
    }
    if (rc)
        value_loss_destroy(loss);
    else
        *ret_state = loss;
    return rc;
}

/* Of one sum; its elements. */
static int64_t count_parts(const struct node *node, int64_t *ret_count)
{
    *ret_count = shape_count(&node->in[0]->shape) / node->out[0]->shape.dim[0];
    return (*ret_count + VALUE_LOSS_PART - 1) / VALUE_LOSS_PART;
}

static int value_loss_run(const struct value_loss_state *state, const struct kernel_args *args,
                          enum value_loss kind, struct err *err)
{
    const struct node *node = state->own.node;
    struct device *device = state->own.device;
    struct value_loss_launch loss = {
        .output = args->in[0],
        .target = args->in[1],
        .pos_weight = state->pos_weight,
        .n_pos_weight = state->n_pos_weight,
        .sums = node->out[0]->shape.dim[0],
        .grad = own_out(node, 1) ? args->out[1] : NULL,
        .part = args->scratch,
    };
    loss.parts = count_parts(node, &loss.count);
    int rc = own_launched(launch_value_loss(kind, &loss, device->step, device->compute), err);
    return rc ? rc
              : own_launched(launch_sum_parts(loss.part, loss.parts, args->out[0], loss.sums,
                                              device->compute),
                             err);
}

static int mse_run(void *state, const struct kernel_args *args, struct err *err)
{
    return value_loss_run(state, args, VALUE_LOSS_MSE, err);
}

static int l1_run(void *state, const struct kernel_args *args, struct err *err)
{
    return value_loss_run(state, args, VALUE_LOSS_L1, err);
}

static int bce_run(void *state, const struct kernel_args *args, struct err *err)
{
    return value_loss_run(state, args, VALUE_LOSS_BCE, err);
}

static int value_loss_query(const struct node *node, const struct layout *const *in,
                            struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    int64_t count, n_parts = node->out[0]->shape.dim[0] * count_parts(node, &count);
    ret_choice->scratch_bytes = (size_t)n_parts * sizeof(double);
    return 0;
}

const struct kernel kernel_mse = {"mse", value_loss_query, value_loss_create, mse_run,
                                  value_loss_destroy};
const struct kernel kernel_l1 = {"l1", value_loss_query, value_loss_create, l1_run,
                                 value_loss_destroy};
const struct kernel kernel_bce_with_logits = {"bce_with_logits", value_loss_query, bce_create,
                                              bce_run, value_loss_destroy};
