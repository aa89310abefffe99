/* host_room.c: see host_room.h. */
#include "engine/parallel/host_room.h"

#include <stdlib.h>

#include "engine/graph/op.h"

static int64_t largest_batch(const struct strategy_config *config)
{
    int64_t largest = 0;
    for (size_t i = 0; i < config->n_eval_batches; i++)
        if (config->eval_batches[i] > largest)
            largest = config->eval_batches[i];
    return largest;
}

static size_t largest_buffer(const struct model *model)
{
    size_t largest = 0;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *v = &model->variables[i];
        size_t bytes = (size_t)shape_count(&v->shape) * dtype_size(v->dtype);
        if (v->kind == VARIABLE_BUFFER && bytes > largest)
            largest = bytes;
    }
    return largest;
}

int host_room_open(const struct strategy_config *config, struct host_room *ret_room,
                   struct err *err)
{
    const struct model *model = config->model;
    struct host_room *room = ret_room;
    int64_t most = largest_batch(config);
    bool losses = model->job->loss.reduction == REDUCTION_NONE;
    *room = (struct host_room){
        .predictions = calloc((size_t)(most * model->loss_terms) + 1, sizeof *room->predictions),
        .buffer = malloc(largest_buffer(model) + 1),
    };
    if (config->keep_outputs)
        room->outputs =
            calloc((size_t)(most * shape_count(&model->output)) + 1, sizeof *room->outputs);
    if (losses)
        room->losses = calloc((size_t)most + 1, sizeof *room->losses);
    if (room->predictions == NULL || room->buffer == NULL ||
        (config->keep_outputs && room->outputs == NULL) || (losses && room->losses == NULL))
        return err_set(err, ERR_NOMEM, "out of memory");
    return 0;
}

void host_room_done(struct host_room *room)
{
    free(room->predictions);
    free(room->outputs);
    free(room->losses);
    free(room->buffer);
    *room = (struct host_room){.buffer = NULL};
}

struct host_samples host_room_samples(const struct host_room *room, const struct model *model,
                                      int64_t first)
{
    struct host_samples samples = {.predictions = room->predictions + first * model->loss_terms};
    if (room->outputs != NULL)
        samples.outputs = room->outputs + first * shape_count(&model->output);
    if (room->losses != NULL)
        samples.losses = room->losses + first;
    return samples;
}

void host_room_show(const struct host_room *room, const struct model *model,
                    struct strategy_result *ret_result)
{
    ret_result->predictions = model->loss->predict != NULL ? room->predictions : NULL;
    ret_result->outputs = room->outputs;
    ret_result->losses = room->losses;
}
