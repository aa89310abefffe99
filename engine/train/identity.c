/* identity.c: the identity is a handful of the document's own values, kept by their JSON Pointers.
 */
#include "engine/train/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

/* The data set is told apart by its fingerprint instead: the same paths may hold other data. */
static const char *const pointers[] = {
    "/model/input",      "/model/inputs", "/model/layers", "/optimizer/type", "/train/batch_size",
    "/train/accumulate", "/train/seed",   "/data/shuffle", "/data/drop_last",
};
enum { N_POINTERS = sizeof pointers / sizeof pointers[0] };

static const char dataset_key[] = "dataset", samples_key[] = "samples";

/* The value at "/object/key"; null where there is none. */
static json_t *value_at(const json_t *root, const char *pointer)
{
    char object[32];
    const char *key = strchr(pointer + 1, '/');
    snprintf(object, sizeof object, "%.*s", (int)(key - pointer - 1), pointer + 1);
    json_t *value = json_object_get(json_object_get(root, object), key + 1);
    return value != NULL ? value : json_null();
}

static int set_text(json_t *metadata, const char *key, const json_t *value)
{
    char *text = json_line(value);
    int rc = text != NULL ? json_object_set_new(metadata, key, json_string(text)) : -1;
    free(text);
    return rc;
}

int identity_write(const struct job *job, struct identity_data data, json_t *metadata,
                   struct err *err)
{
    json_t *root = job_dump(job);
    int rc = root != NULL ? 0 : -1;
    for (int i = 0; i < N_POINTERS && rc == 0; i++)
        rc = set_text(metadata, pointers[i], value_at(root, pointers[i]));
    if (rc == 0)
        rc = json_object_set_new(metadata, dataset_key,
                                 json_sprintf("%016" PRIx64, data.fingerprint));
    if (rc == 0)
        rc = json_object_set_new(metadata, samples_key, json_sprintf("%" PRId64, data.samples));
    json_decref(root);
    return rc == 0 ? 0 : err_set(err, ERR_NOMEM, "no memory for a checkpoint's metadata");
}

static int differ(const char *pointer, const json_t *then, const json_t *now, const char *path,
                  struct err *err)
{
    char *was = json_line(then), *is = json_line(now);
    int rc = was == NULL || is == NULL
                 ? err_set(err, ERR_NOMEM, "no memory to compare a checkpoint")
                 : err_at(err, ERR_CHECKPOINT, pointer,
                          "%s is of a job with %.192s here, now it is %.192s: resume with the "
                          "same, or choose another output directory",
                          path, was, is);
    free(was);
    free(is);
    return rc;
}

/* Lists are compared element by element, so that the layer that changed is named. */
static int compare(const char *pointer, const json_t *then, const json_t *now, const char *path,
                   struct err *err)
{
    if (json_equal((json_t *)then, (json_t *)now))
        return 0;
    if (!json_is_array(then) || !json_is_array(now))
        return differ(pointer, then, now, path, err);
    size_t i = 0;
    while (json_equal(json_array_get(then, i), json_array_get(now, i)))
        i++;
    if (i >= json_array_size(then) || i >= json_array_size(now))
        return err_at(err, ERR_CHECKPOINT, pointer, "%s is of a model of %zu layers, now it is %zu",
                      path, json_array_size(then), json_array_size(now));
    char element[64];
    snprintf(element, sizeof element, "%s/%zu", pointer, i);
    return differ(element, json_array_get(then, i), json_array_get(now, i), path, err);
}

static int check_pointer(const json_t *root, const char *pointer, const struct safetensors *file,
                         const char *path, struct err *err)
{
    json_t *then;
    const char *text = safetensors_metadata(file, pointer);
    if (text == NULL)
        return err_set(err, ERR_CHECKPOINT, "%s does not say its job's %s", path, pointer);
    int rc = json_load(text, strlen(text), ERR_CHECKPOINT, &then, err);
    if (rc != 0)
        return err_context(err, "%s: %s", path, pointer);
    rc = compare(pointer, then, value_at(root, pointer), path, err);
    json_decref(then);
    return rc;
}

static int check_data(struct identity_data data, const struct safetensors *file, const char *path,
                      struct err *err)
{
    char now[24];
    const char *then = safetensors_metadata(file, samples_key);
    snprintf(now, sizeof now, "%" PRId64, data.samples);
    if (then != NULL && strcmp(then, now) != 0)
        return err_at(err, ERR_CHECKPOINT, "/data/train",
                      "%s was trained on %.20s samples, now there are %s", path, then, now);
    then = safetensors_metadata(file, dataset_key);
    snprintf(now, sizeof now, "%016" PRIx64, data.fingerprint);
    if (then == NULL || strcmp(then, now) != 0)
        return err_at(err, ERR_CHECKPOINT, "/data/train",
                      "%s was trained on other data (fingerprint %.16s, now %s)", path,
                      then != NULL ? then : "missing", now);
    return 0;
}

int identity_check(const struct job *job, struct identity_data data, const struct safetensors *file,
                   const char *path, struct err *err)
{
    json_t *root = job_dump(job);
    if (root == NULL)
        return err_set(err, ERR_NOMEM, "no memory to compare a checkpoint");
    int rc = 0;
    for (int i = 0; i < N_POINTERS && rc == 0; i++)
        rc = check_pointer(root, pointers[i], file, path, err);
    json_decref(root);
    return rc != 0 ? rc : check_data(data, file, path, err);
}
