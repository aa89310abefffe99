/* weights.c: `traind-worker inspect`, `diff`, `convert`: files of weights. Each prints one JSON
 * object, on one line under --json (doc/processes.md). */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/weights_file.h"
#include "engine/worker/command.h"
#include "proto/json.h"

/* Prints the object and takes it; NULL: there was no memory for it. */
static int print_object(const struct command_options *options, json_t *object, struct err *err)
{
    char *text = object == NULL ? NULL : options->json ? json_line(object) : json_pretty(object);
    json_decref(object);
    if (text == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    fputs(text, stdout);
    if (options->json)
        putchar('\n');
    free(text);
    return 0;
}

static json_t *shape_json(const struct shape *shape)
{
    json_t *dims = json_array();
    for (int i = 0; i < shape->rank; i++)
        dims = json_list_append(dims, json_integer(shape->dim[i]));
    return dims;
}

static json_t *tensor_json(const struct safetensor *tensor)
{
    return json_pack("{s:s, s:s, s:o, s:I, s:I}", "name", tensor->name, "dtype",
                     dtype_name(tensor->dtype), "shape", shape_json(&tensor->shape), "elements",
                     (json_int_t)shape_count(&tensor->shape), "bytes", (json_int_t)tensor->bytes);
}

static json_t *file_json(const struct safetensors *file)
{
    json_int_t elements = 0, bytes = 0;
    json_t *tensors = json_array();
    const json_t *metadata = safetensors_all_metadata(file);
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensor *tensor = safetensors_at(file, i);
        elements += shape_count(&tensor->shape);
        bytes += (json_int_t)tensor->bytes;
        tensors = json_list_append(tensors, tensor_json(tensor));
    }
    json_t *object = json_put(json_object(), "tensors", tensors);
    object = json_put(object, "elements", json_integer(elements));
    object = json_put(object, "bytes", json_integer(bytes));
    return json_put(object, "metadata",
                    metadata != NULL ? json_incref((json_t *)metadata) : json_object());
}

int command_inspect(const struct command_options *options, struct reporter *reporter,
                    struct err *err)
{
    struct safetensors *file;
    (void)reporter;
    int rc = safetensors_open(options->words[0], &file, err);
    if (rc != 0)
        return rc;
    rc = print_object(options, file_json(file), err);
    safetensors_close(file);
    return rc;
}

/* JSON has no infinity and no NaN: null. */
static json_t *real_json(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static json_t *difference_json(const char *name, const char *what)
{
    return json_pack("{s:s, s:s}", "name", name, "what", what);
}

/* A row of the list, or the list as it was where the two are equal. *max_abs: the largest so far.
 */
static json_t *append_difference(json_t *list, const struct safetensor *a,
                                 const struct safetensor *b, double *max_abs)
{
    if (!shape_equal(&a->shape, &b->shape)) {
        json_t *row = difference_json(b->name, "shape");
        row = json_put(row, "a", shape_json(&a->shape));
        return json_list_append(list, json_put(row, "b", shape_json(&b->shape)));
    }
    struct weights_difference difference = weights_compare(a, b);
    if (difference.max_abs == 0 && a->dtype == b->dtype)
        return list;
    json_t *row = difference_json(b->name, a->dtype != b->dtype ? "dtype" : "value");
    row = json_put(row, "max_abs", real_json(difference.max_abs));
    row = json_put(row, "relative", real_json(difference.relative));
    if (!(difference.max_abs <= *max_abs))
        *max_abs = difference.max_abs;
    return json_list_append(list, row);
}

/* In the order of b; what only a has comes last. */
static json_t *diff_json(const struct safetensors *a, const struct safetensors *b)
{
    double max_abs = 0;
    size_t n = safetensors_count(b);
    json_t *list = json_array();
    for (size_t i = 0; i < safetensors_count(b); i++) {
        const struct safetensor *right = safetensors_at(b, i);
        const struct safetensor *left = safetensors_find(a, right->name);
        list = left != NULL ? append_difference(list, left, right, &max_abs)
                            : json_list_append(list, difference_json(right->name, "extra"));
    }
    for (size_t i = 0; i < safetensors_count(a); i++) {
        const char *name = safetensors_at(a, i)->name;
        if (safetensors_find(b, name) != NULL)
            continue;
        list = json_list_append(list, difference_json(name, "missing"));
        n++;
    }
    bool equal = json_array_size(list) == 0;
    json_t *object = json_put(json_object(), "equal", json_boolean(equal));
    object = json_put(object, "tensors", json_integer((json_int_t)n));
    object = json_put(object, "max_abs", real_json(max_abs));
    return json_put(object, "differences", list);
}

int command_diff(const struct command_options *options, struct reporter *reporter, struct err *err)
{
    struct safetensors *a = NULL, *b = NULL;
    (void)reporter;
    int rc = safetensors_open(options->words[0], &a, err);
    if (rc == 0)
        rc = safetensors_open(options->words[1], &b, err);
    if (rc == 0)
        rc = print_object(options, diff_json(a, b), err);
    safetensors_close(a);
    safetensors_close(b);
    return rc;
}

int command_convert(const struct command_options *options, struct reporter *reporter,
                    struct err *err)
{
    size_t keys;
    const char *to = options->to;
    (void)reporter;
    if (to == NULL || (strcmp(to, "parallel") != 0 && strcmp(to, "single") != 0))
        return err_set(err, ERR_USAGE, "convert needs --to parallel or --to single");
    int rc = weights_convert(options->words[0], options->words[1], strcmp(to, "parallel") == 0,
                             &keys, err);
    if (rc != 0)
        return rc;
    return print_object(options,
                        json_pack("{s:s, s:s, s:I}", "written", options->words[1], "to", to, "keys",
                                  (json_int_t)keys),
                        err);
}
