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

static int measure(void *context, const struct model *model, int64_t rows,
                   struct balance_layer *layers, struct err *err)
{
    const struct trainer_config *config = context;
    const struct profile_config profile = {config->backend, config->devices, model, rows};
    return profile_layers(&profile, layers, err);
}

static void say_split(const struct trainer_config *config, const char *how)
{
    const struct job_parallel *parallel = &config->job->parallel;
    char line[1024];
    size_t used = (size_t)snprintf(line, sizeof line, "Stages begin at");
    for (size_t i = 0; i < parallel->n_split && used < sizeof line; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s \"%.128s\"", i > 0 ? "," : "",
                                 parallel->split[i]);
    if (used < sizeof line)
        snprintf(line + used, sizeof line - used, " (%s)", how);
    config->sink.say(config->sink.context, line);
}

/* A device that has not the memory for the whole model measures nothing: the estimate stands. */
static int cut_by_measure(const struct trainer_config *config, struct job *job,
                          int64_t memory_bytes, struct err *err)
{
    int rc =
        choose_split(job, (size_t)config->n_devices, memory_bytes, measure, (void *)config, err);
    if (rc == ERR_NOMEM) {
        *err = (struct err)ERR_INIT;
        say_split(config, "estimated");
        return 0;
    }
    if (rc == 0)
        say_split(config, "measured");
    return rc;
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
    else if (rc == 0 && parallel->split_chosen)
        rc = cut_by_measure(config, job, memory_bytes, err);
    json_decref(kept);
    return rc;
}
