/* job_lists.c: the kinds of field that hold several values. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job.h"
#include "proto/job_kinds.h"
#include "proto/job_rows.h"
#include "proto/json.h"

static void pair_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    int used = snprintf(buf, size, "an integer %s, or a list of two", job_int_range(field, range));
    for (const struct choice *c = field->choices; c != NULL && c->name != NULL; c++)
        used += snprintf(buf + used, size - (size_t)used, ", or \"%s\"", c->name);
}

static int pair_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                      void *base)
{
    for (const struct choice *c = field->choices; c != NULL && c->name != NULL; c++)
        if (json_is_string(value) && strcmp(json_string_value(value), c->name) == 0) {
            int64_t *both = job_at(field, base);
            both[0] = both[1] = c->value;
            return 0;
        }
    const json_t *first = json_is_array(value) ? json_array_get(value, 0) : value;
    const json_t *second = json_is_array(value) ? json_array_get(value, 1) : value;
    if ((json_is_array(value) && json_array_size(value) != 2) || !job_int_fits(field, first) ||
        !job_int_fits(field, second))
        return job_parser_refuse(parser, field, value);
    int64_t *pair = job_at(field, base);
    pair[0] = json_integer_value(first);
    pair[1] = json_integer_value(second);
    return 0;
}

static bool pair_given(const struct field *field, const void *base)
{
    return field->imin <= 0 || *(const int64_t *)job_in(field, base) != 0;
}

static json_t *pair_dump(const struct field *field, const void *base)
{
    const int64_t *pair = job_in(field, base);
    for (const struct choice *c = field->choices; c != NULL && c->name != NULL; c++)
        if (pair[0] == c->value && pair[0] < field->imin)
            return json_string(c->name);
    if (pair[0] == pair[1])
        return json_integer(pair[0]);
    return json_pack("[I, I]", (json_int_t)pair[0], (json_int_t)pair[1]);
}

enum { SHAPE_MAX = LIMIT_RANK - 1 }; /* without the batch */

static void shape_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    snprintf(buf, size, "%sa list of 1 to %d integers %s",
             field->flags & FIELD_LONE ? "an integer, or " : "", SHAPE_MAX,
             job_int_range(field, range));
}

static int shape_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                       void *base)
{
    struct job_shape shape = {.rank = (int64_t)json_array_size(value)};
    if (field->flags & FIELD_LONE && job_int_fits(field, value)) {
        *(struct job_shape *)job_at(field, base) =
            (struct job_shape){.rank = 1, .dim = {json_integer_value(value)}};
        return 0;
    }
    if (shape.rank < 1 || shape.rank > SHAPE_MAX)
        return job_parser_refuse(parser, field, value);
    for (int64_t i = 0; i < shape.rank; i++) {
        const json_t *entry = json_array_get(value, (size_t)i);
        size_t mark = job_parser_enter_index(parser, (size_t)i);
        if (!job_int_fits(field, entry))
            return job_parser_refuse(parser, field, entry);
        shape.dim[i] = json_integer_value(entry);
        job_parser_leave(parser, mark);
    }
    memcpy(job_at(field, base), &shape, sizeof shape);
    return 0;
}

static bool shape_given(const struct field *field, const void *base)
{
    return ((const struct job_shape *)job_in(field, base))->rank > 0;
}

static json_t *shape_dump(const struct field *field, const void *base)
{
    const struct job_shape *shape = job_in(field, base);
    json_t *list = json_array();
    for (int64_t i = 0; list != NULL && i < shape->rank; i++) {
        list = json_list_append(list, json_integer(shape->dim[i]));
    }
    return list;
}

static void numbers_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    job_number_range(field, range);
    if ((field->flags & FIELD_LIST) == 0)
        snprintf(buf, size, "a number%s, or a list of 1 to %" PRId64 " (one a channel)", range,
                 field->imax);
    else if (field->imin == field->imax)
        snprintf(buf, size, "a list of %" PRId64 " numbers%s", field->imax, range);
    else
        snprintf(buf, size, "a list of %" PRId64 " to %" PRId64 " numbers%s", field->imin,
                 field->imax, range);
}

