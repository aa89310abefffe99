/* job_marks.c: names in a document, of freeze, fresh, stages and record, to the layers meant.
 *
 * Names are those of PyTorch's modules: "fc" is the layer of that name, "layer1" all layers of the
 * module "layer1", whose names begin with "layer1.".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job_check.h"
#include "proto/json.h"

static bool means(const char *name, const char *layer)
{
    size_t n = strlen(name);
    return strncmp(name, layer, n) == 0 && (layer[n] == '\0' || layer[n] == '.');
}

size_t job_find_layer(const struct job_model *model, const char *name)
{
    size_t first = model->n_layers;
    for (size_t i = model->n_layers; i-- > 0;) {
        if (strcmp(name, model->layers[i].name) == 0)
            return i;
        if (means(name, model->layers[i].name))
            first = i;
    }
    return first;
}

/* *ret_nearest NULL: none is near. */
static int find_nearest(const struct job_model *model, const char *name, const char **ret_nearest,
                        struct err *err)
{
    const char **known = calloc(model->n_layers, sizeof *known);
    if (known == NULL)
        return err_set(err, ERR_NOMEM, "out of memory for the job");
    for (size_t i = 0; i < model->n_layers; i++)
        known[i] = model->layers[i].name;
    *ret_nearest = json_nearest(name, known, model->n_layers);
    free(known);
    return 0;
}

int job_refuse_layer_name(const struct job_model *model, const char *path, const char *name,
                          struct err *err)
{
    const char *nearest;
    int rc = find_nearest(model, name, &nearest, err);
    if (rc != 0)
        return rc;
    if (nearest != NULL)
        err_at(err, ERR_JOB_INVALID, path,
               "no layer has the name \"%.128s\"; did you mean \"%.128s\"?", name, nearest);
    else
        err_at(err, ERR_JOB_INVALID, path,
               "no layer has the name \"%.128s\"; allowed are the names of layers, or what their "
               "names begin with before a dot",
               name);
    return err->code;
}

/* Where "LAYER.TENSOR" or "LAYER.TENSOR.grad" parts. */
static size_t layer_length(const char *name)
{
    size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".grad") == 0)
        n -= 5;
    for (size_t i = n; i-- > 0;)
        if (name[i] == '.')
            return i;
    return n;
}

static int refuse_recorded(const struct job_model *model, size_t entry, const char *name,
                           struct err *err)
{
    const char *nearest;
    char path[64], layer[LIMIT_NAME_BYTES + 1];
    size_t n = layer_length(name);
    snprintf(path, sizeof path, "/train/record/%zu", entry);
    snprintf(layer, sizeof layer, "%.*s", (int)n, name);
    int rc = find_nearest(model, layer, &nearest, err);
    if (rc != 0)
        return rc;
    if (nearest != NULL)
        return err_at(err, ERR_JOB_INVALID, path,
                      "\"%.128s\" cannot be recorded: no layer has the name \"%.128s\"; did you "
                      "mean \"%.128s%.128s\"?",
                      name, layer, nearest, name[n] == '.' ? name + n : ".output");
    return err_at(err, ERR_JOB_INVALID, path,
                  "\"%.128s\" cannot be recorded: no layer has the name \"%.128s\"; allowed are "
                  "\"LAYER.output\", parameters such as \"LAYER.weight\", and the gradient of "
                  "either, with \".grad\" behind it",
                  name, layer);
}

int job_check_record(const struct job *job, struct err *err)
{
    const struct job_model *model = &job->model;
    for (size_t i = 0; i < job->train.n_record; i++) {
        const char *name = job->train.record[i];
        bool any = false;
        for (size_t k = 0; k < model->n_layers && !any; k++) {
            size_t n = strlen(model->layers[k].name);
            any = strncmp(name, model->layers[k].name, n) == 0 && name[n] == '.';
        }
        if (!any)
            return refuse_recorded(model, i, name, err);
    }
    return 0;
}

/* Sets the bool at `mark` of every layer meant. */
static int mark_names(struct job_model *model, char *const *names, size_t n_names,
                      const char *pointer, size_t mark, struct err *err)
{
    for (size_t i = 0; i < n_names; i++) {
        bool any = false;
        for (size_t k = 0; k < model->n_layers; k++) {
            if (!means(names[i], model->layers[k].name))
                continue;
            *(bool *)((char *)&model->layers[k] + mark) = true;
            any = true;
        }
        char path[64];
        snprintf(path, sizeof path, "%s/%zu", pointer, i);
        if (!any)
            return job_refuse_layer_name(model, path, names[i], err);
    }
    return 0;
}

int job_mark(struct job *job, struct err *err)
{
    struct job_model *model = &job->model;
    if (model->init.n_fresh > 0 && model->init.weights == NULL)
        return err_at(err, ERR_JOB_INVALID, "/model/init/fresh",
                      "fresh needs \"weights\": without them every layer starts random");
    int rc = mark_names(model, model->freeze, model->n_freeze, "/model/freeze",
                        offsetof(struct job_layer, frozen), err);
    if (rc == 0)
        rc = mark_names(model, model->init.fresh, model->init.n_fresh, "/model/init/fresh",
                        offsetof(struct job_layer, fresh), err);
    return rc;
}
