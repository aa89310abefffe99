/* init.h: PyTorch's default initialisation, drawn from the counter-based generator. */
#ifndef ENGINE_TRAIN_INIT_H
#define ENGINE_TRAIN_INIT_H

#include "engine/parallel/strategy.h"

/* The elements of a variable at the start: a function of (seed, the variable's name,
 * element). PURE. */
void init_variable(const struct variable *variable, uint64_t seed, void *ret_elements);
/* Initialises every variable on every device. */
int init_all(struct strategy *strategy, const struct model *model, struct err *err);

#endif
