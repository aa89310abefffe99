/* balance.c: see balance.h. One table of prefix sums; then the same dynamic programming for each
 * objective: best[stage][end] is the best way to put the layers before `end` in the stages up to
 * `stage`. */
#include "engine/parallel/balance.h"

#include <math.h>
#include <stdlib.h>

#include "engine/parallel/timetable.h"

struct search {
    const struct balance_config *config;
    double *seconds; /* [n_layers + 1]: of all layers before */
    int64_t *slots, *fixed;
    double *best;  /* [stages][n_layers + 1] */
    size_t *begin; /* the same: the first layer of the last stage of the best way */
    double most;   /* seconds that a stage may take; INFINITY: any */
};

/* What is made small. Values of stages are joined by addition or by the larger. */
struct objective {
    double (*value)(const struct search *search, int stage, size_t first, size_t end);
    /* Not above the value, and not less for an earlier `first`: it ends the search. */
    double (*least)(const struct search *search, int stage, size_t first, size_t end);
    bool sum;
};

static int slots_of(const struct balance_config *config, int stage)
{
    return timetable_slots(config->schedule, config->stages, stage, config->microbatches);
}

/* What is carried into a layer; nothing into the first one and behind the last one. */
static int64_t carried(const struct balance_config *config, size_t layer)
{
    return layer > 0 && layer < config->n_layers ? config->layers[layer].carried_bytes : 0;
}

/* What is fixed, the micro-batches in flight with what they received, and both halves of what is
 * sent on and back. */
static int64_t stage_bytes(const struct search *search, int stage, size_t first, size_t end)
{
    const struct balance_config *config = search->config;
    int64_t received = carried(config, first), sent = carried(config, end);
    int64_t slot_bytes = search->slots[end] - search->slots[first];
    return search->fixed[end] - search->fixed[first] +
           slots_of(config, stage) * (slot_bytes + received) + 2 * (sent + received);
}

static double stage_seconds(const struct search *search, int stage, size_t first, size_t end)
{
    (void)stage;
    return search->seconds[end] - search->seconds[first];
}

/* A stage's time, or INFINITY where it may not be. */
static double allowed_seconds(const struct search *search, int stage, size_t first, size_t end)
{
    const int64_t *memory = search->config->memory_bytes;
    double seconds = stage_seconds(search, stage, first, end);
    bool fits = memory == NULL || stage_bytes(search, stage, first, end) <= memory[stage];
    return fits && seconds <= search->most ? seconds : INFINITY;
}

static double stage_square(const struct search *search, int stage, size_t first, size_t end)
{
    double seconds = stage_seconds(search, stage, first, end);
    return seconds * seconds;
}

static double allowed_square(const struct search *search, int stage, size_t first, size_t end)
{
    double seconds = allowed_seconds(search, stage, first, end);
    return seconds * seconds;
}

/* How many times its device's memory a stage needs. */
static double memory_part(const struct search *search, int stage, size_t first, size_t end)
{
    int64_t memory = search->config->memory_bytes[stage];
    return (double)stage_bytes(search, stage, first, end) / (double)(memory > 0 ? memory : 1);
}

/* The same without what is carried. */
static double inner_part(const struct search *search, int stage, size_t first, size_t end)
{
    int64_t memory = search->config->memory_bytes[stage];
    int64_t bytes = slots_of(search->config, stage) * (search->slots[end] - search->slots[first]) +
                    search->fixed[end] - search->fixed[first];
    return (double)bytes / (double)(memory > 0 ? memory : 1);
}

static const struct objective smallest_bottleneck = {allowed_seconds, stage_seconds, false};
static const struct objective most_even = {allowed_square, stage_square, true};
static const struct objective least_memory = {memory_part, inner_part, false};

static double *best_at(const struct search *search, int stage, size_t end)
{
    return &search->best[(size_t)stage * (search->config->n_layers + 1) + end];
}

static size_t *begin_at(const struct search *search, int stage, size_t end)
{
    return &search->begin[(size_t)stage * (search->config->n_layers + 1) + end];
}

static double join(const struct objective *objective, double before, double value)
{
    if (objective->sum)
        return before + value;
    return before > value ? before : value;
}

/* The best way to end `stage` before layer `end`. */
static void find_begin(const struct search *search, const struct objective *objective, int stage,
                       size_t end)
{
    double *best = best_at(search, stage, end);
    *best = INFINITY;
    for (size_t first = end; first-- > (size_t)stage;) {
        if (!search->config->layers[first].cut)
            continue;
        if (objective->least(search, stage, first, end) >= *best)
            break;
        double before = *best_at(search, stage - 1, first);
        double value = join(objective, before, objective->value(search, stage, first, end));
        if (value < *best) {
            *best = value;
            *begin_at(search, stage, end) = first;
        }
    }
}

/* A stage ends where the next may begin, or with the model. */
static bool may_end(const struct balance_config *config, size_t end)
{
    return end == config->n_layers || config->layers[end].cut;
}

