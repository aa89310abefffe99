/* job.c: a job document from text to struct and back, by walking the tables of job_fields.c.
 *
 * An object is read in three steps: its tag, if it has one, picks the choice whose keys join its
 * own; every key of the document must then be one of those; every row takes its value, its default
 * or stays unset. The first error ends it.
 */
#include "proto/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job_check.h"
#include "proto/job_kinds.h"
#include "proto/job_rows.h"
#include "proto/json.h"

size_t job_parser_enter(struct job_parser *parser, const char *key)
{
    size_t mark = parser->used;
    size_t used = mark;
    char *path = parser->path;
    bool fits = used + 1 < sizeof parser->path;
    if (fits)
        path[used++] = '/';
    for (; fits && *key != '\0'; key++) {
        bool escaped = *key == '~' || *key == '/';
        fits = used + 2 < sizeof parser->path;
        if (fits && escaped)
            path[used++] = '~';
        if (fits)
            path[used++] = *key == '~' ? '0' : *key == '/' ? '1' : *key;
    }
    parser->used = fits ? used : mark;
    path[parser->used] = '\0';
    return mark;
}

size_t job_parser_enter_index(struct job_parser *parser, size_t index)
{
    char key[24];
    snprintf(key, sizeof key, "%zu", index);
    return job_parser_enter(parser, key);
}

void job_parser_leave(struct job_parser *parser, size_t mark)
{
    parser->used = mark;
    parser->path[mark] = '\0';
}

int job_parser_nomem(struct job_parser *parser)
{
    return err_set(parser->err, ERR_NOMEM, "out of memory for the job");
}

static const char *nearest_choice(const struct field *field, const json_t *value)
{
    enum { CHOICES_MAX = 32 };
    const char *known[CHOICES_MAX];
    size_t n = 0;
    for (const struct choice *c = field->choices; c != NULL && c->name != NULL; c++)
        if (n < CHOICES_MAX)
            known[n++] = c->name;
    const char *text = json_string_value(value);
    return text != NULL ? json_nearest(text, known, n) : NULL;
}

int job_parser_refuse(struct job_parser *parser, const struct field *field, const json_t *value)
{
    char expected[512], found[96], hint[96] = "";
    job_field_types[field->kind]->expect(field, expected, sizeof expected);
    const char *nearest = nearest_choice(field, value);
    if (nearest != NULL)
        snprintf(hint, sizeof hint, "; did you mean \"%s\"?", nearest);
    return err_at(parser->err, ERR_JOB_INVALID, parser->path, "%s must be %s, found %s%s",
                  field->name, expected, json_describe(value, found), hint);
}

static const struct later *find_later(const struct later *later, const char *match)
{
    for (; later != NULL && match != NULL && later->match != NULL; later++)
        if (strcmp(later->match, match) == 0)
            return later;
    return NULL;
}

/* How `struct later` names a value. */
static const char *later_key(const json_t *value)
{
    static const char *const words[] = {
        [JSON_OBJECT] = "{}", [JSON_ARRAY] = "[]",    [JSON_INTEGER] = "#", [JSON_REAL] = "#",
        [JSON_TRUE] = "true", [JSON_FALSE] = "false", [JSON_NULL] = "null",
    };
    return json_is_string(value) ? json_string_value(value) : words[json_typeof(value)];
}

static int refuse_later_key(struct job_parser *parser, const struct later *later)
{
    return err_at(parser->err, ERR_JOB_UNSUPPORTED, parser->path, "%s are not in this version",
                  later->what);
}

static int refuse_later_value(struct job_parser *parser, const struct field *field,
                              const struct later *later)
{
    char expected[512];
    job_field_types[field->kind]->expect(field, expected, sizeof expected);
    return err_at(parser->err, ERR_JOB_UNSUPPORTED, parser->path,
                  "%s are not in this version; %s must be %s", later->what, field->name, expected);
}

static const struct field *find_field(const struct field *fields, const char *name)
{
    for (; fields != NULL && fields->name != NULL; fields++)
        if (strcmp(fields->name, name) == 0)
            return fields;
    return NULL;
}

static int refuse_key(struct job_parser *parser, const struct object_def *def,
                      const struct choice *choice, const char *key)
{
    enum { KEYS_MAX = 32 };
    const char *known[KEYS_MAX];
    size_t n = 0, used = 0;
    char list[400] = "";
    const struct field *parts[] = {def->fields, choice != NULL ? choice->fields : NULL,
                                   def->shorthand != NULL ? def->shorthand->keys->fields : NULL};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (const struct field *f = parts[i]; f != NULL && f->name != NULL && n < KEYS_MAX; f++) {
            int written =
                snprintf(list + used, sizeof list - used, "%s%s", n > 0 ? ", " : "", f->name);
            used = used + (size_t)written < sizeof list ? used + (size_t)written : used;
            known[n++] = f->name;
        }
    const char *what = choice != NULL ? choice->name : def->what;
    const char *nearest = json_nearest(key, known, n);
    if (nearest != NULL)
        return err_at(parser->err, ERR_JOB_INVALID, parser->path,
                      "unknown key \"%.64s\" in %s; did you mean \"%s\"?", key, what, nearest);
    return err_at(parser->err, ERR_JOB_INVALID, parser->path,
                  "unknown key \"%.64s\" in %s; allowed are %s", key, what, list);
}

