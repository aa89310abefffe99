/* job_kinds.c: reading, writing and freeing each kind of field. */
#include "proto/job_kinds.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/device_id.h"
#include "proto/job.h"
#include "proto/job_rows.h"
#include "proto/json.h"

static void *at(const struct field *field, void *base)
{
    return (char *)base + field->offset;
}

static const void *in(const struct field *field, const void *base)
{
    return (const char *)base + field->offset;
}

static bool always(const struct field *field, const void *base)
{
    (void)field;
    (void)base;
    return true;
}

/* "from 1 to 6", "of at least 1": as far as the bounds are ours and not the type's. */
static const char *int_range(const struct field *field, char buf[static 64])
{
    if (field->imax < COUNT_MAX)
        snprintf(buf, 64, "from %" PRId64 " to %" PRId64, field->imin, field->imax);
    else
        snprintf(buf, 64, "of at least %" PRId64, field->imin);
    return buf;
}

static bool int_fits(const struct field *field, const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= field->imin &&
           json_integer_value(value) <= field->imax;
}

static void int_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    snprintf(buf, size, "an integer %s", int_range(field, range));
}

static int int_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                     void *base)
{
    if (!int_fits(field, value))
        return job_parser_refuse(parser, field, value);
    *(int64_t *)at(field, base) = json_integer_value(value);
    return 0;
}

/* An integer without a default has 0 for "not given": its range begins at 1. */
static bool int_given(const struct field *field, const void *base)
{
    return field->fallback != NULL || (field->flags & (FIELD_REQUIRED | FIELD_COMPUTED)) != 0 ||
           *(const int64_t *)in(field, base) != 0;
}

static json_t *int_dump(const struct field *field, const void *base)
{
    return json_integer(*(const int64_t *)in(field, base));
}

static const char *number_range(const struct field *field, char buf[static 64])
{
    if (field->flags & FIELD_ABOVE)
        snprintf(buf, 64, " above %g", field->dmin);
    else if (field->dmin > -REAL_MAX && field->dmax < REAL_MAX)
        snprintf(buf, 64, " from %g to %g", field->dmin, field->dmax);
    else if (field->dmin > -REAL_MAX)
        snprintf(buf, 64, " of at least %g", field->dmin);
    else
        buf[0] = '\0';
    return buf;
}

static bool number_fits(const struct field *field, const json_t *value)
{
    double number = json_number_value(value);
    return json_is_number(value) && number <= field->dmax &&
           (field->flags & FIELD_ABOVE ? number > field->dmin : number >= field->dmin);
}

static void number_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    snprintf(buf, size, "a number%s", number_range(field, range));
}

static int number_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                        void *base)
{
    if (!number_fits(field, value))
        return job_parser_refuse(parser, field, value);
    *(double *)at(field, base) = json_number_value(value);
    return 0;
}

/* Whole numbers are written as people write them: 0, not 0.0. */
static json_t *number_value(double number)
{
    const double exact = 1e15;
    if (number == trunc(number) && fabs(number) < exact && !signbit(number))
        return json_integer((json_int_t)number);
    return json_real(number);
}

static json_t *number_dump(const struct field *field, const void *base)
{
    return number_value(*(const double *)in(field, base));
}

static void bool_expect(const struct field *field, char *buf, size_t size)
{
    (void)field;
    snprintf(buf, size, "true or false");
}

static int bool_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                      void *base)
{
    if (!json_is_boolean(value))
        return job_parser_refuse(parser, field, value);
    *(bool *)at(field, base) = json_is_true(value);
    return 0;
}

static json_t *bool_dump(const struct field *field, const void *base)
{
    return json_boolean(*(const bool *)in(field, base));
}

