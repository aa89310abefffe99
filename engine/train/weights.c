/* weights.c: a model's weights as a file of its own (checkpoint.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/train/checkpoint.h"
#include "engine/train/snapshot.h"
#include "engine/train/weights.h"

int weights_write(struct strategy *strategy, const struct model *model, const char *path,
                  uint64_t *ret_hash, struct err *err)
{
    struct snapshot snapshot;
    int rc = snapshot_read(strategy, model, SNAPSHOT_WEIGHTS, &snapshot, err);
    if (rc != 0)
        return rc;
    json_t *metadata = json_pack("{s:s}", "format", "pt");
    if (metadata == NULL)
        rc = err_set(err, ERR_NOMEM, "no memory to write %s", path);
    else
        rc = safetensors_write(path, snapshot.tensors, snapshot.n, metadata, err);
    json_decref(metadata);
    uint64_t hash = 0;
    for (size_t i = 0; i < snapshot.n; i++)
        hash += snapshot_hash(&snapshot.tensors[i]);
    snapshot_done(&snapshot);
    if (rc == 0 && ret_hash != NULL)
        *ret_hash = hash;
    return rc;
}

int checkpoint_write_weights(struct strategy *strategy, const struct model *model, const char *path,
                             struct err *err)
{
    char fresh[LIMIT_PATH_BYTES], dir[LIMIT_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    int rc = file_path(fresh, err, "%s.new", path);
    if (rc != 0)
        return rc;
    rc = file_path(dir, err, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
                   slash != NULL ? path : ".");
    if (rc == 0)
        rc = weights_write(strategy, model, fresh, NULL, err);
    if (rc == 0)
        rc = file_rename(fresh, path, dir, err);
    if (rc != 0)
        unlink(fresh); /* none, or half of one where the disk is full */
    return rc;
}

static const char prefix[] = "module.";
enum { PREFIX = sizeof prefix - 1 };

static bool prefixed(const char *name)
{
    return strncmp(name, prefix, PREFIX) == 0;
}

/* What DataParallel's and DistributedDataParallel's state_dict puts before every key: "" where
 * there is none, or where the model's own names begin so. */
static int find_prefix(const struct safetensors *file, const struct model *model, const char *path,
                       const char **ret_prefix, struct err *err)
{
    const char *with = NULL, *without = NULL;
    *ret_prefix = "";
    for (size_t i = 0; i < model->n_variables; i++)
        if (prefixed(model->variables[i].name))
            return 0;
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const char *name = safetensors_at(file, i)->name;
        *(prefixed(name) ? &with : &without) = name;
    }
    if (with != NULL && without != NULL)
        return err_set(err, ERR_WEIGHTS_INVALID,
                       "%s: keys with and without «module.»: \"%.128s\" and \"%.128s\"", path, with,
                       without);
    if (with != NULL)
        *ret_prefix = prefix;
    return 0;
}

int weights_check(const struct safetensor *tensor, const struct variable *variable,
                  const char *path, int code, struct err *err)
{
    char found[SHAPE_TEXT], wanted[SHAPE_TEXT];
    if (tensor == NULL)
        return err_set(err, code, "%s: there is no \"%.128s\"", path, variable->name);
    if (!shape_equal(&tensor->shape, &variable->shape))
        return err_set(err, code, "%s: \"%.128s\" is %s, the model's is %s", path, variable->name,
                       shape_format(&tensor->shape, found), shape_format(&variable->shape, wanted));
    if (tensor->dtype != variable->dtype)
        return err_set(err, code, "%s: \"%.128s\" is of type %s, the model's is %s", path,
                       variable->name, dtype_name(tensor->dtype), dtype_name(variable->dtype));
    return 0;
}

static const struct safetensor *find(const struct safetensors *file, const char *before,
                                     const char *name)
{
    char key[LIMIT_PATH_BYTES];
    int n = snprintf(key, sizeof key, "%s%s", before, name);
    return n < (int)sizeof key ? safetensors_find(file, key) : NULL;
}

static bool is_weight(const struct variable *variable)
{
    return (SNAPSHOT_WEIGHTS >> variable->kind & 1) != 0;
}

/* Whether it begins with what the file says. */
static bool is_loaded(const struct model *model, const struct variable *variable)
{
    return is_weight(variable) && !model->job->model.layers[variable->layer].fresh;
}

/* Every weight that is loaded is there and fits; under `strict` nothing else is. */
static int check_all(const struct safetensors *file, const struct model *model, const char *path,
                     const char *before, bool strict, struct err *err)
{
    size_t used = 0;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        if (!is_loaded(model, variable))
            continue;
        int rc = weights_check(find(file, before, variable->name), variable, path,
                               ERR_WEIGHTS_INVALID, err);
        if (rc != 0)
            return rc;
        used++;
    }
    for (size_t i = 0; strict && used < safetensors_count(file) && i < safetensors_count(file);
         i++) {
        const char *name = safetensors_at(file, i)->name;
        int variable = model_find(model, name + strlen(before));
        if (variable < 0 || !is_weight(&model->variables[variable]))
            return err_set(err, ERR_WEIGHTS_INVALID,
                           "%s: the model has no \"%.128s\" (\"strict\": false forgives it)", path,
                           name);
    }
    return 0;
}

int checkpoint_load_weights(struct strategy *strategy, const struct model *model, const char *path,
                            bool strict, struct err *err)
{
    struct safetensors *file = NULL;
    const char *before;
    int rc = safetensors_open(path, &file, err);
    if (rc == 0)
        rc = find_prefix(file, model, path, &before, err);
    if (rc == 0)
        rc = check_all(file, model, path, before, strict, err);
    for (size_t i = 0; i < model->n_variables && rc == 0; i++) {
        const struct variable *variable = &model->variables[i];
        if (is_loaded(model, variable))
            rc = strategy_write(strategy, (int)i, find(file, before, variable->name)->data, err);
    }
    safetensors_close(file);
    return rc;
}
