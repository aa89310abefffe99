/* choose.c: see choose.h. Each count of micro-batches that is tried gets the split that is best for
 * it, and the timetable of both; the smallest predicted step wins. */
#include "engine/parallel/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/registry.h"
#include "engine/parallel/chunk.h"

struct choice {
    size_t first[LIMIT_DEVICES];
    int64_t microbatches;
    double seconds; /* predicted */
};

struct search {
    struct job *job;
    const struct model *model;
    int stages;
    int devices[LIMIT_DEVICES];    /* of each stage */
    int64_t memory[LIMIT_DEVICES]; /* the same */
    int64_t rows;                  /* of a pipeline's part of a batch */
    struct estimate_source source; /* of the layers' times */
    bool open_split, open_count;   /* else as the job has them */
    struct balance_layer *layers;  /* room */
};

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "out of memory for the choice of stages");
}

static bool trains(const struct search *search)
{
    return job_trains(search->job);
}

static struct microbatch_rule rule_of(const struct search *search, int64_t microbatches)
{
    return (struct microbatch_rule){search->job->parallel.split_size, microbatches};
}

static int find_split(const struct search *search, const struct microbatch_rule *rule,
                      struct choice *choice, struct err *err)
{
    struct microbatch_rows all = {0, search->rows};
    struct balance balance;
    const struct balance_config config = {
        .layers = search->layers,
        .n_layers = search->job->model.n_layers,
        .stages = search->stages,
        .schedule = search->job->parallel.schedule,
        .microbatches = (int)microbatch_count(rule, search->rows),
        .memory_bytes = search->memory,
    };
    int64_t rows = microbatch_cut(rule, all, 0).n;
    int rc =
        estimate_layers(search->model, &search->source, rows, trains(search), search->layers, err);
    if (rc == 0)
        rc = balance_find(&config, &balance, err);
    if (rc == 0)
        memcpy(choice->first, balance.first, sizeof choice->first);
    return rc;
}

/* Keeps what this many micro-batches make if it is quicker than the best so far. */
static int try(const struct search *search, int64_t microbatches, struct choice *best,
               struct err *err)
{
    struct microbatch_rule rule = rule_of(search, microbatches);
    struct choice choice = *best;
    struct timetable *table = NULL;
    int rc = search->open_split ? find_split(search, &rule, &choice, err) : 0;
    if (rc != 0)
        return rc;
    const struct estimate_stages stages = {search->stages, choice.first, search->devices};
    rc = estimate_timetable(search->model, &search->source, &stages, &rule, search->rows,
                            trains(search), &table, err);
    if (rc != 0)
        return rc;
    if (table->seconds < best->seconds) {
        choice.microbatches = microbatches;
        choice.seconds = table->seconds;
        *best = choice;
    }
    timetable_free(table);
    return 0;
}

/* A BatchNorm of a job that trains would see micro-batches instead of the batch, frozen or not. */
static bool has_batchnorm(const struct search *search)
{
    const struct job_model *model = &search->job->model;
    for (size_t i = 0; trains(search) && i < model->n_layers; i++) {
        const struct job_layer *layer = &model->layers[i];
        if (layer->type == LAYER_BATCHNORM1D || layer->type == LAYER_BATCHNORM2D)
            return true;
    }
    return false;
}

/* Whether the document leaves the number of micro-batches to us, and one is not the answer. */
static bool leaves_count(const struct search *search)
{
    const struct job_parallel *parallel = &search->job->parallel;
    if (parallel->microbatches == MICROBATCHES_AUTO)
        return true;
    return parallel->split_size == 0 && parallel->microbatches == 0 &&
           parallel->schedule != PIPELINE_NONE && search->stages > 1 && !has_batchnorm(search);
}

static const int counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
enum { COUNTS = sizeof counts / sizeof *counts };

/* Where the job has a number already, it and its neighbours, else all: counts[*ret_first] and on.
 * Returns how many. */
static size_t candidates(const struct search *search, size_t *ret_first)
{
    size_t at = 0;
    *ret_first = 0;
    while (at < COUNTS && counts[at] != search->job->parallel.microbatches)
        at++;
    if (at == COUNTS)
        return COUNTS;
    *ret_first = at > 0 ? at - 1 : 0;
    return (at + 2 < COUNTS ? at + 2 : COUNTS) - *ret_first;
}