/* The objective's value of the whole model; INFINITY: there is no such split. */
static double run(const struct search *search, const struct objective *objective)
{
    const struct balance_config *config = search->config;
    for (int stage = 0; stage < config->stages; stage++)
        for (size_t end = 0; end <= config->n_layers; end++) {
            *best_at(search, stage, end) = INFINITY;
            if (end <= (size_t)stage || !may_end(config, end))
                continue;
            if (stage > 0)
                find_begin(search, objective, stage, end);
            else
                *best_at(search, 0, end) = objective->value(search, 0, 0, end);
        }
    return *best_at(search, config->stages - 1, config->n_layers);
}

/* Reads the stages of the last run from the end. */
static void read_stages(const struct search *search, struct balance *balance)
{
    const struct balance_config *config = search->config;
    size_t end = config->n_layers;
    balance->bottleneck = 0;
    for (int stage = config->stages - 1; stage >= 0; stage--) {
        size_t first = stage > 0 ? *begin_at(search, stage, end) : 0;
        balance->first[stage] = first;
        balance->seconds[stage] = stage_seconds(search, stage, first, end);
        balance->bytes[stage] = stage_bytes(search, stage, first, end);
        balance->bottleneck = fmax(balance->bottleneck, balance->seconds[stage]);
        end = first;
    }
}

static double mib(int64_t bytes)
{
    return (double)bytes / (1 << 20);
}

static int refuse_memory(struct search *search, struct err *err)
{
    const struct balance_config *config = search->config;
    struct balance nearest;
    int tightest = 0;
    double most = -1;
    run(search, &least_memory);
    read_stages(search, &nearest);
    for (int stage = 0; stage < config->stages; stage++) {
        size_t end = stage + 1 < config->stages ? nearest.first[stage + 1] : config->n_layers;
        double part = memory_part(search, stage, nearest.first[stage], end);
        tightest = part > most ? stage : tightest;
        most = fmax(part, most);
    }
    size_t end = tightest + 1 < config->stages ? nearest.first[tightest + 1] : config->n_layers;
    return err_at(err, ERR_JOB_INVALID, "/parallel",
                  "the model does not fit in %d stages: of all splits the one that lacks least "
                  "needs %.1f MiB in stage %d (layers \"%.64s\" to \"%.64s\"), whose device has "
                  "%.1f MiB",
                  config->stages, mib(nearest.bytes[tightest]), tightest,
                  config->layers[nearest.first[tightest]].name, config->layers[end - 1].name,
                  mib(config->memory_bytes[tightest]));
}

static int find(struct search *search, struct balance *ret_balance, struct err *err)
{
    search->most = INFINITY;
    search->most = run(search, &smallest_bottleneck);
    if (isinf(search->most))
        return refuse_memory(search, err);
    run(search, &most_even);
    read_stages(search, ret_balance);
    return 0;
}

static int check_cuts(const struct balance_config *config, struct err *err)
{
    size_t cuts = 0;
    for (size_t i = 1; i < config->n_layers; i++)
        cuts += config->layers[i].cut;
    if (cuts + 1 >= (size_t)config->stages)
        return 0;
    return err_at(err, ERR_JOB_INVALID, "/parallel",
                  "the model can be cut in %zu stages at most, found %d", cuts + 1, config->stages);
}

static bool allocate(struct search *search)
{
    size_t n = search->config->n_layers + 1, all = n * (size_t)search->config->stages;
    search->seconds = calloc(n, sizeof *search->seconds);
    search->slots = calloc(n, sizeof *search->slots);
    search->fixed = calloc(n, sizeof *search->fixed);
    search->best = calloc(all, sizeof *search->best);
    search->begin = calloc(all, sizeof *search->begin);
    return search->seconds != NULL && search->slots != NULL && search->fixed != NULL &&
           search->best != NULL && search->begin != NULL;
}

static void sum_layers(struct search *search)
{
    for (size_t i = 0; i < search->config->n_layers; i++) {
        const struct balance_layer *layer = &search->config->layers[i];
        double seconds = layer->forward + layer->backward + layer->weight;
        search->seconds[i + 1] = search->seconds[i] + seconds;
        search->slots[i + 1] = search->slots[i] + layer->slot_bytes;
        search->fixed[i + 1] = search->fixed[i] + layer->fixed_bytes;
    }
}

int balance_find(const struct balance_config *config, struct balance *ret_balance, struct err *err)
{
    struct search search = {.config = config};
    int rc = check_cuts(config, err);
    if (rc == 0 && !allocate(&search))
        rc = err_set(err, ERR_NOMEM, "out of memory for the balance of stages");
    if (rc == 0) {
        sum_layers(&search);
        rc = find(&search, ret_balance, err);
    }
    free(search.seconds);
    free(search.slots);
    free(search.fixed);
    free(search.best);
    free(search.begin);
    return rc;
}