/* Control characters would reach terminals, logs and line-based files. */
static bool is_text(const struct field *field, const json_t *value)
{
    size_t size = json_string_length(value);
    if (!json_is_string(value) || size < (size_t)field->imin || size > (size_t)field->imax)
        return false;
    for (const char *s = json_string_value(value); *s != '\0'; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return false;
    return true;
}

static int text_store(struct job_parser *parser, const struct field *field, const json_t *value,
                      void *base)
{
    if (!is_text(field, value))
        return job_parser_refuse(parser, field, value);
    char *copy = strdup(json_string_value(value));
    if (copy == NULL)
        return job_parser_nomem(parser);
    *(char **)at(field, base) = copy;
    return 0;
}

static bool text_given(const struct field *field, const void *base)
{
    return *(char *const *)in(field, base) != NULL;
}

static json_t *text_dump(const struct field *field, const void *base)
{
    return json_string(*(char *const *)in(field, base));
}

static void text_release(const struct field *field, void *base)
{
    free(*(char **)at(field, base));
    *(char **)at(field, base) = NULL;
}

static void text_expect(const struct field *field, char *buf, size_t size)
{
    snprintf(buf, size, "a string of %" PRId64 " to %" PRId64 " bytes without control characters",
             field->imin, field->imax);
}

static void layer_name_expect(const struct field *field, char *buf, size_t size)
{
    snprintf(buf, size,
             "a string of 1 to %" PRId64
             " bytes whose parts between dots are not empty, without control characters, and not "
             "\"input\"",
             field->imax);
}

static int layer_name_parse(struct job_parser *parser, const struct field *field,
                            const json_t *value, void *base)
{
    const char *name = json_string_value(value);
    if (name == NULL || name[0] == '.' || strstr(name, "..") != NULL ||
        (name[0] != '\0' && name[strlen(name) - 1] == '.') || strcmp(name, "input") == 0)
        return job_parser_refuse(parser, field, value);
    return text_store(parser, field, value, base);
}

static const struct choice *find_choice(const struct field *field, const json_t *value)
{
    const char *name = json_string_value(value);
    for (const struct choice *c = field->choices; name != NULL && c->name != NULL; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static void choice_list(const struct field *field, char *buf, size_t size)
{
    size_t used = strlen(buf);
    for (const struct choice *c = field->choices; c->name != NULL && used < size; c++) {
        const char *before = c == field->choices ? "" : c[1].name == NULL ? " or " : ", ";
        int n = snprintf(buf + used, size - used, "%s\"%s\"", before, c->name);
        used += n > 0 ? (size_t)n : 0;
    }
}

static void choice_expect(const struct field *field, char *buf, size_t size)
{
    buf[0] = '\0';
    choice_list(field, buf, size);
}

/* Enums have the size of an int, "resume" is a bool. */
static void store_choice(const struct field *field, void *base, int value)
{
    if (field->size == sizeof(bool))
        *(bool *)at(field, base) = value != 0;
    else
        memcpy(at(field, base), &value, sizeof value);
}

static int load_choice(const struct field *field, const void *base)
{
    if (field->size == sizeof(bool))
        return *(const bool *)in(field, base);
    int value;
    memcpy(&value, in(field, base), sizeof value);
    return value;
}

static int choice_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                        void *base)
{
    const struct choice *choice = find_choice(field, value);
    if (choice == NULL)
        return job_parser_refuse(parser, field, value);
    store_choice(field, base, choice->value);
    return 0;
}

static bool choice_given(const struct field *field, const void *base)
{
    return job_choice(field, load_choice(field, base)) != NULL;
}

static json_t *choice_dump(const struct field *field, const void *base)
{
    return json_string(job_choice(field, load_choice(field, base))->name);
}

static void flags_expect(const struct field *field, char *buf, size_t size)
{
    snprintf(buf, size, "a list of ");
    choice_list(field, buf, size);
}

static int flags_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                       void *base)
{
    if (!json_is_array(value))
        return job_parser_refuse(parser, field, value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *entry = json_array_get(value, i);
        const struct choice *choice = find_choice(field, entry);
        size_t mark = job_parser_enter_index(parser, i);
        if (choice == NULL)
            return job_parser_refuse(parser, field, entry);
        *((bool *)at(field, base) + choice->value) = true;
        job_parser_leave(parser, mark);
    }
    return 0;
}

static json_t *flags_dump(const struct field *field, const void *base)
{
    json_t *list = json_array();
    for (const struct choice *c = field->choices; list != NULL && c->name != NULL; c++) {
        if (!*((const bool *)in(field, base) + c->value))
            continue;
        if (json_array_append_new(list, json_string(c->name)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static void fixed_expect(const struct field *field, char *buf, size_t size)
{
    snprintf(buf, size, "%s", field->fallback);
}

static json_t *fixed_dump(const struct field *field, const void *base)
{
    (void)base;
    return json_loads(field->fallback, JSON_DECODE_ANY, NULL);
}

static int fixed_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                       void *base)
{
    json_t *only = fixed_dump(field, base);
    if (only == NULL)
        return job_parser_nomem(parser);
    bool equal = json_equal(only, value);
    json_decref(only);
    return equal ? 0 : job_parser_refuse(parser, field, value);
}

static void pair_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    snprintf(buf, size, "an integer %s, or a list of two", int_range(field, range));
}

static int pair_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                      void *base)
{
    const json_t *first = json_is_array(value) ? json_array_get(value, 0) : value;
    const json_t *second = json_is_array(value) ? json_array_get(value, 1) : value;
    if ((json_is_array(value) && json_array_size(value) != 2) || !int_fits(field, first) ||
        !int_fits(field, second))
        return job_parser_refuse(parser, field, value);
    int64_t *pair = at(field, base);
    pair[0] = json_integer_value(first);
    pair[1] = json_integer_value(second);
    return 0;
}

static json_t *pair_dump(const struct field *field, const void *base)
{
    const int64_t *pair = in(field, base);
    if (pair[0] == pair[1])
        return json_integer(pair[0]);
    return json_pack("[I, I]", (json_int_t)pair[0], (json_int_t)pair[1]);
}

enum { SHAPE_MAX = LIMIT_RANK - 1 }; /* without the batch */

static void shape_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    snprintf(buf, size, "a list of 1 to %d integers %s", SHAPE_MAX, int_range(field, range));
}

static int shape_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                       void *base)
{
    struct job_shape shape = {.rank = (int64_t)json_array_size(value)};
    if (shape.rank < 1 || shape.rank > SHAPE_MAX)
        return job_parser_refuse(parser, field, value);
    for (int64_t i = 0; i < shape.rank; i++) {
        const json_t *entry = json_array_get(value, (size_t)i);
        size_t mark = job_parser_enter_index(parser, (size_t)i);
        if (!int_fits(field, entry))
            return job_parser_refuse(parser, field, entry);
        shape.dim[i] = json_integer_value(entry);
        job_parser_leave(parser, mark);
    }
    memcpy(at(field, base), &shape, sizeof shape);
    return 0;
}

