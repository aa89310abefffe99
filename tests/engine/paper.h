/* paper.h: a backend that plans and never runs: two layouts and a table of tastes, so that a plan
 * is the same text on every machine. */
#ifndef TESTS_ENGINE_PAPER_H
#define TESTS_ENGINE_PAPER_H

#include "engine/backend/backend.h"

/* Layouts "plain" and "blocked" (of twice the bytes). Linear and its gradients want blocked
 * activations and leave them so, ReLU takes what it gets and works in place, all else is plain. */
extern const struct backend backend_paper;

#endif
