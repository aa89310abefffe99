/* The committed schema is what the tables say, byte for byte, and it accepts and refuses what the
 * parser does, but for rules over several keys. */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job.h"
#include "proto/job_schema.h"
#include "proto/json.h"
#include "tests/lib/checks.h"
#include "tests/proto/bad_jobs.h"
#include "tests/proto/jobs.h"

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    enum { ROOM = 1 << 20 };
    char *text = malloc(ROOM);
    ck_assert_ptr_nonnull(text);
    size_t n = fread(text, 1, ROOM - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

START_TEST(schema_is_the_tables)
{
    const char *srcdir = getenv("srcdir");
    char path[4096];
    snprintf(path, sizeof path, "%s/proto/job.schema.json", srcdir != NULL ? srcdir : ".");
    char *committed = read_file(path);
    json_t *schema = job_schema();
    char *text = json_pretty(schema);
    ck_assert_msg(strcmp(committed, text) == 0,
                  "proto/job.schema.json differs from the tables: run \"make schema\"");
    free(text);
    free(committed);
    json_decref(schema);
}
END_TEST

/* A validator for the keywords that the schema uses: each is a row, one without a row fails the
 * test. */
static bool valid(const json_t *schema, const json_t *value);

static bool is_type(const json_t *keyword, const json_t *schema, const json_t *value)
{
    static const struct {
        const char *name;
        json_type types[2];
    } names[] = {
        {"object", {JSON_OBJECT, JSON_OBJECT}}, {"array", {JSON_ARRAY, JSON_ARRAY}},
        {"string", {JSON_STRING, JSON_STRING}}, {"integer", {JSON_INTEGER, JSON_INTEGER}},
        {"number", {JSON_INTEGER, JSON_REAL}},  {"boolean", {JSON_TRUE, JSON_FALSE}},
    };
    (void)schema;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(json_string_value(keyword), names[i].name) == 0)
            return json_typeof(value) == names[i].types[0] ||
                   json_typeof(value) == names[i].types[1];
    ck_abort_msg("unknown type");
}

static bool has_properties(const json_t *keyword, const json_t *schema, const json_t *value)
{
    const char *key;
    json_t *entry;
    (void)schema;
    json_object_foreach((json_t *)value, key, entry)
    {
        const json_t *property = json_object_get(keyword, key);
        if (property != NULL && !valid(property, entry))
            return false;
    }
    return true;
}

static bool has_no_more(const json_t *keyword, const json_t *schema, const json_t *value)
{
    const char *key;
    json_t *entry;
    ck_assert(json_is_false(keyword));
    json_object_foreach((json_t *)value, key, entry)
    {
        if (json_object_get(json_object_get(schema, "properties"), key) == NULL)
            return false;
    }
    return true;
}

static bool has_required(const json_t *keyword, const json_t *schema, const json_t *value)
{
    size_t i;
    json_t *name;
    (void)schema;
    json_array_foreach(keyword, i, name)
    {
        if (json_object_get(value, json_string_value(name)) == NULL)
            return false;
    }
    return true;
}

static size_t count_valid(const json_t *schemas, const json_t *value)
{
    size_t i, n = 0;
    json_t *schema;
    json_array_foreach(schemas, i, schema) n += valid(schema, value);
    return n;
}

static bool is_one_of(const json_t *keyword, const json_t *schema, const json_t *value)
{
    (void)schema;
    return count_valid(keyword, value) == 1;
}

static bool is_any_of(const json_t *keyword, const json_t *schema, const json_t *value)
{
    (void)schema;
    return count_valid(keyword, value) > 0;
}

static bool is_in(const json_t *keyword, const json_t *schema, const json_t *value)
{
    size_t i;
    json_t *choice;
    (void)schema;
    json_array_foreach(keyword, i, choice)
    {
        if (json_equal(choice, value))
            return true;
    }
    return false;
}

static bool is_const(const json_t *keyword, const json_t *schema, const json_t *value)
{
    (void)schema;
    return json_equal(keyword, value);
}

static bool has_items(const json_t *keyword, const json_t *schema, const json_t *value)
{
    size_t i;
    json_t *entry;
    (void)schema;
    json_array_foreach(value, i, entry)
    {
        if (!valid(keyword, entry))
            return false;
    }
    return true;
}

/* Replaces the first `from` in `text`, if it is there. */
static bool replace(char *text, size_t size, const char *from, const char *to)
{
    char *at = strstr(text, from), rest[256];
    if (at == NULL)
        return false;
    snprintf(rest, sizeof rest, "%s", at + strlen(from));
    snprintf(at, size - (size_t)(at - text), "%s%s", to, rest);
    return true;
}

