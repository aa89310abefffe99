/* way.h: one way to train a model on CPU devices of one core, opened, timed and closed: what
 * benches compare. What fails ends the program. */
#ifndef BENCH_WAY_H
#define BENCH_WAY_H

#include "engine/parallel/strategy.h"
#include "engine/parallel/timetable.h"
#include "engine/worker/machine.h"

enum { WAY_STEPS = 64 }; /* measured ones, at most */

struct way {
    const char *name;
    int64_t batch;
    struct job *job;
    struct model *model;
    struct strategy_batch shape;
    struct strategy_config config;
    struct strategy *strategy; /* NULL: closed */
    struct step step;
    size_t plan_bytes, peak_bytes; /* of all its devices: as planned; as its first step needed */
    double seconds[WAY_STEPS];     /* of each measured step */
    int n_steps;
    struct strategy_times times[LIMIT_DEVICES]; /* sums over the measured steps */
};

/* Samples that every way takes its batch from. */
struct samples {
    float *inputs, *targets;
};
/* Drawn samples and one-hot rows. */
struct samples samples_new(int64_t n, int64_t values, int64_t classes);
void samples_free(struct samples *samples);

/* ResNet-50 on 3x128x128, MSE on one-hot of 1,000 classes, SGD 0.001, with a document's `parallel`.
 */
struct job *way_job(int64_t batch, const char *parallel);

/* Takes the job. Allocates, initialises, and runs a step that does not count. */
struct way *way_open(const char *name, struct job *job, const struct device_config *devices,
                     int n_devices, const struct samples *samples);
/* Measures a step. Returns its seconds. */
double way_step(struct way *way, const struct samples *samples);
/* The devices' memory is given back; what was measured stays. */
void way_close(struct way *way);
void way_free(struct way *way);

double way_mean(const struct way *way); /* of the measured steps */
/* What the timetable says of a step in stages, from its sections' mean times; of a step that splits
 * evenly. */
double way_predicted(const struct way *way);

double median(const double *values, int n);
void die(const struct err *err) __attribute__((noreturn));

#endif