static int check_keys(struct job_parser *parser, const struct object_def *def,
                      const struct choice *choice, const json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        if (find_field(def->fields, key) != NULL ||
            (choice != NULL && find_field(choice->fields, key) != NULL))
            continue;
        const struct later *later = find_later(def->later, key);
        if (later == NULL && choice != NULL)
            later = find_later(choice->later, key);
        job_parser_enter(parser, key);
        return later != NULL ? refuse_later_key(parser, later)
                             : refuse_key(parser, def, choice, key);
    }
    return 0;
}

static int refuse_missing(struct job_parser *parser, const struct object_def *def,
                          const struct choice *choice, const struct field *field)
{
    char expected[512];
    job_field_types[field->kind]->expect(field, expected, sizeof expected);
    return err_at(parser->err, ERR_JOB_INVALID, parser->path, "%s needs \"%s\": %s",
                  choice != NULL ? choice->name : def->what, field->name, expected);
}

static int parse_default(struct job_parser *parser, const struct field *field, void *base)
{
    json_t *value = json_loads(field->fallback, JSON_DECODE_ANY, NULL);
    if (value == NULL)
        return job_parser_nomem(parser);
    int rc = job_field_types[field->kind]->parse(parser, field, value, base);
    json_decref(value);
    return rc;
}

static int parse_field(struct job_parser *parser, const struct object_def *def,
                       const struct choice *choice, const struct field *field, const json_t *object,
                       void *base)
{
    const json_t *value = json_object_get(object, field->name);
    if (value == NULL && field->flags & FIELD_REQUIRED)
        return refuse_missing(parser, def, choice, field);
    if (value == NULL)
        return field->fallback != NULL ? parse_default(parser, field, base) : 0;
    size_t mark = job_parser_enter(parser, field->name);
    int rc = job_field_types[field->kind]->parse(parser, field, value, base);
    const struct later *later = find_later(field->later, later_key(value));
    if (rc == ERR_JOB_INVALID && later != NULL)
        rc = refuse_later_value(parser, field, later);
    if (rc == 0)
        job_parser_leave(parser, mark);
    return rc;
}

static int parse_fields(struct job_parser *parser, const struct object_def *def,
                        const struct choice *choice, const struct field *fields,
                        const json_t *object, void *base)
{
    int rc = 0;
    for (; rc == 0 && fields != NULL && fields->name != NULL; fields++)
        rc = parse_field(parser, def, choice, fields, object, base);
    return rc;
}

static int check_one_of(struct job_parser *parser, const struct object_def *def,
                        const json_t *object)
{
    const char *const *names = def->one_of;
    if (names[0] == NULL)
        return 0;
    int given =
        (json_object_get(object, names[0]) != NULL) + (json_object_get(object, names[1]) != NULL);
    if (given == 1)
        return 0;
    return err_at(parser->err, ERR_JOB_INVALID, parser->path,
                  "%s needs \"%s\" or \"%s\", and not both; found %s", def->what, names[0],
                  names[1], given == 0 ? "neither" : "both");
}

/* The choice that an object's tag has made; NULL without a tag. */
static const struct choice *tag_choice(const struct object_def *def, const void *base)
{
    if (!def->tagged)
        return NULL;
    int value;
    memcpy(&value, (const char *)base + def->fields[0].offset, sizeof value);
    return job_choice(&def->fields[0], value);
}

static int parse_rows(struct job_parser *parser, const struct object_def *def, const json_t *value,
                      void *base)
{
    const struct field *fields = def->fields;
    const struct choice *choice = NULL;
    if (def->tagged) {
        int rc = parse_field(parser, def, NULL, fields, value, base);
        if (rc != 0)
            return rc;
        choice = tag_choice(def, base);
        fields++;
    }
    int rc = check_keys(parser, def, choice, value);
    if (rc == 0) /* first: such keys may be two forms of the same members */
        rc = check_one_of(parser, def, value);
    if (rc == 0)
        rc = parse_fields(parser, def, choice, fields, value, base);
    if (rc == 0 && choice != NULL)
        rc = parse_fields(parser, def, choice, choice->fields, value, base);
    return rc;
}

