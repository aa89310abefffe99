/* class_loss.c: cross_entropy, nll, argmax: torch.nn.CrossEntropyLoss and NLLLoss with their
 * gradients, and the predicted class. The classes' weights are copied to the device once. */
#include <stdlib.h>

#include "engine/backend/cuda/loss.h"
#include "engine/backend/cuda/own.h"
#include "engine/backend/cuda/reduce.h"
#include "engine/ops/attr.h"

struct class_loss {
    struct own own;
    double *weight; /* the device's, or NULL */
    double total_weight;
};

static int64_t classes_of(const struct node *node)
{
    return own_columns(node->in[0]);
}

static void class_loss_destroy(void *state)
{
    struct class_loss *loss = state;
    if (loss && loss->weight)
        cuda_free(loss->own.device, loss->weight, 0);
    free(loss);
}

static int copy_weights(struct class_loss *loss, const double *weight, struct err *err)
{
    size_t bytes = (size_t)classes_of(loss->own.node) * sizeof *weight;
    loss->weight = cuda_alloc(loss->own.device, bytes);
    if (!loss->weight)
        return err_set(err, ERR_NOMEM, "no memory for the classes' weights");
    return cuda_write(loss->own.device, loss->weight, weight, bytes, err);
}

static int class_loss_create(struct device *device, const struct node *node,
                             const struct kernel_choice *choice, void **ret_state, struct err *err)
{
    const struct class_loss_attr *attr = node->attr;
    struct class_loss *loss = calloc(1, sizeof *loss);
    if (!loss)
        return err_set(err, ERR_NOMEM, "no memory for a kernel");
    loss->own = (struct own){device, node, choice};
    for (int64_t c = 0; c < classes_of(node); c++)
        loss->total_weight += attr->weight ? attr->weight[c] : 1;
    int rc = attr->weight ? copy_weights(loss, attr->weight, err) : 0;
    if (rc)
        class_loss_destroy(loss);
    else
        *ret_state = loss;
    return rc;
}

static int class_loss_run(const struct class_loss *loss, const struct kernel_args *args,
                          double label_smoothing,
                          cudaError_t (*launch)(const struct class_loss_launch *loss,
                                                const struct device_step *step,
                                                struct device_fault *fault, cudaStream_t stream),
                          struct err *err)
{
    const struct node *node = loss->own.node;
    const struct class_loss_attr *attr = node->attr;
    struct device *device = loss->own.device;
    int64_t rows = shape_count(&node->in[1]->shape), sums = node->out[0]->shape.dim[0];
    const struct class_loss_launch class_loss = {
        .output = args->in[0],
        .target = args->in[1],
        .weight = loss->weight,
        .total_weight = loss->total_weight,
        .label_smoothing = label_smoothing,
        .ignore_index = attr->ignore_index,
        .rows = rows,
        .classes = classes_of(node),
        .rows_a_sample = rows / node->in[0]->shape.dim[0],
        .grad = own_out(node, 1) ? args->out[1] : NULL,
        .part = args->scratch,
    };
    int rc = own_launched(launch(&class_loss, device->step, device->fault, device->compute), err);
    return rc ? rc
              : own_launched(launch_sum_parts(args->scratch, rows / sums, args->out[0], sums,
                                              device->compute),
                             err);
}

static int cross_entropy_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct class_loss *loss = state;
    const struct class_loss_attr *attr = loss->own.node->attr;
    return class_loss_run(loss, args, attr->label_smoothing, launch_cross_entropy, err);
}

static int nll_run(void *state, const struct kernel_args *args, struct err *err)
{
    return class_loss_run(state, args, 0, launch_nll, err);
}

static int class_loss_query(const struct node *node, const struct layout *const *in,
                            struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->scratch_bytes = (size_t)shape_count(&node->in[1]->shape) * sizeof(double);
    return rc;
}

static int argmax_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct value *logits = own->node->in[0];
    return own_launched(launch_argmax(args->in[0], own_rows(logits), own_columns(logits),
                                      args->out[0], own->device->compute),
                        err);
}

const struct kernel kernel_cross_entropy = {"cross_entropy", class_loss_query, class_loss_create,
                                            cross_entropy_run, class_loss_destroy};
const struct kernel kernel_nll = {"nll", class_loss_query, class_loss_create, nll_run,
                                  class_loss_destroy};
const struct kernel kernel_argmax = {"argmax", own_query_plain, own_create, argmax_run,
                                     own_destroy};
