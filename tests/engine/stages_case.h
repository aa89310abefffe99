/* stages_case.h: small models of every kind, run side by side in stages and on one device. */
#ifndef TESTS_ENGINE_STAGES_CASE_H
#define TESTS_ENGINE_STAGES_CASE_H

#include "engine/parallel/strategy.h"

enum { STAGES_BATCH = 13, STAGES_DEVICES = 6 };

struct stages_network {
    const char *name, *input, *layers;
    const char *split[3]; /* where four stages begin */
    const char *more;     /* members of the document beside data; NULL: models.h's */
};
extern const struct stages_network stages_networks[];
extern const int stages_n_networks;

struct stages_case {
    struct model *model;
    struct strategy *strategy;
    float floats[STAGES_BATCH * 64];
    int64_t integers[STAGES_BATCH * 64];
    int64_t targets[STAGES_BATCH * 64];
};

struct stages_config {
    const char *parallel; /* the document's, with ' for "; NULL: one device */
    int n_devices;
    const int64_t *sizes; /* of batches to come; NULL: STAGES_BATCH */
    size_t n_sizes;
    const struct backend *backend; /* NULL: the CPU */
    double clip;                   /* train.clip_grad_norm */
    bool windows;                  /* batches are accumulated too */
};

extern const struct device_config stages_devices[STAGES_DEVICES];

/* The config of a model's strategy; its pointers are static. */
struct strategy_config stages_case_config(const struct model *model,
                                          const struct stages_config *config);
struct model *stages_case_model(const struct stages_network *network,
                                const struct stages_config *config);
/* Opens and initialises; fails the test on an error. */
void stages_case_open(struct stages_case *c, const struct stages_network *network,
                      const struct stages_config *config);
void stages_case_close(struct stages_case *c);

/* Samples [first, first + n) as a batch; the loss divides by that of `whole` samples from `first`
 * of the window. Returns the strategy's code. */
int stages_case_try(struct stages_case *c, int64_t first, int64_t n, enum step_part part,
                    int64_t number, struct strategy_result *ret_result, struct err *err);
/* A whole step of n samples; fails the test on an error. */
struct strategy_result stages_case_train(struct stages_case *c, int64_t n, int64_t number);
struct strategy_result stages_case_evaluate(struct stages_case *c, int64_t n, int64_t number);

/* Fails the test unless the variables of these kinds are equal to `tolerance` of the largest
 * element (0: in every bit). */
void stages_case_same(const struct stages_case *a, const struct stages_case *b, unsigned kinds,
                      double tolerance);

#endif
