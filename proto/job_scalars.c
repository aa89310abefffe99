/* job_scalars.c: the kinds of field that hold one value. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job.h"
#include "proto/job_kinds.h"
#include "proto/job_rows.h"
#include "proto/json.h"

void *job_at(const struct field *field, void *base)
{
    return (char *)base + field->offset;
}

const void *job_in(const struct field *field, const void *base)
{
    return (const char *)base + field->offset;
}

bool job_always(const struct field *field, const void *base)
{
    (void)field;
    (void)base;
    return true;
}

/* "from 1 to 6", "of at least 1": a bound that nobody meets by chance is named to who exceeds it
 * (refuse_excess). */
const char *job_int_range(const struct field *field, char buf[static 64])
{
    if (field->imax < COUNT_MAX)
        snprintf(buf, 64, "from %" PRId64 " to %" PRId64, field->imin, field->imax);
    else
        snprintf(buf, 64, "of at least %" PRId64, field->imin);
    return buf;
}

bool job_int_fits(const struct field *field, const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= field->imin &&
           json_integer_value(value) <= field->imax;
}

static void int_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    snprintf(buf, size, "an integer %s%s%s", job_int_range(field, range),
             field->flags & FIELD_NULL ? ", or null" : "",
             field->flags & FIELD_AUTO ? ", or \"auto\"" : "");
}

static int refuse_excess(struct job_parser *parser, const struct field *field, const json_t *value,
                         const char *most)
{
    char found[96];
    return err_at(parser->err, ERR_JOB_INVALID, parser->path, "%s must be at most %s, found %s",
                  field->name, most, json_describe(value, found));
}

static int int_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                     void *base)
{
    bool none = field->flags & FIELD_NULL && json_is_null(value);
    const char *word = json_string_value(value);
    char most[32];
    if (field->flags & FIELD_AUTO && word != NULL && strcmp(word, "auto") == 0) {
        *(int64_t *)job_at(field, base) = JOB_INT_AUTO;
        return 0;
    }
    if (field->imax >= COUNT_MAX && json_is_integer(value) &&
        json_integer_value(value) > field->imax) {
        snprintf(most, sizeof most, "%" PRId64, field->imax);
        return refuse_excess(parser, field, value, most);
    }
    if (!none && !job_int_fits(field, value))
        return job_parser_refuse(parser, field, value);
    *(int64_t *)job_at(field, base) = none ? INT64_MIN : json_integer_value(value);
    return 0;
}

/* An integer without a default has 0 for "not given": its range begins at 1. */
static bool int_given(const struct field *field, const void *base)
{
    return field->fallback != NULL || (field->flags & (FIELD_REQUIRED | FIELD_COMPUTED)) != 0 ||
           *(const int64_t *)job_in(field, base) != 0;
}

static json_t *int_dump(const struct field *field, const void *base)
{
    int64_t number = *(const int64_t *)job_in(field, base);
    if (field->flags & FIELD_AUTO && number == JOB_INT_AUTO)
        return json_string("auto");
    return field->flags & FIELD_NULL && number == INT64_MIN ? json_null() : json_integer(number);
}

const char *job_number_range(const struct field *field, char buf[static 64])
{
    if (field->flags & FIELD_ABOVE)
        snprintf(buf, 64, " above %g", field->dmin);
    else if (field->flags & FIELD_BELOW)
        snprintf(buf, 64, " from %g to below %g", field->dmin, field->dmax);
    else if (field->dmin > -REAL_MAX && field->dmax < REAL_MAX)
        snprintf(buf, 64, " from %g to %g", field->dmin, field->dmax);
    else if (field->dmin > -REAL_MAX)
        snprintf(buf, 64, " of at least %g", field->dmin);
    else
        snprintf(buf, 64, " within float32's range");
    return buf;
}

bool job_number_fits(const struct field *field, const json_t *value)
{
    double number = json_number_value(value);
    return json_is_number(value) &&
           (field->flags & FIELD_BELOW ? number < field->dmax : number <= field->dmax) &&
           (field->flags & FIELD_ABOVE ? number > field->dmin : number >= field->dmin);
}

static void number_expect(const struct field *field, char *buf, size_t size)
{
    char range[64];
    snprintf(buf, size, "a number%s", job_number_range(field, range));
}

static int number_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                        void *base)
{
    char most[32];
    if (field->dmax >= REAL_MAX && json_is_number(value) &&
        json_number_value(value) > field->dmax) {
        snprintf(most, sizeof most, "%g", field->dmax);
        return refuse_excess(parser, field, value, most);
    }
    if (!job_number_fits(field, value))
        return job_parser_refuse(parser, field, value);
    *(double *)job_at(field, base) = json_number_value(value);
    return 0;
}

