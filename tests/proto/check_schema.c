/* The committed schema is what the tables say, byte for byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job_schema.h"
#include "proto/json.h"
#include "tests/lib/checks.h"

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

/* Spot checks by value: bounds, choices, required keys. */
START_TEST(schema_says_what_the_parser_checks)
{
    json_t *schema = job_schema();
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *train = json_object_get(properties, "train");
    const json_t *batch = json_object_get(json_object_get(train, "properties"), "batch_size");
    ck_assert_int_eq(json_integer_value(json_object_get(batch, "minimum")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(batch, "maximum")), INT32_MAX);
    ck_assert(json_is_false(json_object_get(train, "additionalProperties")));
    json_t *expected =
        json_loads("[{\"required\": [\"epochs\"]}, {\"required\": [\"max_steps\"]}]", 0, NULL);
    ck_assert(json_equal(json_object_get(train, "oneOf"), expected));
    json_decref(expected);
    expected = json_loads("[\"version\", \"model\", \"data\", \"loss\", \"optimizer\", \"train\"]",
                          0, NULL);
    ck_assert(json_equal(json_object_get(schema, "required"), expected));
    json_decref(expected);
    json_decref(schema);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proto/schema");
    TCase *tcase = checks_case(suite, "schema", 0);
    tcase_add_test(tcase, schema_is_the_tables);
    tcase_add_test(tcase, schema_says_what_the_parser_checks);
    return checks_run(suite);
}
