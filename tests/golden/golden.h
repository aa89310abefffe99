/* golden.h: what the checks of this folder share: their folder, their files, and comparisons. */
#ifndef TESTS_GOLDEN_GOLDEN_H
#define TESTS_GOLDEN_GOLDEN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Goes to tests/golden, which the paths in the documents are relative to. False (it has said why):
 * the program fails. */
bool golden_enter(void);
/* The same, and reads a list of cases there, before the tests fork. NULL: the program fails. */
json_t *golden_cases(const char *file);

/* The row's number within `tolerance` of `wanted`, relative. */
void golden_number(const char *row, const json_t *object, const char *key, double wanted,
                   double tolerance);
/* metrics.jsonl of `output` has the case's losses, and its rates where it has some. */
void golden_metrics(const char *output, const json_t *golden, double tolerance);
/* max|a-b| <= tolerance * max|b|. */
void golden_floats(const char *name, const float *a, const float *b, size_t n, double tolerance);

/* Trains a case on 1, 2 and 3 devices and compares the losses. */
void golden_curve(const json_t *golden, double tolerance);

#endif
