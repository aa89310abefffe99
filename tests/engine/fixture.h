/* fixture.h: a job and its model from text, for the checks of what is built on them. */
#ifndef TESTS_ENGINE_FIXTURE_H
#define TESTS_ENGINE_FIXTURE_H

#include "engine/graph/model.h"

struct fixture {
    struct job *job;
    struct model *model;
};

/* A document with these layers (a JSON list), one input shape ("[3]") and loss. Fails the test
 * where it is not accepted. */
struct fixture fixture_open(const char *shape, const char *layers, const char *loss);
void fixture_close(struct fixture *fixture);

/* n floats in [-1, 1), a function of `seed`. */
void fixture_fill(float *to, size_t n, uint64_t seed);

#endif
