/* choices.c: see choices.h. */
#include "engine/train/choices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/parallel/choose.h"
#include "engine/parallel/profile.h"
#include "engine/train/checkpoint.h"

json_t *choices_dump(const struct job *job)
{
    const struct job_parallel *parallel = &job->parallel;
    json_t *split = json_array();
    for (size_t i = 0; split != NULL && i < parallel->n_split; i++)
        if (json_array_append_new(split, json_string(parallel->split[i])) < 0) {
            json_decref(split);
            split = NULL;
        }
    return split == NULL ? NULL
                         : json_pack("{s:o, s:I}", "split", split, "microbatches",
                                     (json_int_t)parallel->microbatches);
}

/* The layer of exactly that name behind `before`; 0: there is none. */
static size_t find_behind(const struct job *job, size_t before, const char *name)
{
    for (size_t i = before + 1; name != NULL && i < job->model.n_layers; i++)
        if (strcmp(job->model.layers[i].name, name) == 0)
            return i;
    return 0;
}

/* Whether the job can be cut there: it has as many stages, and the layers in that order. The
 * checkpoint may be another model's, which the resume refuses later. */
static bool fits(const struct job *job, const json_t *split)
{
    size_t layer = 0;
    if (json_array_size(split) != job->parallel.n_split)
        return false;
    for (size_t i = 0; i < job->parallel.n_split; i++) {
        layer = find_behind(job, layer, json_string_value(json_array_get(split, i)));
        if (layer == 0)
            return false;
    }
    return true;
}

static int take(struct job *job, const json_t *kept, struct err *err)
{
    struct job_parallel *parallel = &job->parallel;
    const json_t *split = json_object_get(kept, "split");
    for (size_t i = 0; parallel->split_chosen && i < parallel->n_split; i++) {
        char *name = strdup(json_string_value(json_array_get(split, i)));
        if (name == NULL)
            return err_set(err, ERR_NOMEM, "out of memory for the split");
        free(parallel->split[i]);
        parallel->split[i] = name;
    }
    if (parallel->microbatches_chosen)
        parallel->microbatches = json_integer_value(json_object_get(kept, "microbatches"));
    return 0;
}

/* What has been measured, so that no number of rows is measured twice. */
struct measured {
    int64_t rows;
    struct balance_layer *layers;
    struct measured *next;
};

struct measuring_layers {
    const struct trainer_config *config;
    struct arena *arena;
    struct measured *measured;
};

/* NULL without memory. */
static struct measured *add_measured(struct measuring_layers *measuring, int64_t rows, size_t n)
{
    struct measured *measured = arena_alloc(measuring->arena, sizeof *measured);
    if (measured == NULL)
        return NULL;
    *measured = (struct measured){rows, arena_array(measuring->arena, n, sizeof *measured->layers),
                                  measuring->measured};
    if (measured->layers == NULL)
        return NULL;
    measuring->measured = measured;
    return measured;
}

static int measure(void *context, const struct model *model, int64_t rows,
                   struct balance_layer *layers, struct err *err)
{
    struct measuring_layers *measuring = context;
    const struct trainer_config *config = measuring->config;
    const struct profile_config profile = {config->backend, config->devices, model, rows};
    size_t n = model->job->model.n_layers;
    const struct measured *measured = measuring->measured;
    int rc = 0;
    while (measured != NULL && measured->rows != rows)
        measured = measured->next;
    if (measured == NULL) {
        struct measured *added = add_measured(measuring, rows, n);
        rc = added != NULL ? profile_layers(&profile, added->layers, err)
                           : err_set(err, ERR_NOMEM, "out of memory for the layers' times");
        measured = added;
    }
    for (size_t i = 0; rc == 0 && i < n; i++) {
        layers[i].forward = measured->layers[i].forward;
        layers[i].backward = measured->layers[i].backward;
        layers[i].weight = measured->layers[i].weight;
    }
    return rc;
}

/* "Stages begin at \"fc\", 8 micro-batches (measured)" */
static void say_choices(const struct trainer_config *config, const char *how)
{
    const struct job_parallel *parallel = &config->job->parallel;
    char line[1024];
    size_t used = (size_t)snprintf(line, sizeof line, "Stages begin at");
    for (size_t i = 0; i < parallel->n_split && used < sizeof line; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s \"%.128s\"", i > 0 ? "," : "",
                                 parallel->split[i]);
    if (parallel->microbatches_chosen && used < sizeof line)
        used += (size_t)snprintf(line + used, sizeof line - used, ", %lld micro-batches",
                                 (long long)parallel->microbatches);
    if (used < sizeof line)
        snprintf(line + used, sizeof line - used, " (%s)", how);
    config->sink.say(config->sink.context, line);
}

/* A device that has not the memory for the whole model measures nothing: the estimate stands. */
static int choose_by_measure(const struct trainer_config *config, struct job *job,
                             int64_t memory_bytes, struct err *err)
{
    struct measuring_layers measuring = {.config = config, .arena = arena_new()};
    const struct estimate_source source = {measure, &measuring};
    int rc = ERR_NOMEM;
    if (measuring.arena != NULL)
        rc = choose_again(job, (size_t)config->n_devices, memory_bytes, &source, err);
    arena_free(measuring.arena);
    if (rc == 0 || rc == ERR_NOMEM)
        say_choices(config, rc == 0 ? "measured" : "estimated");
    if (rc == ERR_NOMEM)
        *err = (struct err)ERR_INIT;
    return rc == ERR_NOMEM ? 0 : rc;
}

int choices_settle(const struct trainer_config *config, struct job *job, int64_t memory_bytes,
                   struct err *err)
{
    const struct job_parallel *parallel = &job->parallel;
    json_t *kept = NULL;
    int rc = 0;
    if (!parallel->split_chosen && !parallel->microbatches_chosen)
        return 0;
    if (!job_trains(job))
        return 0;
    if (job->checkpoint.resume)
        rc = checkpoint_choices(config->output, &kept, err);
    if (rc == 0 && kept != NULL && fits(job, json_object_get(kept, "split")))
        rc = take(job, kept, err);
    else if (rc == 0)
        rc = choose_by_measure(config, job, memory_bytes, err);
    json_decref(kept);
    return rc;
}
