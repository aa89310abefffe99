/* inference.h: a job that does not train: given weights over the validation data (the training data
 * where there is none), in the order of its samples.
 *
 * evaluate writes evaluation.json: samples, loss, and for a classifier accuracy, top-5 accuracy and
 * each class's accuracy; under reduction none also losses.npy: a loss a sample. predict writes
 * outputs.npy as well: the last layer's outputs, [samples, output shape]; of data without targets
 * nothing else.
 */
#ifndef ENGINE_TRAIN_INFERENCE_H
#define ENGINE_TRAIN_INFERENCE_H

#include "engine/train/trainer.h"

/* Errors: as trainer_run's. */
int inference_run(const struct trainer_config *config, struct err *err);

#endif