static int numbers_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                         void *base)
{
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    if (n < (size_t)field->imin || n > (size_t)field->imax ||
        (field->flags & FIELD_LIST && !json_is_array(value)))
        return job_parser_refuse(parser, field, value);
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_is_array(value) ? json_array_get(value, i) : value;
        if (!job_number_fits(field, entry)) {
            if (json_is_array(value))
                job_parser_enter_index(parser, i);
            return job_parser_refuse(parser, field, entry);
        }
    }
    double *v = calloc(n, sizeof *v);
    if (v == NULL)
        return job_parser_nomem(parser);
    for (size_t i = 0; i < n; i++)
        v[i] = json_number_value(json_is_array(value) ? json_array_get(value, i) : value);
    *(struct job_numbers *)job_at(field, base) = (struct job_numbers){n, v};
    return 0;
}

static bool numbers_given(const struct field *field, const void *base)
{
    const struct job_numbers *numbers = job_in(field, base);
    return numbers->n > 0;
}

static json_t *numbers_dump(const struct field *field, const void *base)
{
    const struct job_numbers *numbers = job_in(field, base);
    if (numbers->n == 1 && (field->flags & FIELD_LIST) == 0)
        return job_number_value(numbers->v[0]);
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < numbers->n; i++) {
        list = json_list_append(list, job_number_value(numbers->v[i]));
    }
    return list;
}

static void numbers_release(const struct field *field, void *base)
{
    struct job_numbers *numbers = job_at(field, base);
    free(numbers->v);
    *numbers = (struct job_numbers){0};
}

static void ints_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    snprintf(buf, size, "a list of 1 to %d integers %s", JOB_INTS_MAX, job_int_range(field, range));
}

static int ints_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                      void *base)
{
    size_t n = json_array_size(value);
    if (n < 1 || n > JOB_INTS_MAX)
        return job_parser_refuse(parser, field, value);
    int64_t *v = calloc(n, sizeof *v);
    if (v == NULL)
        return job_parser_nomem(parser);
    *(struct job_ints *)job_at(field, base) = (struct job_ints){n, v}; /* freed with the job */
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_array_get(value, i);
        if (!job_int_fits(field, entry)) {
            job_parser_enter_index(parser, i);
            return job_parser_refuse(parser, field, entry);
        }
        v[i] = json_integer_value(entry);
    }
    return 0;
}

static bool ints_given(const struct field *field, const void *base)
{
    const struct job_ints *ints = job_in(field, base);
    return ints->n > 0;
}

static json_t *ints_dump(const struct field *field, const void *base)
{
    const struct job_ints *ints = job_in(field, base);
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < ints->n; i++)
        list = json_list_append(list, json_integer(ints->v[i]));
    return list;
}

static void ints_release(const struct field *field, void *base)
{
    struct job_ints *ints = job_at(field, base);
    free(ints->v);
    *ints = (struct job_ints){0};
}

static void names_expect(const struct field *field, char *buf, size_t size)
{
    snprintf(buf, size, "a list of %" PRId64 " to %" PRId64 " names", field->imin, field->imax);
}

static void free_strings(char **strings, size_t n)
{
    for (size_t i = 0; strings != NULL && i < n; i++)
        free(strings[i]);
    free(strings);
}

/* A list of strings of at most LIMIT_NAME_BYTES; *ret_strings is the caller's, NULL of none. */
static int parse_strings(struct job_parser *parser, const struct field *field, const json_t *value,
                         char ***ret_strings)
{
    size_t n = json_array_size(value);
    if (!json_is_array(value) || n < (size_t)field->imin || n > (size_t)field->imax)
        return job_parser_refuse(parser, field, value);
    if (n == 0)
        return 0;
    char **strings = calloc(n, sizeof *strings);
    if (strings == NULL)
        return job_parser_nomem(parser);
    static const struct field entry_field = {
        .name = "an entry", .kind = FIELD_NAME, RANGE(1, LIMIT_NAME_BYTES)};
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        size_t mark = job_parser_enter_index(parser, i);
        rc = job_text_store(parser, &entry_field, json_array_get(value, i), &strings[i]);
        job_parser_leave(parser, rc == 0 ? mark : parser->used);
    }
    if (rc == 0)
        *ret_strings = strings;
    else
        free_strings(strings, n);
    return rc;
}

