/* job_shorthand.c: an object written in short, written out: {"preset": "lenet"} becomes {"input":
 * …, "layers": […]}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job_kinds.h"
#include "proto/json.h"

/* What of the object belongs to the shorthand: its tag and the keys that come with it. */
static json_t *pick_keys(const struct shorthand *shorthand, const json_t *value)
{
    json_t *picked = json_object();
    const struct field *tag = shorthand->keys->fields;
    const json_t *name = json_object_get(value, tag->name);
    for (const struct choice *c = tag->choices; c->name != NULL; c++)
        for (const struct field *f = c->fields; f->name != NULL; f++)
            if (json_object_get(value, f->name) != NULL)
                picked = json_put(picked, f->name, json_incref(json_object_get(value, f->name)));
    return json_put(picked, tag->name, json_incref((json_t *)name));
}

/* The rules over several keys; a broken one's place begins with the parser's. */
static int check_rules(struct job_parser *parser, const struct shorthand *shorthand,
                       const void *base)
{
    char path[sizeof parser->path + 64];
    struct err broken = ERR_INIT;
    int rc = shorthand->check(base, &broken);
    if (rc == 0)
        return 0;
    snprintf(path, sizeof path, "%s%.64s", parser->path, broken.path);
    return err_at(parser->err, rc, path, "%s", broken.message);
}

static int parse_keys(struct job_parser *parser, const struct shorthand *shorthand,
                      const json_t *picked, json_t **ret_expanded)
{
    void *base = calloc(1, shorthand->size);
    if (base == NULL)
        return job_parser_nomem(parser);
    int rc = job_object_parse(parser, shorthand->keys, picked, base);
    if (rc == 0)
        rc = check_rules(parser, shorthand, base);
    if (rc == 0) {
        *ret_expanded = shorthand->expand(base);
        rc = *ret_expanded != NULL ? 0 : job_parser_nomem(parser);
    }
    job_object_release(shorthand->keys, base);
    free(base);
    return rc;
}

static bool has(const json_t *object, const char *key)
{
    return json_object_get(object, key) != NULL;
}

/* `value` without the picked keys, with what they stand for. */
static json_t *replace_keys(const struct shorthand *shorthand, const json_t *value,
                            const json_t *picked, const json_t *expanded)
{
    json_t *whole = json_object();
    const char *key;
    json_t *entry;
    json_object_foreach((json_t *)value, key, entry)
    {
        if (!has(picked, key))
            whole = json_put(whole, key, json_incref(entry));
    }
    json_object_foreach((json_t *)expanded, key, entry)
    {
        bool brought = strcmp(key, shorthand->brings[0]) == 0;
        if (!brought || (!has(value, shorthand->brings[0]) && !has(value, shorthand->brings[1])))
            whole = json_put(whole, key, json_incref(entry));
    }
    return whole;
}

static int write_out(struct job_parser *parser, const struct shorthand *shorthand,
                     const json_t *value, json_t **ret_value)
{
    json_t *expanded = NULL, *picked = pick_keys(shorthand, value);
    int rc = picked != NULL ? parse_keys(parser, shorthand, picked, &expanded)
                            : job_parser_nomem(parser);
    if (rc == 0) {
        *ret_value = replace_keys(shorthand, value, picked, expanded);
        rc = *ret_value != NULL ? 0 : job_parser_nomem(parser);
    }
    json_decref(expanded);
    json_decref(picked);
    return rc;
}

int job_shorthand_expand(struct job_parser *parser, const struct object_def *def,
                         const json_t *value, json_t **ret_value)
{
    const struct shorthand *shorthand = def->shorthand;
    const char *tag = shorthand->keys->fields->name;
    bool given = has(value, tag);
    if (given == has(value, shorthand->stands_for))
        return err_at(parser->err, ERR_JOB_INVALID, parser->path,
                      "%s needs \"%s\" or \"%s\", and not both; found %s", def->what, tag,
                      shorthand->stands_for, given ? "both" : "neither");
    if (given)
        return write_out(parser, shorthand, value, ret_value);
    *ret_value = json_incref((json_t *)value);
    return 0;
}
