/* job_kinds.c: objects and lists of objects, and the table of all kinds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job.h"
#include "proto/job_kinds.h"
#include "proto/json.h"

size_t *job_count_at(const struct field *field, void *base)
{
    return (size_t *)(void *)((char *)base + field->aux);
}

size_t job_count_in(const struct field *field, const void *base)
{
    return *(const size_t *)(const void *)((const char *)base + field->aux);
}

bool job_counted(const struct field *field, const void *base)
{
    return job_count_in(field, base) > 0;
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
        *(bool *)((char *)base + field->aux) = true;
    return job_object_parse(parser, field->object, value, job_at(field, base));
}

static bool object_given(const struct field *field, const void *base)
{
    return (field->flags & FIELD_OPTIONAL) == 0 || *(const bool *)((const char *)base + field->aux);
}

static json_t *object_dump(const struct field *field, const void *base)
{
    return job_object_dump(field->object, job_in(field, base));
}

static void object_release(const struct field *field, void *base)
{
    job_object_release(field->object, job_at(field, base));
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
    *(char **)job_at(field, base) = entries; /* freed with the job, parsed or not */
    *job_count_at(field, base) = n;
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
    const char *entries = *(char *const *)job_in(field, base);
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < job_count_in(field, base); i++) {
        json_t *entry = job_object_dump(field->object, entries + i * field->size);
        list = json_list_append(list, entry);
    }
    return list;
}

static void objects_release(const struct field *field, void *base)
{
    char *entries = *(char **)job_at(field, base);
    for (size_t i = 0; i < job_count_in(field, base); i++)
        job_object_release(field->object, entries + i * field->size);
    free(entries);
    *(char **)job_at(field, base) = NULL;
    *job_count_at(field, base) = 0;
}

static const struct field_type job_type_object = {object_expect, object_parse, object_given,
                                                  object_dump, object_release};
static const struct field_type job_type_objects = {objects_expect, objects_parse, job_counted,
                                                   objects_dump, objects_release};

const struct field_type *const job_field_types[FIELD_KIND_COUNT] = {
    [FIELD_INT] = &job_type_int,
    [FIELD_NUMBER] = &job_type_number,
    [FIELD_BOOL] = &job_type_bool,
    [FIELD_NAME] = &job_type_text,
    [FIELD_LAYER_NAME] = &job_type_layer_name,
    [FIELD_PATH] = &job_type_text,
    [FIELD_CHOICE] = &job_type_choice,
    [FIELD_FLAGS] = &job_type_flags,
    [FIELD_FIXED] = &job_type_fixed,
    [FIELD_PAIR] = &job_type_pair,
    [FIELD_SHAPE] = &job_type_shape,
    [FIELD_NUMBERS] = &job_type_numbers,
    [FIELD_INTS] = &job_type_ints,
    [FIELD_EVERY] = &job_type_every,
    [FIELD_NAMES] = &job_type_names,
    [FIELD_SEGMENTS] = &job_type_segments,
    [FIELD_DEVICES] = &job_type_devices,
    [FIELD_OBJECT] = &job_type_object,
    [FIELD_OBJECTS] = &job_type_objects,
    [FIELD_MAP] = &job_type_map,
    [FIELD_SOLE] = &job_type_sole,
    [FIELD_TEXTS] = &job_type_texts,
    [FIELD_COLUMN] = &job_type_column,
    [FIELD_TRISTATE] = &job_type_tristate,
    [FIELD_DURATION] = &job_type_duration,
};
