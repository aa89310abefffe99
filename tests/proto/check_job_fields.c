/* job_fields: the tables keep the conventions that parser, dump and schema rely on. */
#include <string.h>

#include "proto/job.h"
#include "proto/job_kinds.h"
#include "tests/lib/checks.h"

typedef void visit(const struct object_def *def, const struct choice *choice,
                   const struct field *field);

static int visited;

static void walk(const struct object_def *def, visit *visit_field);

static void walk_fields(const struct object_def *def, const struct choice *choice,
                        const struct field *fields, visit *visit_field)
{
    for (; fields != NULL && fields->name != NULL; fields++) {
        visited++;
        visit_field(def, choice, fields);
        if (fields->object != NULL)
            walk(fields->object, visit_field);
    }
}

static void walk(const struct object_def *def, visit *visit_field)
{
    walk_fields(def, NULL, def->fields, visit_field);
    if (!def->tagged)
        return;
    for (const struct choice *c = def->fields[0].choices; c->name != NULL; c++)
        walk_fields(def, c, c->fields, visit_field);
}

static void walk_all(visit *visit_field)
{
    visited = 0;
    walk(&job_object, visit_field);
    ck_assert_int_gt(visited, 60);
}

static int count_name(const struct field *fields, const char *name)
{
    int n = 0;
    for (; fields != NULL && fields->name != NULL; fields++)
        n += strcmp(fields->name, name) == 0;
    return n;
}

static int count_later(const struct later *later, const char *name)
{
    int n = 0;
    for (; later != NULL && later->match != NULL; later++)
        n += strcmp(later->match, name) == 0;
    return n;
}

static void visit_name(const struct object_def *def, const struct choice *choice,
                       const struct field *field)
{
    int n = count_name(def->fields, field->name) + count_later(def->later, field->name);
    if (choice != NULL)
        n += count_name(choice->fields, field->name) + count_later(choice->later, field->name);
    ck_assert_msg(n == 1, "\"%s\" of %s is there %d times", field->name, def->what, n);
    ck_assert_ptr_nonnull(field->help);
}

START_TEST(every_key_is_there_once)
{
    walk_all(visit_name);
}
END_TEST

/* The size of the member in `struct job`; 0: another, or none. */
static const size_t sizes[FIELD_KIND_COUNT] = {
    [FIELD_INT] = sizeof(int64_t),
    [FIELD_NUMBER] = sizeof(double),
    [FIELD_BOOL] = sizeof(bool),
    [FIELD_NAME] = sizeof(char *),
    [FIELD_LAYER_NAME] = sizeof(char *),
    [FIELD_PATH] = sizeof(char *),
    [FIELD_PAIR] = 2 * sizeof(int64_t),
    [FIELD_SHAPE] = sizeof(struct job_shape),
    [FIELD_NUMBERS] = sizeof(struct job_numbers),
    [FIELD_INTS] = sizeof(struct job_ints),
    [FIELD_EVERY] = sizeof(struct job_every),
    [FIELD_TEXTS] = sizeof(struct job_texts),
    [FIELD_COLUMN] = sizeof(struct job_column),
    [FIELD_TRISTATE] = sizeof(enum job_tristate),
};

static void visit_size(const struct object_def *def, const struct choice *choice,
                       const struct field *field)
{
    (void)choice;
    if (sizes[field->kind] != 0)
        ck_assert_msg(field->size == sizes[field->kind], "%s of %s", field->name, def->what);
    if (field->kind == FIELD_CHOICE)
        ck_assert(field->size == sizeof(int) || field->size == sizeof(bool));
}

START_TEST(every_member_has_its_kind)
{
    walk_all(visit_size);
}
END_TEST

/* Of a kind whose zero says "not given", zero is no legal value; nothing else may be left unset. */
static void visit_unset(const struct object_def *def, const struct choice *choice,
                        const struct field *field)
{
    (void)choice;
    bool set = field->fallback != NULL || (field->flags & (FIELD_REQUIRED | FIELD_COMPUTED)) != 0;
    bool knows_unset =
        ((field->kind == FIELD_INT || field->kind == FIELD_PAIR) && field->imin > 0) ||
        (field->kind == FIELD_OBJECT && field->flags & FIELD_OPTIONAL) ||
        (field->kind == FIELD_CHOICE && job_choice(field, 0) == NULL) ||
        (field->kind == FIELD_NUMBER && field->dmin >= 0 && field->flags & FIELD_ABOVE) ||
        field->kind == FIELD_PATH || field->kind == FIELD_NAME || field->kind == FIELD_NAMES ||
        field->kind == FIELD_SHAPE || field->kind == FIELD_TEXTS || field->kind == FIELD_SOLE ||
        field->kind == FIELD_MAP || field->kind == FIELD_NUMBERS || field->kind == FIELD_INTS ||
        field->kind == FIELD_OBJECTS || field->kind == FIELD_DURATION;
    ck_assert_msg(set || knows_unset, "%s of %s can be left out and has no value then", field->name,
                  def->what);
}

START_TEST(every_key_has_a_value_when_left_out)
{
    walk_all(visit_unset);
}
END_TEST

START_TEST(every_layer_type_is_a_choice)
{
    int n = 0;
    for (const struct choice *c = job_layer_choices(); c->name != NULL; c++, n++)
        ck_assert_str_eq(layer_type_name((enum layer_type)c->value), c->name);
    ck_assert_int_eq(n, LAYER_TYPE_COUNT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proto/job_fields");
    TCase *tcase = checks_case(suite, "tables", 0);
    tcase_add_test(tcase, every_key_is_there_once);
    tcase_add_test(tcase, every_member_has_its_kind);
    tcase_add_test(tcase, every_key_has_a_value_when_left_out);
    tcase_add_test(tcase, every_layer_type_is_a_choice);
    return checks_run(suite);
}
