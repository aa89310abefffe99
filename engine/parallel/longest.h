/* longest.h: what PyTorch finds out in a step whose outputs are as long as the chunk's longest
 * sample (a recurrent layer's total_length false): whether shapes fit. PURE. */
#ifndef ENGINE_PARALLEL_LONGEST_H
#define ENGINE_PARALLEL_LONGEST_H

#include "engine/parallel/strategy.h"

/* For a batch that is cut by torch.chunk for the config's devices or the job's shards. Errors:
 * ERR_MODEL_SHAPE where replicas differ, which could not be gathered, naming two of them and their
 * steps; where a layer or the loss needs all steps of the input and the longest sample has fewer.
 */
int longest_check(const struct strategy_config *config, const struct batch *batch, struct err *err);

#endif
