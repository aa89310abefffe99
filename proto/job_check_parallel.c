/* job_check_parallel.c: the rules about devices and stages.
 *
 * Where stages name their devices, the list of all devices is made of theirs, so that who chooses
 * devices reads one list only.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/device_id.h"
#include "proto/job_check.h"

enum { KEY_TEXT = 64 };

/* A broken rule at a key below parallel ("" for parallel itself). */
static int __attribute__((format(printf, 3, 4)))
refuse(struct err *err, const char *key, const char *format, ...)
{
    char path[KEY_TEXT + 16], message[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    snprintf(path, sizeof path, "/parallel%s%s", key[0] != '\0' ? "/" : "", key);
    return err_at(err, ERR_JOB_INVALID, path, "%s", message);
}

static size_t count_named(const struct job_parallel *parallel)
{
    size_t n = 0;
    for (size_t i = 0; i < parallel->n_stages; i++)
        n += parallel->stages[i].n_devices;
    return n;
}

/* Where the document names device `index`: a key below parallel. */
static void device_key(const struct job_parallel *parallel, size_t index, char key[static KEY_TEXT])
{
    size_t stage = 0;
    while (stage < parallel->n_stages && index >= parallel->stages[stage].n_devices)
        index -= parallel->stages[stage++].n_devices;
    if (stage < parallel->n_stages)
        snprintf(key, KEY_TEXT, "stages/%zu/devices/%zu", stage, index);
    else
        snprintf(key, KEY_TEXT, "devices/%zu", index);
}

void job_device_path(const struct job_parallel *parallel, size_t index,
                     char path[static JOB_DEVICE_PATH])
{
    char key[KEY_TEXT];
    device_key(parallel, index, key);
    snprintf(path, JOB_DEVICE_PATH, "/parallel/%s", key);
}

/* Copies stages' devices into the list of all. */
static int list_devices(struct job_parallel *parallel, size_t n, struct err *err)
{
    char **list = calloc(n, sizeof *list);
    size_t used = 0;
    bool fits = list != NULL;
    for (size_t i = 0; fits && i < parallel->n_stages; i++)
        for (size_t k = 0; fits && k < parallel->stages[i].n_devices; k++) {
            list[used] = strdup(parallel->stages[i].devices[k]);
            fits = list[used++] != NULL;
        }
    parallel->devices = list; /* freed with the job, full or not */
    parallel->n_devices = list != NULL ? (int64_t)n : 0;
    return fits ? 0 : err_set(err, ERR_NOMEM, "out of memory for the job");
}

/* Whether the list of devices that was given is that of the stages. */
static bool same_devices(const struct job_parallel *parallel)
{
    size_t at = 0;
    for (size_t i = 0; i < parallel->n_stages; i++)
        for (size_t k = 0; k < parallel->stages[i].n_devices; k++)
            if (strcmp(parallel->stages[i].devices[k], parallel->devices[at++]) != 0)
                return false;
    return true;
}

int job_complete_parallel(const json_t *root, struct job *job, struct err *err)
{
    struct job_parallel *parallel = &job->parallel;
    const json_t *given = json_object_get(json_object_get(root, "parallel"), "devices");
    size_t n = count_named(parallel);
    if (parallel->mode != PARALLEL_STAGES)
        return 0;
    if (n == 0 && given == NULL)
        return refuse(err, "",
                      "stages needs \"devices\": a count, \"all\" or a list, or \"stages\" that "
                      "name theirs");
    if (n == 0)
        return 0;
    if (n > LIMIT_DEVICES)
        return refuse(err, "stages", "stages must name at most %d devices together, found %zu",
                      LIMIT_DEVICES, n);
    if (given != NULL && (size_t)parallel->n_devices != n)
        return refuse(err, "devices",
                      "devices must be the %zu that \"stages\" name, or be left out; found %s", n,
                      parallel->n_devices == 0 ? "\"all\"" : "another count");
    if (parallel->devices == NULL)
        return list_devices(parallel, n, err);
    return same_devices(parallel) ? 0
                                  : refuse(err, "devices",
                                           "devices must be those that \"stages\" name, in their "
                                           "order, or be left out");
}

/* Names are well-formed, of one type, none twice ("cuda" is any one, and may be). */
static int check_device_list(const struct job_parallel *parallel, struct err *err)
{
    struct device_id ids[LIMIT_DEVICES];
    char key[KEY_TEXT];
    for (size_t i = 0; i < (size_t)parallel->n_devices; i++) {
        const char *name = parallel->devices[i];
        device_key(parallel, i, key);
        if (device_id_parse(name, &ids[i], err) != 0)
            return refuse(err, key, "%s", err->message);
        if (ids[i].type != ids[0].type)
            return refuse(err, key,
                          "\"%s\" is of another type than the first device; a job has devices of "
                          "one type",
                          name);
        for (size_t k = 0; k < i; k++)
            if (ids[i].index >= 0 && ids[k].index == ids[i].index)
                return refuse(err, key, "device \"%s\" is named twice", name);
    }
    if (parallel->device_type != DEVICE_DEFAULT && parallel->device_type != ids[0].type)
        return refuse(err, "device_type",
                      "device_type differs from the type of the devices named, \"%s\"",
                      parallel->devices[0]);
    return 0;
}

/* The name with which a stage begins; where it stands, below parallel. */
static const char *begin_name(const struct job_parallel *parallel, size_t i,
                              char key[static KEY_TEXT])
{
    if (parallel->n_stages > 0)
        snprintf(key, KEY_TEXT, "stages/%zu/begin", i);
    else
        snprintf(key, KEY_TEXT, "split/%zu", i);
    return parallel->n_stages > 0 ? parallel->stages[i].begin : parallel->split[i];
}

/* Names of layers, in order; the first of `split` is the second stage's. */
static int check_begins(const struct job *job, struct err *err)
{
    const struct job_parallel *parallel = &job->parallel;
    bool whole = parallel->n_stages > 0;
    size_t before = 0;
    for (size_t i = 0; i < (whole ? parallel->n_stages : parallel->n_split); i++) {
        char key[KEY_TEXT], path[KEY_TEXT + 16];
        const char *name = begin_name(parallel, i, key);
        size_t layer = job_find_layer(&job->model, name);
        snprintf(path, sizeof path, "/parallel/%s", key);
        if (layer == job->model.n_layers)
            return job_refuse_layer_name(&job->model, path, name, err);
        if (whole && i == 0 && layer != 0)
            return refuse(err, key,
                          "the first stage must begin with the first layer, \"%.64s\", "
                          "found \"%.64s\"",
                          job->model.layers[0].name, name);
        if ((!whole || i > 0) && layer <= before)
            return refuse(err, key,
                          "a stage must begin after the one before it, which begins with layer "
                          "\"%.64s\"; found \"%.64s\"",
                          job->model.layers[before].name, name);
        before = layer;
    }
    return 0;
}

static int check_microbatches(const struct job_parallel *parallel, struct err *err)
{
    if (parallel->split_size > 0 && parallel->microbatches != 0)
        return refuse(err, "microbatches",
                      "split_size says how large micro-batches are, microbatches how many: allowed "
                      "is one of both");
    if (parallel->schedule != PIPELINE_NONE)
        return 0;
    if (parallel->split_size > 0)
        return refuse(
            err, "split_size",
            "schedule \"none\" runs a batch whole: allowed with split_size are \"gpipe\", "
            "\"1f1b\" and \"zero_bubble\"");
    if (parallel->microbatches != 0 && parallel->microbatches != 1)
        return refuse(err, "microbatches",
                      "schedule \"none\" runs a batch whole: allowed with microbatches are "
                      "\"gpipe\", \"1f1b\" and \"zero_bubble\"");
    return 0;
}

static int check_shards(const struct job *job, size_t n, struct err *err)
{
    const struct job_parallel *parallel = &job->parallel;
    if (parallel->shards == 0)
        return 0;
    if (parallel->batch_norm == STATISTICS_SYNCHRONIZED)
        return refuse(err, "shards",
                      "each shard normalises by itself: allowed with shards is batch_norm "
                      "\"per_replica\", found \"synchronized\"");
    if ((size_t)parallel->shards < n)
        return refuse(err, "shards",
                      "each device runs at least one shard: %zu devices need as many, found %lld",
                      n, (long long)parallel->shards);
    return 0;
}

int job_check_devices(const struct job *job, size_t n, struct err *err)
{
    const struct job_parallel *parallel = &job->parallel;
    if (parallel->mode != PARALLEL_STAGES)
        return check_shards(job, n, err);
    size_t replicas = (size_t)parallel->replicas, stages = n / replicas;
    if (parallel->n_stages > 0 && n != count_named(parallel))
        return refuse(err, "devices", "the stages have %zu devices together, found %zu",
                      count_named(parallel), n);
    if (parallel->n_stages > 0)
        return 0;
    if (n % replicas != 0)
        return refuse(err, "replicas",
                      "replicas must divide the number of devices, found %zu replicas of %zu "
                      "devices",
                      replicas, n);
    if (parallel->n_split > 0 && stages != parallel->n_split + 1)
        return refuse(err, "split",
                      "split must name the %zu layers that begin the second and later of %zu "
                      "stages (%zu devices, %zu replicas), found %zu",
                      stages - 1, stages, n, replicas, parallel->n_split);
    if (stages > job->model.n_layers)
        return refuse(err, "devices", "%zu stages are more than the model's %zu layers", stages,
                      job->model.n_layers);
    return 0;
}

/* What is as long as the longest of a micro-batch could not follow another's. */
static int check_stage_layers(const struct job *job, struct err *err)
{
    char path[64];
    for (size_t i = 0; i < job->model.n_layers; i++) {
        const struct job_layer *layer = &job->model.layers[i];
        bool recurrent =
            layer->type == LAYER_LSTM || layer->type == LAYER_GRU || layer->type == LAYER_RNN;
        snprintf(path, sizeof path, "/model/layers/%zu/total_length", i);
        if (recurrent && !layer->recurrent.total_length)
            return err_at(err, ERR_JOB_UNSUPPORTED, path,
                          "total_length false with stages is not in this version");
    }
    return 0;
}

static int check_stages(const struct job *job, struct err *err)
{
    const struct job_parallel *parallel = &job->parallel;
    if (parallel->n_stages > 0 && parallel->n_split > 0)
        return refuse(err, "split", "\"stages\" say where stages begin: allowed is one of both");
    if (parallel->n_stages > 0 && parallel->replicas > 1)
        return refuse(err, "replicas",
                      "\"stages\" name the devices of one pipeline, found %lld replicas: a stage "
                      "with several devices is replicated there",
                      (long long)parallel->replicas);
    int rc = check_begins(job, err);
    if (rc == 0)
        rc = check_stage_layers(job, err);
    if (rc == 0)
        rc = check_microbatches(parallel, err);
    if (rc == 0 && parallel->n_devices > 0)
        rc = job_check_devices(job, (size_t)parallel->n_devices, err);
    return rc;
}

static int check_output_device(const struct job_parallel *parallel, struct err *err)
{
    const char *name = parallel->output_device;
    char allowed[256] = "";
    size_t used = 0;
    if (name == NULL)
        return 0;
    if (parallel->devices == NULL)
        return refuse(err, "output_device",
                      "output_device names one of the devices: \"devices\" must be a list of them, "
                      "not a count");
    for (int64_t i = 0; i < parallel->n_devices; i++) {
        if (strcmp(parallel->devices[i], name) == 0)
            return 0;
        if (used < sizeof allowed)
            used += (size_t)snprintf(allowed + used, sizeof allowed - used, "%s\"%.32s\"",
                                     i > 0 ? ", " : "", parallel->devices[i]);
    }
    return refuse(
        err, "output_device",
        "output_device must be one of the job's devices, found \"%.128s\"; allowed are %s", name,
        allowed);
}

int job_check_parallel(const struct job *job, struct err *err)
{
    const struct job_parallel *parallel = &job->parallel;
    if (parallel->mode == PARALLEL_SINGLE && parallel->n_devices != 1)
        return refuse(err, "devices",
                      "mode \"single\" runs on one device; for more say \"mode\": \"replicate\"");
    int rc = parallel->devices != NULL ? check_device_list(parallel, err) : 0;
    if (rc == 0)
        rc = check_output_device(parallel, err);
    if (rc == 0)
        rc = check_shards(job, (size_t)parallel->n_devices, err);
    return rc == 0 && parallel->mode == PARALLEL_STAGES ? check_stages(job, err) : rc;
}

static void free_list(char **list, size_t n)
{
    for (size_t i = 0; list != NULL && i < n; i++)
        free(list[i]);
    free(list);
}

/* Each stage's part of the list, in its own strings. */
static int name_stages(struct job_parallel *parallel, char *const *devices, struct err *err)
{
    for (size_t i = 0; i < parallel->n_stages; i++)
        for (size_t k = 0; k < parallel->stages[i].n_devices; k++) {
            char *name = strdup(*devices++);
            if (name == NULL)
                return err_set(err, ERR_NOMEM, "out of memory for the job");
            free(parallel->stages[i].devices[k]);
            parallel->stages[i].devices[k] = name;
        }
    return 0;
}

int job_set_devices(struct job *job, char **devices, size_t n, struct err *err)
{
    struct job_parallel *parallel = &job->parallel;
    struct job_parallel changed = *parallel;
    changed.devices = devices;
    changed.n_devices = (int64_t)n;
    int rc = job_check_devices(job, n, err);
    if (rc == 0)
        rc = check_output_device(&changed, err);
    if (rc == 0)
        rc = name_stages(parallel, devices, err);
    if (rc != 0)
        return rc;
    free_list(parallel->devices, (size_t)parallel->n_devices);
    parallel->devices = devices;
    parallel->n_devices = (int64_t)n;
    parallel->device_type = DEVICE_DEFAULT;
    if (n > 1 && parallel->mode == PARALLEL_SINGLE)
        parallel->mode = PARALLEL_REPLICATE;
    return 0;
}

size_t job_stage_begins(const struct job *job, size_t *ret_first)
{
    const struct job_parallel *parallel = &job->parallel;
    bool whole = parallel->n_stages > 0;
    size_t n = 0;
    if (!whole && (parallel->n_split > 0 || parallel->n_devices == parallel->replicas))
        ret_first[n++] = 0;
    for (size_t i = 0; i < (whole ? parallel->n_stages : parallel->n_split); i++) {
        char key[KEY_TEXT];
        ret_first[n++] = job_find_layer(&job->model, begin_name(parallel, i, key));
    }
    return n;
}
