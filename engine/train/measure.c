/* measure.c: see measure.h. */
#include "engine/train/measure.h"

#include <stdlib.h>

#include "engine/graph/graph.h"
#include "engine/train/init.h"
#include "engine/train/prepare.h"

struct measuring {
    const struct trainer_config *config;
    struct prepared prepared;
    struct strategy *strategy;
    struct loader *loader;
    struct loader_batch batch;
    struct step step;
};

/* The first batch; the loader's threads have nothing to do afterwards. */
static int load(struct measuring *measuring, struct err *err)
{
    struct loader_config loader = prepared_train_loader(&measuring->prepared, 0);
    bool more = false;
    loader.n_batches = 1;
    int rc = loader_start(&loader, &measuring->loader, err);
    if (rc == 0)
        rc = loader_next(measuring->loader, &measuring->batch, &more, err);
    if (rc == 0 && !more)
        rc = err_set(err, ERR_DATA_INVALID, "there is no batch to measure with");
    return rc;
}

static void set_step(struct measuring *measuring)
{
    const struct job *job = measuring->config->job;
    const struct batch *batch = &measuring->batch.batch;
    double divisor = graph_loss_divisor(measuring->prepared.model, batch->targets, batch->n);
    measuring->step = (struct step){
        .seed = (uint64_t)job->train.seed,
        .number = 1,
        .loss_divisor = divisor,
        .gradient_scale = job->loss.reduction == REDUCTION_SUM ? 1 : 1 / divisor,
        .lr = job->optimizer.lr,
    };
}

static int open_all(struct measuring *measuring, struct err *err)
{
    int rc = prepare(measuring->config, &measuring->prepared, err);
    if (rc == 0 && measuring->prepared.train == NULL)
        rc = err_at(err, ERR_JOB_INVALID, "/train/mode", "only a job that trains is measured");
    if (rc == 0)
        rc = load(measuring, err);
    if (rc == 0)
        rc = strategy_open(&measuring->prepared.strategy, &measuring->strategy, err);
    if (rc == 0)
        rc = init_all(measuring->strategy, measuring->prepared.model, err);
    if (rc == 0)
        set_step(measuring);
    return rc;
}

int measure_open(const struct trainer_config *config, struct measuring **ret_measuring,
                 struct err *err)
{
    struct measuring *measuring = calloc(1, sizeof *measuring);
    if (measuring == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    measuring->config = config;
    int rc = open_all(measuring, err);
    if (rc == 0)
        *ret_measuring = measuring;
    else
        measure_close(measuring);
    return rc;
}

void measure_close(struct measuring *measuring)
{
    if (measuring == NULL)
        return;
    strategy_close(measuring->strategy);
    loader_stop(measuring->loader);
    prepared_done(&measuring->prepared);
    free(measuring);
}

int measure_step(struct measuring *measuring, struct strategy_result *ret_result, struct err *err)
{
    if (*measuring->config->stop != 0)
        return err_set(err, ERR_CANCELLED, "stopped on request");
    int rc = strategy_train(measuring->strategy, &measuring->batch.batch, STEP_WHOLE,
                            &measuring->step, ret_result, err);
    measuring->step.number++;
    return rc;
}

struct measured measure_what(const struct measuring *measuring)
{
    return (struct measured){measuring->prepared.model, measuring->strategy,
                             &measuring->batch.batch};
}
