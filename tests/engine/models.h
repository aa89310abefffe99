/* models.h: jobs and models of a few lines for the checks of graph, plan and their neighbours. */
#ifndef TESTS_ENGINE_MODELS_H
#define TESTS_ENGINE_MODELS_H

#include "engine/graph/model.h"

/* A job with these layers and input shape, JSON with ' for ". `more` adds or replaces members
 * ("'loss': {…}"), NULL: CrossEntropyLoss, SGD with momentum. Fails the test on an error. */
struct job *models_job(const char *input, const char *layers, const char *more);
/* The job and its model; freed with models_free. */
struct model *models_new(const char *input, const char *layers, const char *more);
/* The same of a document with these members in "model" ("'preset': 'gpt'"), and the rest of it. */
struct model *models_of(const char *model, const char *rest);
void models_free(struct model *model);

/* n floats in [-1, 1), a function of `seed`. */
void models_fill(float *to, size_t n, uint64_t seed);

/* A CNN with a residual connection: every op of an image classifier. */
extern const char *const models_cnn_input, *const models_cnn;

#endif
