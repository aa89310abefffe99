/* job_maps.c: the kinds of field that are values by name: the model's inputs, a path an input; and
 * those that data alone has. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job.h"
#include "proto/job_kinds.h"
#include "proto/job_rows.h"
#include "proto/json.h"

static const struct field entry_field = {
    .name = "an entry", .kind = FIELD_OBJECT, RANGE(1, LIMIT_NAME_BYTES)};
static const struct field name_field = {
    .name = "a name", .kind = FIELD_NAME, RANGE(1, LIMIT_NAME_BYTES)};

/* The name of an entry, its first member. */
static char **name_of(void *entry)
{
    return entry;
}

static int store_name(struct job_parser *parser, const char *name, char **ret_name)
{
    json_t *text = json_string(name);
    int rc = text != NULL ? job_text_store(parser, &name_field, text, ret_name)
                          : job_parser_nomem(parser);
    json_decref(text);
    return rc;
}

/* Entries for n values; freed with the job, parsed or not. */
static char *new_entries(struct job_parser *parser, const struct field *field, size_t n, void *base)
{
    char *entries = calloc(n, field->size);
    if (entries == NULL) {
        job_parser_nomem(parser);
        return NULL;
    }
    *(char **)job_at(field, base) = entries;
    *job_count_at(field, base) = n;
    return entries;
}

static int parse_entry(struct job_parser *parser, const struct field *field, const char *name,
                       const json_t *value, void *entry)
{
    if (!json_is_object(value))
        return job_parser_refuse(parser, &entry_field, value);
    int rc = store_name(parser, name, name_of(entry));
    return rc != 0 ? rc : job_object_parse(parser, field->object, value, entry);
}

static void map_expect(const struct field *field, char *buf, size_t size)
{
    snprintf(buf, size, "an object of %" PRId64 " to %" PRId64 " names and an object for each",
             field->imin, field->imax);
}

static int map_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                     void *base)
{
    size_t n = json_object_size(value);
    if (n < (size_t)field->imin || n > (size_t)field->imax)
        return job_parser_refuse(parser, field, value);
    char *entry = new_entries(parser, field, n, base);
    if (entry == NULL)
        return parser->err->code;
    const char *name;
    json_t *inner;
    json_object_foreach((json_t *)value, name, inner)
    {
        size_t mark = job_parser_enter(parser, name);
        int rc = parse_entry(parser, field, name, inner, entry);
        if (rc != 0)
            return rc;
        job_parser_leave(parser, mark);
        entry += field->size;
    }
    return 0;
}

/* A map whose one entry has the sole field's name is written as that field. */
static bool is_sole(const struct field *field, const void *base, const char *name)
{
    char *entry = *(char *const *)job_in(field, base);
    return job_count_in(field, base) == 1 && strcmp(*name_of(entry), name) == 0;
}

static bool map_given(const struct field *field, const void *base)
{
    return job_count_in(field, base) > 0 && !is_sole(field, base, JOB_SOLE_INPUT);
}

static json_t *map_dump(const struct field *field, const void *base)
{
    char *entry = *(char *const *)job_in(field, base);
    json_t *map = json_object();
    for (size_t i = 0; map != NULL && i < job_count_in(field, base); i++, entry += field->size)
        map = json_put(map, *name_of(entry), job_object_dump(field->object, entry));
    return map;
}

static void map_release(const struct field *field, void *base)
{
    char *entries = *(char **)job_at(field, base);
    for (size_t i = 0; i < job_count_in(field, base); i++) {
        free(*name_of(entries + i * field->size));
        job_object_release(field->object, entries + i * field->size);
    }
    free(entries);
    *(char **)job_at(field, base) = NULL;
    *job_count_at(field, base) = 0;
}

static void sole_expect(const struct field *field, char *buf, size_t size)
{
    (void)field;
    snprintf(buf, size, "an object");
}

static int sole_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                      void *base)
{
    if (!json_is_object(value))
        return job_parser_refuse(parser, field, value);
    char *entry = new_entries(parser, field, 1, base);
    return entry == NULL ? parser->err->code
                         : parse_entry(parser, field, field->name, value, entry);
}

static bool sole_given(const struct field *field, const void *base)
{
    return is_sole(field, base, field->name);
}

static json_t *sole_dump(const struct field *field, const void *base)
{
    return job_object_dump(field->object, *(char *const *)job_in(field, base));
}

static void texts_expect(const struct field *field, char *buf, size_t size)
{
    snprintf(buf, size,
             "a string of %" PRId64 " to %" PRId64
             " bytes without control characters, or an object of 1 to %d input names and such a "
             "string for each",
             field->imin, field->imax, LIMIT_INPUTS);
}