/* POSIX has another dialect: control characters by name, and no looking ahead (for "input"). */
static bool matches(const json_t *keyword, const json_t *schema, const json_t *value)
{
    char pattern[256];
    regex_t regex;
    (void)schema;
    if (!json_is_string(value))
        return true;
    snprintf(pattern, sizeof pattern, "%s", json_string_value(keyword));
    while (replace(pattern, sizeof pattern, "\\u0000-\\u001f\\u007f-\\u009f", "[:cntrl:]"))
        continue;
    replace(pattern, sizeof pattern, "(?!input$)", "");
    ck_assert_int_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    int rc = regexec(&regex, json_string_value(value), 0, NULL, 0);
    regfree(&regex);
    return rc == 0;
}

static const json_t *root_schema; /* that references begin at */

/* "#/$defs/NAME" */
static bool refers(const json_t *keyword, const json_t *schema, const json_t *value)
{
    static const char defs[] = "#/$defs/";
    const char *to = json_string_value(keyword);
    (void)schema;
    ck_assert_int_eq(strncmp(to, defs, strlen(defs)), 0);
    const json_t *shared =
        json_object_get(json_object_get(root_schema, "$defs"), to + strlen(defs));
    ck_assert_msg(shared != NULL, "there is no %s", to);
    return valid(shared, value);
}

static bool is_annotation(const json_t *keyword, const json_t *schema, const json_t *value)
{
    (void)keyword;
    (void)schema;
    (void)value;
    return true;
}

#define BOUND(name, applies, measure, operator)                                                    \
    static bool name(const json_t *keyword, const json_t *schema, const json_t *value)             \
    {                                                                                              \
        (void)schema;                                                                              \
        return !(applies) || (double)(measure) operator json_number_value(keyword);                \
    }

BOUND(at_least, json_is_number(value), json_number_value(value), >=)
BOUND(above, json_is_number(value), json_number_value(value), >)
BOUND(below, json_is_number(value), json_number_value(value), <)
BOUND(at_most, json_is_number(value), json_number_value(value), <=)
BOUND(items_at_least, json_is_array(value), json_array_size(value), >=)
BOUND(items_at_most, json_is_array(value), json_array_size(value), <=)
BOUND(bytes_at_least, json_is_string(value), json_string_length(value), >=)
BOUND(bytes_at_most, json_is_string(value), json_string_length(value), <=)

static const struct {
    const char *name;
    bool (*holds)(const json_t *keyword, const json_t *schema, const json_t *value);
} keywords[] = {
    {"type", is_type},
    {"properties", has_properties},
    {"additionalProperties", has_no_more},
    {"required", has_required},
    {"oneOf", is_one_of},
    {"anyOf", is_any_of},
    {"enum", is_in},
    {"const", is_const},
    {"items", has_items},
    {"minimum", at_least},
    {"exclusiveMinimum", above},
    {"maximum", at_most},
    {"exclusiveMaximum", below},
    {"minItems", items_at_least},
    {"maxItems", items_at_most},
    {"minLength", bytes_at_least},
    {"maxLength", bytes_at_most},
    {"pattern", matches},
    {"description", is_annotation},
    {"default", is_annotation},
    {"title", is_annotation},
    {"$schema", is_annotation},
    {"$defs", is_annotation},
    {"$ref", refers},
};

static bool valid(const json_t *schema, const json_t *value)
{
    const char *key;
    json_t *keyword;
    json_object_foreach((json_t *)schema, key, keyword)
    {
        size_t i = 0;
        while (i < sizeof keywords / sizeof keywords[0] && strcmp(keywords[i].name, key) != 0)
            i++;
        ck_assert_msg(i < sizeof keywords / sizeof keywords[0], "unknown keyword %s", key);
        if (!keywords[i].holds(keyword, schema, value))
            return false;
    }
    return true;
}

static void check_accepts(const json_t *schema, const char *text)
{
    json_t *root = json_loads(text, 0, NULL), *dump;
    ck_assert(valid(schema, root));
    struct job *job = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(job_from_json(root, &job, &err), 0);
    dump = job_dump(job);
    ck_assert(valid(schema, dump));
    json_decref(dump);
    json_decref(root);
    job_free(job);
}

START_TEST(schema_accepts_jobs_and_their_dumps)
{
    json_t *schema = job_schema();
    root_schema = schema;
    check_accepts(schema, jobs_digits);
    check_accepts(schema, jobs_full);
    json_decref(schema);
}
END_TEST

START_TEST(schema_refuses_what_a_row_refuses)
{
    const struct bad_job *bad = &bad_values[_i];
    json_t *schema = job_schema();
    root_schema = schema;
    json_t *root = patched(jobs_digits, bad->at, bad->value);
    ck_assert_msg(!valid(schema, root), "%s = %s", bad->at, bad->value);
    json_decref(root);
    json_decref(schema);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proto/schema");
    TCase *tcase = checks_case(suite, "schema", 0);
    tcase_add_test(tcase, schema_is_the_tables);
    tcase_add_test(tcase, schema_accepts_jobs_and_their_dumps);
    tcase_add_loop_test(tcase, schema_refuses_what_a_row_refuses, 0,
                        sizeof bad_values / sizeof bad_values[0]);
    return checks_run(suite);
}
