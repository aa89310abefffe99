/* host_room.h: where a strategy gathers what an evaluation makes, and room for a buffer on its way
 * from one device to others. */
#ifndef ENGINE_PARALLEL_HOST_ROOM_H
#define ENGINE_PARALLEL_HOST_ROOM_H

#include "engine/parallel/strategy.h"

/* By sample of the largest batch. */
struct host_room {
    int64_t *predictions;
    float *outputs; /* NULL: not kept */
    double *losses; /* NULL: none of single samples */
    void *buffer;   /* of any one of the model's buffers */
};

/* A part of the room: that of the samples from `first` on. */
struct host_samples {
    int64_t *predictions;
    float *outputs; /* NULL: not wanted */
    double *losses; /* NULL: only their sum is */
};

/* On failure host_room_done still is the caller's. Errors: ERR_NOMEM. */
int host_room_open(const struct strategy_config *config, struct host_room *ret_room,
                   struct err *err);
void host_room_done(struct host_room *room);

struct host_samples host_room_samples(const struct host_room *room, const struct model *model,
                                      int64_t first);
/* Sets what an evaluation has gathered in the result. */
void host_room_show(const struct host_room *room, const struct model *model,
                    struct strategy_result *ret_result);

#endif