/* A number without a default has 0 for "not given": its range begins above 0. */
static bool number_given(const struct field *field, const void *base)
{
    return field->fallback != NULL || (field->flags & (FIELD_REQUIRED | FIELD_COMPUTED)) != 0 ||
           *(const double *)job_in(field, base) > 0;
}

/* Whole numbers are written as people write them: 0, not 0.0. */
json_t *job_number_value(double number)
{
    const double exact = 1e15; /* beyond it the short form is the exponent's */
    if (number > -exact && number < exact && (double)(json_int_t)number == number &&
        (number != 0 || !signbit(number)))
        return json_integer((json_int_t)number);
    return json_real(number);
}

static json_t *number_dump(const struct field *field, const void *base)
{
    return job_number_value(*(const double *)job_in(field, base));
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
    *(bool *)job_at(field, base) = json_is_true(value);
    return 0;
}

static json_t *bool_dump(const struct field *field, const void *base)
{
    return json_boolean(*(const bool *)job_in(field, base));
}

/* Control characters (C1's, which some terminals obey, are 0xc2 0x80 to 0x9f) would reach
 * terminals, logs and line-based files. */
static bool is_text(const struct field *field, const json_t *value)
{
    size_t size = json_string_length(value);
    if (!json_is_string(value) || size < (size_t)field->imin || size > (size_t)field->imax)
        return false;
    for (const char *s = json_string_value(value); *s != '\0'; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f ||
            ((unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0))
            return false;
    return true;
}

int job_text_store(struct job_parser *parser, const struct field *field, const json_t *value,
                   void *base)
{
    if (!is_text(field, value))
        return job_parser_refuse(parser, field, value);
    char *copy = strdup(json_string_value(value));
    if (copy == NULL)
        return job_parser_nomem(parser);
    *(char **)job_at(field, base) = copy;
    return 0;
}

static bool text_given(const struct field *field, const void *base)
{
    return *(char *const *)job_in(field, base) != NULL;
}

static json_t *text_dump(const struct field *field, const void *base)
{
    return json_string(*(char *const *)job_in(field, base));
}

static void text_release(const struct field *field, void *base)
{
    free(*(char **)job_at(field, base));
    *(char **)job_at(field, base) = NULL;
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
    return job_text_store(parser, field, value, base);
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
_Static_assert(sizeof(enum layer_type) == sizeof(int), "a choice is stored as an int");

static void store_choice(const struct field *field, void *base, int value)
{
    if (field->size == sizeof(bool))
        *(bool *)job_at(field, base) = value != 0;
    else
        memcpy(job_at(field, base), &value, sizeof value);
}

static int load_choice(const struct field *field, const void *base)
{
    if (field->size == sizeof(bool))
        return *(const bool *)job_in(field, base);
    int value;
    memcpy(&value, job_in(field, base), sizeof value);
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
        ((bool *)job_at(field, base))[choice->value] = true;
        job_parser_leave(parser, mark);
    }
    return 0;
}

static json_t *flags_dump(const struct field *field, const void *base)
{
    json_t *list = json_array();
    for (const struct choice *c = field->choices; list != NULL && c->name != NULL; c++) {
        if (((const bool *)job_in(field, base))[c->value])
            list = json_list_append(list, json_string(c->name));
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
    *(struct job_every *)job_at(field, base) = every;
    return 0;
}

static json_t *every_dump(const struct field *field, const void *base)
{
    const struct job_every *every = job_in(field, base);
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

const struct field_type job_type_int = {int_expect, int_parse, int_given, int_dump, NULL};
const struct field_type job_type_number = {number_expect, number_parse, number_given, number_dump,
                                           NULL};
const struct field_type job_type_bool = {bool_expect, bool_parse, job_always, bool_dump, NULL};
const struct field_type job_type_text = {text_expect, job_text_store, text_given, text_dump,
                                         text_release};
const struct field_type job_type_layer_name = {layer_name_expect, layer_name_parse, text_given,
                                               text_dump, text_release};
const struct field_type job_type_choice = {choice_expect, choice_parse, choice_given, choice_dump,
                                           NULL};
const struct field_type job_type_flags = {flags_expect, flags_parse, job_always, flags_dump, NULL};
const struct field_type job_type_fixed = {fixed_expect, fixed_parse, job_always, fixed_dump, NULL};
const struct field_type job_type_every = {every_expect, every_parse, job_always, every_dump, NULL};
