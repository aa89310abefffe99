/* update.h: where an update's inputs are: w, gw, scale? (of the gradient), state... */
#ifndef ENGINE_BACKEND_CPU_UPDATE_H
#define ENGINE_BACKEND_CPU_UPDATE_H

#include "engine/backend/cpu/own.h"

enum { UPDATE_PARAMETER, UPDATE_GRADIENT, UPDATE_SCALE, UPDATE_STATE };

static inline float update_scale(const struct node *node, const struct kernel_args *args)
{
    return own_in(node, UPDATE_SCALE) ? *(const float *)args->in[UPDATE_SCALE] : 1;
}

/* State `i`, or NULL where it is absent. */
static inline float *update_state(const struct node *node, const struct kernel_args *args, int i)
{
    return own_in(node, UPDATE_STATE + i) ? args->in[UPDATE_STATE + i] : NULL;
}

#endif