int job_object_parse(struct job_parser *parser, const struct object_def *def, const json_t *value,
                     void *base)
{
    json_t *whole;
    if (def->shorthand == NULL)
        return parse_rows(parser, def, value, base);
    int rc = job_shorthand_expand(parser, def, value, &whole);
    if (rc != 0)
        return rc;
    rc = parse_rows(parser, def, whole, base);
    json_decref(whole);
    return rc;
}

static int dump_fields(const struct field *fields, const void *base, json_t *object)
{
    for (; fields != NULL && fields->name != NULL; fields++) {
        const struct field_type *type = job_field_types[fields->kind];
        if (type->given(fields, base) &&
            json_object_set_new(object, fields->name, type->dump(fields, base)) != 0)
            return -1;
    }
    return 0;
}

json_t *job_object_dump(const struct object_def *def, const void *base)
{
    const struct choice *choice = tag_choice(def, base);
    json_t *object = json_object();
    if (object == NULL || dump_fields(def->fields, base, object) != 0 ||
        (choice != NULL && dump_fields(choice->fields, base, object) != 0)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static void release_fields(const struct field *fields, void *base)
{
    for (; fields != NULL && fields->name != NULL; fields++)
        if (job_field_types[fields->kind]->release != NULL)
            job_field_types[fields->kind]->release(fields, base);
}

void job_object_release(const struct object_def *def, void *base)
{
    const struct choice *choice = tag_choice(def, base);
    release_fields(def->fields, base);
    if (choice != NULL)
        release_fields(choice->fields, base);
}

static size_t depth_of(const json_t *value, size_t limit)
{
    size_t deepest = 0;
    if (!json_is_object(value) && !json_is_array(value))
        return 0;
    if (limit == 0)
        return 1;
    const char *key;
    json_t *entry;
    size_t i;
    json_object_foreach((json_t *)value, key, entry)
    {
        size_t depth = depth_of(entry, limit - 1);
        deepest = depth > deepest ? depth : deepest;
    }
    json_array_foreach(value, i, entry)
    {
        size_t depth = depth_of(entry, limit - 1);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

/* What job_parse has checked on the text already. */
static int check_root(const json_t *root, struct err *err)
{
    char found[96];
    if (!json_is_object(root))
        return err_set(err, ERR_JOB_INVALID, "a job must be an object, found %s",
                       json_describe(root, found));
    if (depth_of(root, LIMIT_DEPTH) > LIMIT_DEPTH)
        return err_set(err, ERR_JOB_INVALID, "the document is nested more than %d deep",
                       LIMIT_DEPTH);
    size_t size = json_dumpb(root, NULL, 0, JSON_COMPACT);
    if (size == 0)
        return err_set(err, ERR_NOMEM, "out of memory for the job");
    if (size > LIMIT_DOCUMENT_BYTES)
        return err_set(err, ERR_JOB_INVALID, "the document is larger than %d bytes",
                       LIMIT_DOCUMENT_BYTES);
    return 0;
}

int job_from_json(const json_t *root, struct job **ret_job, struct err *err)
{
    struct job_parser parser = {.err = err};
    int rc = check_root(root, err);
    if (rc != 0)
        return rc;
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return job_parser_nomem(&parser);
    rc = job_object_parse(&parser, &job_object, root, job);
    if (rc == 0)
        rc = job_complete(root, job, err);
    if (rc == 0)
        rc = job_check(job, err);
    if (rc == 0)
        *ret_job = job;
    else
        job_free(job);
    return rc;
}

int job_parse(const char *text, size_t size, struct job **ret_job, struct err *err)
{
    if (size > LIMIT_DOCUMENT_BYTES)
        return err_set(err, ERR_JOB_INVALID, "the document is larger than %d bytes",
                       LIMIT_DOCUMENT_BYTES);
    json_t *root;
    int rc = json_load(text, size, ERR_JOB_INVALID, &root, err);
    if (rc != 0)
        return rc;
    rc = job_from_json(root, ret_job, err);
    json_decref(root);
    return rc;
}

bool job_trains(const struct job *job)
{
    return job->train.mode == MODE_TRAIN || job->train.mode == MODE_TUNE;
}

void job_free(struct job *job)
{
    if (job == NULL)
        return;
    job_object_release(&job_object, job);
    free(job);
}

json_t *job_dump(const struct job *job)
{
    return job_object_dump(&job_object, job);
}

const char *loss_type_name(enum loss_type type)
{
    return job_choice(&job_loss_object.fields[0], (int)type)->name;
}

const char *layer_type_name(enum layer_type type)
{
    const struct choice *choice = job_layer_choices();
    while (choice->value != (int)type)
        choice++;
    return choice->name;
}