static int try_all(const struct search *search, struct choice *best, struct err *err)
{
    size_t first, n = candidates(search, &first);
    int rc = 0;
    if (!search->open_count)
        return try(search, search->job->parallel.microbatches, best, err);
    /* A count that cannot run, for want of memory or of values for a BatchNorm, is none. */
    for (size_t i = first; rc != ERR_NOMEM && i < first + n; i++)
        if (counts[i] <= search->rows)
            rc = try(search, counts[i], best, err);
    return rc != ERR_NOMEM && isfinite(best->seconds) ? 0 : rc;
}

static int write_split(struct job *job, const struct choice *choice, int stages, struct err *err)
{
    struct job_parallel *parallel = &job->parallel;
    size_t n = (size_t)stages - 1;
    if (n == 0)
        return 0;
    for (size_t i = 0; i < parallel->n_split; i++)
        free(parallel->split[i]);
    free(parallel->split);
    parallel->n_split = 0;
    parallel->split = calloc(n, sizeof *parallel->split);
    if (parallel->split == NULL)
        return nomem(err);
    parallel->n_split = n; /* freed with the job, full or not */
    parallel->split_chosen = true;
    for (size_t i = 0; i < n; i++) {
        parallel->split[i] = strdup(job->model.layers[choice->first[i + 1]].name);
        if (parallel->split[i] == NULL)
            return nomem(err);
    }
    return 0;
}

static int search_all(struct search *search, struct err *err)
{
    struct choice best = {.seconds = INFINITY};
    if (!search->open_split)
        job_stage_begins(search->job, best.first);
    int rc = try_all(search, &best, err);
    if (rc == 0 && search->open_count) {
        search->job->parallel.microbatches = best.microbatches;
        search->job->parallel.microbatches_chosen = true;
    }
    return rc == 0 && search->open_split ? write_split(search->job, &best, search->stages, err)
                                         : rc;
}

static void set_up(struct search *search, size_t n_devices, int64_t memory_bytes)
{
    const struct job_parallel *parallel = &search->job->parallel;
    int64_t rows[LIMIT_DEVICES];
    chunk_sizes(search->job->train.batch_size, (int)parallel->replicas, rows);
    search->rows = rows[0];
    search->stages = parallel->n_stages > 0 ? (int)parallel->n_stages
                                            : (int)(n_devices / (size_t)parallel->replicas);
    for (int s = 0; s < search->stages; s++) {
        search->devices[s] = parallel->n_stages > 0 ? (int)parallel->stages[s].n_devices : 1;
        search->memory[s] = memory_bytes;
    }
}

/* Builds what the search is about, runs it. */
static int run(struct search *search, struct err *err)
{
    struct model *model = NULL;
    int rc = model_build(search->job, &op_registry, &model, err);
    if (rc != 0)
        return rc;
    search->model = model;
    search->layers = calloc(search->job->model.n_layers, sizeof *search->layers);
    rc = search->layers != NULL ? search_all(search, err) : nomem(err);
    free(search->layers);
    model_free(model);
    return rc;
}

int choose_stages(struct job *job, size_t n_devices, int64_t memory_bytes, struct err *err)
{
    struct search search = {.job = job};
    size_t first[LIMIT_DEVICES];
    if (job->parallel.mode != PARALLEL_STAGES)
        return 0;
    set_up(&search, n_devices, memory_bytes);
    search.open_split = job_stage_begins(job, first) == 0;
    search.open_count = leaves_count(&search);
    int rc = run(&search, err);
    if (rc == 0 && job->parallel.n_devices == 0)
        job->parallel.n_devices = (int64_t)n_devices;
    return rc;
}

int choose_again(struct job *job, size_t n_devices, int64_t memory_bytes,
                 const struct estimate_source *source, struct err *err)
{
    struct search search = {
        .job = job,
        .source = *source,
        .open_split = job->parallel.split_chosen,
        .open_count = job->parallel.microbatches_chosen,
    };
    set_up(&search, n_devices, memory_bytes);
    return run(&search, err);
}