static int texts_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                       void *base)
{
    struct job_texts *texts = job_at(field, base);
    bool named = json_is_object(value);
    size_t n = named ? json_object_size(value) : 1;
    struct field text_field = *field;
    text_field.offset = 0;
    if (n < 1 || n > LIMIT_INPUTS)
        return job_parser_refuse(parser, field, value);
    texts->texts = calloc(n, sizeof *texts->texts);
    texts->names = named ? calloc(n, sizeof *texts->names) : NULL;
    if (texts->texts == NULL || (named && texts->names == NULL))
        return job_parser_nomem(parser);
    texts->n = n;
    if (!named)
        return job_text_store(parser, &text_field, value, texts->texts);
    const char *name;
    json_t *text;
    size_t i = 0;
    text_field.kind = FIELD_PATH;
    json_object_foreach((json_t *)value, name, text)
    {
        size_t mark = job_parser_enter(parser, name);
        int rc = store_name(parser, name, &texts->names[i]);
        if (rc == 0)
            rc = job_text_store(parser, &text_field, text, &texts->texts[i++]);
        if (rc != 0)
            return rc;
        job_parser_leave(parser, mark);
    }
    return 0;
}

static bool texts_given(const struct field *field, const void *base)
{
    return ((const struct job_texts *)job_in(field, base))->n > 0;
}

static json_t *texts_dump(const struct field *field, const void *base)
{
    const struct job_texts *texts = job_in(field, base);
    if (texts->names == NULL)
        return json_string(texts->texts[0]);
    json_t *map = json_object();
    for (size_t i = 0; map != NULL && i < texts->n; i++)
        map = json_put(map, texts->names[i], json_string(texts->texts[i]));
    return map;
}

static void texts_release(const struct field *field, void *base)
{
    struct job_texts *texts = job_at(field, base);
    for (size_t i = 0; i < texts->n; i++) {
        free(texts->texts[i]);
        if (texts->names != NULL)
            free(texts->names[i]);
    }
    free(texts->texts);
    free(texts->names);
    *texts = (struct job_texts){0};
}

const char *job_texts_find(const struct job_texts *texts, const char *name)
{
    if (texts->n == 1 && texts->names == NULL)
        return texts->texts[0];
    for (size_t i = 0; i < texts->n; i++)
        if (strcmp(texts->names[i], name) == 0)
            return texts->texts[i];
    return NULL;
}

static void column_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    snprintf(buf, size, "the name of a column, or an integer %s", job_int_range(field, range));
}

static int column_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                        void *base)
{
    struct job_column *column = job_at(field, base);
    if (json_is_string(value)) {
        struct field text = name_field;
        text.name = field->name;
        return job_text_store(parser, &text, value, &column->name);
    }
    if (!job_int_fits(field, value))
        return job_parser_refuse(parser, field, value);
    column->index = json_integer_value(value);
    return 0;
}

static json_t *column_dump(const struct field *field, const void *base)
{
    const struct job_column *column = job_in(field, base);
    return column->name != NULL ? json_string(column->name) : json_integer(column->index);
}

static void column_release(const struct field *field, void *base)
{
    struct job_column *column = job_at(field, base);
    free(column->name);
    column->name = NULL;
}

static void tristate_expect(const struct field *field, char *buf, size_t size)
{
    (void)field;
    snprintf(buf, size, "\"auto\", true or false");
}

static int tristate_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                          void *base)
{
    const char *word = json_string_value(value);
    if (!json_is_boolean(value) && (word == NULL || strcmp(word, "auto") != 0))
        return job_parser_refuse(parser, field, value);
    *(enum job_tristate *)job_at(field, base) = json_is_true(value)    ? JOB_TRUE
                                                : json_is_false(value) ? JOB_FALSE
                                                                       : JOB_AUTO;
    return 0;
}

static json_t *tristate_dump(const struct field *field, const void *base)
{
    enum job_tristate state = *(const enum job_tristate *)job_in(field, base);
    return state == JOB_AUTO ? json_string("auto") : json_boolean(state == JOB_TRUE);
}

const struct field_type job_type_map = {map_expect, map_parse, map_given, map_dump, map_release};
const struct field_type job_type_sole = {sole_expect, sole_parse, sole_given, sole_dump,
                                         map_release};
const struct field_type job_type_texts = {texts_expect, texts_parse, texts_given, texts_dump,
                                          texts_release};
const struct field_type job_type_column = {column_expect, column_parse, job_always, column_dump,
                                           column_release};
const struct field_type job_type_tristate = {tristate_expect, tristate_parse, job_always,
                                             tristate_dump, NULL};