static json_t *dump_strings(char *const *strings, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < n; i++) {
        list = json_list_append(list, json_string(strings[i]));
    }
    return list;
}

static int names_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                       void *base)
{
    int rc = parse_strings(parser, field, value, job_at(field, base));
    if (rc == 0)
        *job_count_at(field, base) = json_array_size(value);
    return rc;
}

static json_t *names_dump(const struct field *field, const void *base)
{
    return dump_strings(*(char **const *)job_in(field, base), job_count_in(field, base));
}

static void names_release(const struct field *field, void *base)
{
    free_strings(*(char ***)job_at(field, base), job_count_in(field, base));
    *(char ***)job_at(field, base) = NULL;
    *job_count_at(field, base) = 0;
}

static void segments_expect(const struct field *field, char *buf, size_t size)
{
    snprintf(buf, size, "false, true, or a list of 1 to %" PRId64 " names of layers", field->imax);
}

static int segments_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                          void *base)
{
    struct job_segments *segments = job_at(field, base);
    if (!json_is_boolean(value) && !json_is_array(value))
        return job_parser_refuse(parser, field, value);
    segments->automatic = json_is_true(value);
    int rc = json_is_array(value) ? parse_strings(parser, field, value, &segments->names) : 0;
    if (rc == 0)
        segments->n = json_array_size(value);
    return rc;
}

static json_t *segments_dump(const struct field *field, const void *base)
{
    const struct job_segments *segments = job_in(field, base);
    if (segments->names != NULL)
        return dump_strings(segments->names, segments->n);
    return json_boolean(segments->automatic);
}

static void segments_release(const struct field *field, void *base)
{
    struct job_segments *segments = job_at(field, base);
    free_strings(segments->names, segments->n);
    *segments = (struct job_segments){0};
}

static void devices_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    snprintf(buf, size,
             "a count %s, \"all\", or a list of devices such as [\"cuda:1\", \"cuda:0\"]",
             job_int_range(field, range));
}

static int devices_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                         void *base)
{
    struct job_parallel *parallel = base;
    if (json_is_array(value)) {
        int rc = parse_strings(parser, field, value, &parallel->devices);
        parallel->n_devices = rc == 0 ? (int64_t)json_array_size(value) : 0;
        return rc;
    }
    const char *word = json_string_value(value);
    if (!job_int_fits(field, value) && (word == NULL || strcmp(word, "all") != 0))
        return job_parser_refuse(parser, field, value);
    parallel->n_devices = json_integer_value(value); /* 0 for "all" */
    return 0;
}

static json_t *devices_dump(const struct field *field, const void *base)
{
    (void)field;
    const struct job_parallel *parallel = base;
    if (parallel->devices != NULL)
        return dump_strings(parallel->devices, (size_t)parallel->n_devices);
    return parallel->n_devices > 0 ? json_integer(parallel->n_devices) : json_string("all");
}

static void devices_release(const struct field *field, void *base)
{
    (void)field;
    struct job_parallel *parallel = base;
    free_strings(parallel->devices, (size_t)parallel->n_devices);
    parallel->devices = NULL;
}

const struct field_type job_type_pair = {pair_expect, pair_parse, pair_given, pair_dump, NULL};
const struct field_type job_type_shape = {shape_expect, shape_parse, shape_given, shape_dump, NULL};
const struct field_type job_type_numbers = {numbers_expect, numbers_parse, numbers_given,
                                            numbers_dump, numbers_release};
const struct field_type job_type_ints = {ints_expect, ints_parse, ints_given, ints_dump,
                                         ints_release};
const struct field_type job_type_names = {names_expect, names_parse, job_counted, names_dump,
                                          names_release};
const struct field_type job_type_segments = {segments_expect, segments_parse, job_always,
                                             segments_dump, segments_release};
const struct field_type job_type_devices = {devices_expect, devices_parse, job_always, devices_dump,
                                            devices_release};