static json_t *shape_dump(const struct field *field, const void *base)
{
    const struct job_shape *shape = in(field, base);
    json_t *list = json_array();
    for (int64_t i = 0; list != NULL && i < shape->rank; i++) {
        if (json_array_append_new(list, json_integer(shape->dim[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static void numbers_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    snprintf(buf, size, "a number%s, or a list of 1 to %" PRId64 " (one a channel)",
             number_range(field, range), field->imax);
}

static int numbers_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                         void *base)
{
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    if (n < (size_t)field->imin || n > (size_t)field->imax)
        return job_parser_refuse(parser, field, value);
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_is_array(value) ? json_array_get(value, i) : value;
        if (!number_fits(field, entry)) {
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
    *(struct job_numbers *)at(field, base) = (struct job_numbers){n, v};
    return 0;
}

static json_t *numbers_dump(const struct field *field, const void *base)
{
    const struct job_numbers *numbers = in(field, base);
    if (numbers->n == 1)
        return number_value(numbers->v[0]);
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < numbers->n; i++) {
        if (json_array_append_new(list, number_value(numbers->v[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static void numbers_release(const struct field *field, void *base)
{
    struct job_numbers *numbers = at(field, base);
    free(numbers->v);
    *numbers = (struct job_numbers){0};
}

static void every_expect(const struct field *field, char *buf, size_t size)
{
    snprintf(buf, size, "\"never\", or a count and a unit such as \"500 steps\", \"1 epoch\"%s",
             field->flags & FIELD_UNTIMED ? "" : ", \"10 min\"");
}

/* "N UNIT": digits without a leading zero, one space, a unit. */
static bool every_read(const struct field *field, const char *text, struct job_every *ret_every)
{
    int64_t n = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 13 || text[0] == '0' || text[digits] != ' ')
        return false;
    for (size_t i = 0; i < digits; i++)
        n = 10 * n + (text[i] - '0');
    const struct every_unit_def *unit = job_every_units;
    while (unit->name != NULL && strcmp(unit->name, text + digits + 1) != 0)
        unit++;
    if (unit->name == NULL || n > field->imax / unit->factor ||
        (unit->unit == EVERY_SECONDS && field->flags & FIELD_UNTIMED))
        return false;
    *ret_every = (struct job_every){(enum every_unit)unit->unit, n * unit->factor};
    return true;
}

static int every_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                       void *base)
{
    struct job_every every = {EVERY_NEVER, 0};
    const char *text = json_string_value(value);
    if (text == NULL || (strcmp(text, "never") != 0 && !every_read(field, text, &every)))
        return job_parser_refuse(parser, field, value);
    *(struct job_every *)at(field, base) = every;
    return 0;
}

static json_t *every_dump(const struct field *field, const void *base)
{
    const struct job_every *every = in(field, base);
    if (every->unit == EVERY_NEVER)
        return json_string("never");
    /* Of a unit's rows the first that fits: singular before plural, hours before seconds. */
    const struct every_unit_def *unit = job_every_units;
    while (unit->unit != (int)every->unit || every->n % unit->factor != 0)
        unit++;
    int64_t n = every->n / unit->factor;
    bool plural = n != 1 && unit[1].unit == unit->unit && unit[1].factor == unit->factor;
    return json_sprintf("%" PRId64 " %s", n, unit[plural].name);
}

static void names_expect(const struct field *field, char *buf, size_t size)
{
    snprintf(buf, size, "a list of 1 to %" PRId64 " names", field->imax);
}

static void free_strings(char **strings, size_t n)
{
    for (size_t i = 0; strings != NULL && i < n; i++)
        free(strings[i]);
    free(strings);
}

/* A list of strings of at most LIMIT_NAME_BYTES; *ret_strings is the caller's. */
static int parse_strings(struct job_parser *parser, const struct field *field, const json_t *value,
                         char ***ret_strings)
{
    size_t n = json_array_size(value);
    if (n < 1 || n > (size_t)field->imax)
        return job_parser_refuse(parser, field, value);
    char **strings = calloc(n, sizeof *strings);
    if (strings == NULL)
        return job_parser_nomem(parser);
    static const struct field entry_field = {
        .name = "an entry", .kind = FIELD_NAME, RANGE(1, LIMIT_NAME_BYTES)};
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        size_t mark = job_parser_enter_index(parser, i);
        rc = text_store(parser, &entry_field, json_array_get(value, i), &strings[i]);
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
        if (json_array_append_new(list, json_string(strings[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static size_t *count_at(const struct field *field, void *base)
{
    return (size_t *)(void *)((char *)base + field->aux);
}

static size_t count_in(const struct field *field, const void *base)
{
    return *(const size_t *)(const void *)((const char *)base + field->aux);
}

static bool counted_given(const struct field *field, const void *base)
{
    return count_in(field, base) > 0;
}

static int names_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                       void *base)
{
    int rc = parse_strings(parser, field, value, at(field, base));
    if (rc == 0)
        *count_at(field, base) = json_array_size(value);
    return rc;
}

static json_t *names_dump(const struct field *field, const void *base)
{
    return dump_strings(*(char **const *)in(field, base), count_in(field, base));
}

static void names_release(const struct field *field, void *base)
{
    free_strings(*(char ***)at(field, base), count_in(field, base));
    *(char ***)at(field, base) = NULL;
    *count_at(field, base) = 0;
}

static void devices_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    snprintf(buf, size,
             "a count %s, \"all\", or a list of devices such as [\"cuda:1\", \"cuda:0\"]",
             int_range(field, range));
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
    if (!int_fits(field, value) && (word == NULL || strcmp(word, "all") != 0))
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

static void object_expect(const struct field *field, char *buf, size_t size)
{
    (void)field;
    snprintf(buf, size, "an object");
}

static int object_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                        void *base)
{
    if (!json_is_object(value))
        return job_parser_refuse(parser, field, value);
    if (field->flags & FIELD_OPTIONAL)
        *((bool *)base + field->aux) = true;
    return job_object_parse(parser, field->object, value, at(field, base));
}

static bool object_given(const struct field *field, const void *base)
{
    return (field->flags & FIELD_OPTIONAL) == 0 || *((const bool *)base + field->aux);
}

static json_t *object_dump(const struct field *field, const void *base)
{
    return job_object_dump(field->object, in(field, base));
}

static void object_release(const struct field *field, void *base)
{
    job_object_release(field->object, at(field, base));
}

static void objects_expect(const struct field *field, char *buf, size_t size)
{
    snprintf(buf, size, "a list of %" PRId64 " to %" PRId64 " objects", field->imin, field->imax);
}

static int objects_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                         void *base)
{
    static const struct field entry_field = {.name = "an entry", .kind = FIELD_OBJECT};
    size_t n = json_array_size(value);
    if (n < (size_t)field->imin || n > (size_t)field->imax)
        return job_parser_refuse(parser, field, value);
    char *entries = calloc(n, field->size);
    if (entries == NULL)
        return job_parser_nomem(parser);
    *(char **)at(field, base) = entries; /* freed with the job, parsed or not */
    *count_at(field, base) = n;
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_array_get(value, i);
        size_t mark = job_parser_enter_index(parser, i);
        int rc = json_is_object(entry)
                     ? job_object_parse(parser, field->object, entry, entries + i * field->size)
                     : job_parser_refuse(parser, &entry_field, entry);
        if (rc != 0)
            return rc;
        job_parser_leave(parser, mark);
    }
    return 0;
}

static json_t *objects_dump(const struct field *field, const void *base)
{
    const char *entries = *(char *const *)in(field, base);
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < count_in(field, base); i++) {
        json_t *entry = job_object_dump(field->object, entries + i * field->size);
        if (json_array_append_new(list, entry) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static void objects_release(const struct field *field, void *base)
{
    char *entries = *(char **)at(field, base);
    for (size_t i = 0; i < count_in(field, base); i++)
        job_object_release(field->object, entries + i * field->size);
    free(entries);
    *(char **)at(field, base) = NULL;
    *count_at(field, base) = 0;
}

const struct field_type job_field_types[FIELD_KIND_COUNT] = {
    [FIELD_INT] = {int_expect, int_parse, int_given, int_dump, NULL},
    [FIELD_NUMBER] = {number_expect, number_parse, always, number_dump, NULL},
    [FIELD_BOOL] = {bool_expect, bool_parse, always, bool_dump, NULL},
    [FIELD_NAME] = {text_expect, text_store, text_given, text_dump, text_release},
    [FIELD_LAYER_NAME] = {layer_name_expect, layer_name_parse, text_given, text_dump, text_release},
    [FIELD_PATH] = {text_expect, text_store, text_given, text_dump, text_release},
    [FIELD_CHOICE] = {choice_expect, choice_parse, choice_given, choice_dump, NULL},
    [FIELD_FLAGS] = {flags_expect, flags_parse, always, flags_dump, NULL},
    [FIELD_FIXED] = {fixed_expect, fixed_parse, always, fixed_dump, NULL},
    [FIELD_PAIR] = {pair_expect, pair_parse, always, pair_dump, NULL},
    [FIELD_SHAPE] = {shape_expect, shape_parse, always, shape_dump, NULL},
    [FIELD_NUMBERS] = {numbers_expect, numbers_parse, always, numbers_dump, numbers_release},
    [FIELD_EVERY] = {every_expect, every_parse, always, every_dump, NULL},
    [FIELD_NAMES] = {names_expect, names_parse, counted_given, names_dump, names_release},
    [FIELD_DEVICES] = {devices_expect, devices_parse, always, devices_dump, devices_release},
    [FIELD_OBJECT] = {object_expect, object_parse, object_given, object_dump, object_release},
    [FIELD_OBJECTS] = {objects_expect, objects_parse, always, objects_dump, objects_release},
};
