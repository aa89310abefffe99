/* job_schema.c: a schema from the tables, one function a kind of field.
 *
 * A failed allocation anywhere gives NULL: json_put and json_list_append pass it on.
 */
#include "proto/job_schema.h"

#include <string.h>

#include "proto/job.h"
#include "proto/job_kinds.h"
#include "proto/job_rows.h"
#include "proto/json.h"

#define PLAIN_CHAR "[^\\u0000-\\u001f\\u007f-\\u009f]"
#define NAME_PART "[^.\\u0000-\\u001f\\u007f-\\u009f]+"

static json_t *object_schema(const struct object_def *def);

static json_t *typed(const char *type)
{
    return json_pack("{s:s}", "type", type);
}

static json_t *int_schema(const struct field *field)
{
    json_t *schema = json_put(typed("integer"), "minimum", json_integer(field->imin));
    if (field->imax < INT64_MAX)
        schema = json_put(schema, "maximum", json_integer(field->imax));
    return schema;
}

static json_t *number_schema(const struct field *field)
{
    const char *least = field->flags & FIELD_ABOVE ? "exclusiveMinimum" : "minimum";
    const char *most = field->flags & FIELD_BELOW ? "exclusiveMaximum" : "maximum";
    json_t *schema = json_put(typed("number"), least, job_number_value(field->dmin));
    return json_put(schema, most, job_number_value(field->dmax));
}

static json_t *bool_schema(const struct field *field)
{
    (void)field;
    return typed("boolean");
}

static json_t *string_schema(const struct field *field, const char *pattern)
{
    json_t *schema = json_put(typed("string"), "minLength", json_integer(field->imin));
    schema = json_put(schema, "maxLength", json_integer(field->imax));
    return json_put(schema, "pattern", json_string(pattern));
}

static json_t *text_schema(const struct field *field)
{
    return string_schema(field, "^" PLAIN_CHAR "*$");
}

static json_t *layer_name_schema(const struct field *field)
{
    return string_schema(field, "^(?!input$)" NAME_PART "(\\." NAME_PART ")*$");
}

static json_t *choice_schema(const struct field *field)
{
    json_t *names = json_array();
    for (const struct choice *c = field->choices; c->name != NULL; c++)
        names = json_list_append(names, json_string(c->name));
    return json_put(json_object(), "enum", names);
}

/* A list of `items`, taking them. */
static json_t *list_schema(json_t *items, json_int_t least, json_int_t most)
{
    json_t *schema = json_put(typed("array"), "items", items);
    schema = json_put(schema, "minItems", json_integer(least));
    return json_put(schema, "maxItems", json_integer(most));
}

static json_t *flags_schema(const struct field *field)
{
    return json_put(typed("array"), "items", choice_schema(field));
}

static json_t *fixed_schema(const struct field *field)
{
    return json_put(json_object(), "const", json_loads(field->fallback, JSON_DECODE_ANY, NULL));
}

/* One of two schemas, taking both. */
static json_t *either(json_t *a, json_t *b)
{
    return json_put(json_object(), "anyOf", json_list_append(json_list_append(json_array(), a), b));
}

/* An integer, or what else is allowed. */
static json_t *maybe_int_schema(const struct field *field)
{
    json_t *schema = int_schema(field);
    if (field->flags & FIELD_NULL)
        schema = either(schema, json_put(json_object(), "const", json_null()));
    if (field->flags & FIELD_AUTO)
        schema = either(schema, json_pack("{s:s}", "const", "auto"));
    return schema;
}

static json_t *pair_schema(const struct field *field)
{
    json_t *numbers = either(int_schema(field), list_schema(int_schema(field), 2, 2));
    return field->choices != NULL ? either(numbers, choice_schema(field)) : numbers;
}

static json_t *shape_schema(const struct field *field)
{
    json_t *list = list_schema(int_schema(field), 1, LIMIT_RANK - 1);
    return field->flags & FIELD_LONE ? either(int_schema(field), list) : list;
}

static json_t *numbers_schema(const struct field *field)
{
    json_t *list = list_schema(number_schema(field), field->imin, field->imax);
    return field->flags & FIELD_LIST ? list : either(number_schema(field), list);
}

static json_t *ints_schema(const struct field *field)
{
    return list_schema(int_schema(field), 1, JOB_INTS_MAX);
}

static json_t *every_schema(const struct field *field)
{
    char pattern[160] = "^(never|[1-9][0-9]{0,12} (";
    bool first = true;
    for (const struct every_unit_def *unit = job_every_units; unit->name != NULL; unit++) {
        if (unit->unit == EVERY_SECONDS && field->flags & FIELD_UNTIMED)
            continue;
        strcat(pattern, first ? "" : "|");
        strcat(pattern, unit->name);
        first = false;
    }
    strcat(pattern, "))$");
    return json_put(typed("string"), "pattern", json_string(pattern));
}

static json_t *names_schema(const struct field *field)
{
    return list_schema(typed("string"), field->imin, field->imax);
}

static json_t *segments_schema(const struct field *field)
{
    return either(typed("boolean"), names_schema(field));
}

static json_t *devices_schema(const struct field *field)
{
    json_t *name =
        json_put(typed("string"), "pattern", json_string("^(cpu|cuda)(:(0|[1-9][0-9]{0,5}))?$"));
    json_t *list = list_schema(name, field->imin, field->imax);
    return either(either(int_schema(field), json_pack("{s:s}", "const", "all")), list);
}

static json_t *inner_schema(const struct field *field)
{
    return object_schema(field->object);
}

static json_t *objects_schema(const struct field *field)
{
    return list_schema(object_schema(field->object), field->imin, field->imax);
}

static json_t *map_schema(const struct field *field, json_t *value)
{
    json_t *schema = json_put(typed("object"), "additionalProperties", value);
    schema = json_put(schema, "minProperties", json_integer(field->imin));
    return json_put(schema, "maxProperties", json_integer(field->imax));
}

static json_t *inputs_schema(const struct field *field)
{
    return map_schema(field, object_schema(field->object));
}

static json_t *texts_schema(const struct field *field)
{
    static const struct field inputs = {RANGE(1, LIMIT_INPUTS)};
    return either(text_schema(field), map_schema(&inputs, text_schema(field)));
}

static json_t *column_schema(const struct field *field)
{
    static const struct field name = {RANGE(1, LIMIT_NAME_BYTES)};
    return either(text_schema(&name), int_schema(field));
}

static json_t *tristate_schema(const struct field *field)
{
    (void)field;
    return json_put(json_object(), "enum", json_pack("[s, b, b]", "auto", true, false));
}

static json_t *duration_schema(const struct field *field)
{
    (void)field;
    return json_put(
        typed("string"), "pattern",
        json_string("^([1-9][0-9]{0,4}[dhms]|([0-9]{1,4}-([01]?[0-9]|2[0-3])|[0-9]{1,3})"
                    "(:[0-5][0-9]){2})$"));
}

static json_t *(*const kind_schemas[FIELD_KIND_COUNT])(const struct field *field) = {
    [FIELD_INT] = maybe_int_schema,
    [FIELD_NUMBER] = number_schema,
    [FIELD_BOOL] = bool_schema,
    [FIELD_NAME] = text_schema,
    [FIELD_LAYER_NAME] = layer_name_schema,
    [FIELD_PATH] = text_schema,
    [FIELD_CHOICE] = choice_schema,
    [FIELD_FLAGS] = flags_schema,
    [FIELD_FIXED] = fixed_schema,
    [FIELD_PAIR] = pair_schema,
    [FIELD_SHAPE] = shape_schema,
    [FIELD_NUMBERS] = numbers_schema,
    [FIELD_INTS] = ints_schema,
    [FIELD_EVERY] = every_schema,
    [FIELD_NAMES] = names_schema,
    [FIELD_SEGMENTS] = segments_schema,
    [FIELD_DEVICES] = devices_schema,
    [FIELD_OBJECT] = inner_schema,
    [FIELD_OBJECTS] = objects_schema,
    [FIELD_MAP] = inputs_schema,
    [FIELD_SOLE] = inner_schema,
    [FIELD_TEXTS] = texts_schema,
    [FIELD_COLUMN] = column_schema,
    [FIELD_TRISTATE] = tristate_schema,
    [FIELD_DURATION] = duration_schema,
};

static json_t *field_schema(const struct field *field)
{
    json_t *schema =
        json_put(kind_schemas[field->kind](field), "description", json_string(field->help));
    if (field->fallback != NULL && (field->flags & FIELD_REQUIRED) == 0)
        schema = json_put(schema, "default", json_loads(field->fallback, JSON_DECODE_ANY, NULL));
    return schema;
}

/* An object's schema in the making. */
struct keys {
    json_t *properties, *required;
};

static void add_field(struct keys *keys, const struct field *field, bool required)
{
    keys->properties = json_put(keys->properties, field->name, field_schema(field));
    if (required)
        keys->required = json_list_append(keys->required, json_string(field->name));
}

static void add_fields(struct keys *keys, const struct field *fields)
{
    for (; fields != NULL && fields->name != NULL; fields++)
        add_field(keys, fields, (fields->flags & FIELD_REQUIRED) != 0);
}

/* A tag that has made its choice, and the keys that come with it. */
static void add_choice(struct keys *keys, const struct field *tag, const struct choice *choice)
{
    json_t *schema = json_pack("{s:s, s:s}", "const", choice->name, "description", tag->help);
    keys->properties = json_put(keys->properties, tag->name, schema);
    add_fields(keys, choice->fields);
}

/* Takes the keys. */
static json_t *closed_object(struct keys *keys)
{
    json_t *schema = json_put(typed("object"), "properties", keys->properties);
    schema = json_put(schema, "required", keys->required);
    return json_put(schema, "additionalProperties", json_false());
}

/* The keys of an object whose tag is `choice`, or of one without a tag. */
static json_t *keys_schema(const struct object_def *def, const struct choice *choice)
{
    struct keys keys = {json_object(), json_array()};
    add_fields(&keys, def->fields);
    if (choice != NULL)
        add_choice(&keys, &def->fields[0], choice);
    return closed_object(&keys);
}

/* The same object with a choice of its shorthand in place of the key that it stands for. */
static json_t *short_schema(const struct object_def *def, const struct choice *choice)
{
    const struct shorthand *shorthand = def->shorthand;
    struct keys keys = {json_object(), json_array()};
    for (const struct field *field = def->fields; field->name != NULL; field++)
        if (strcmp(field->name, shorthand->stands_for) != 0)
            add_field(&keys, field,
                      field->flags & FIELD_REQUIRED &&
                          strcmp(field->name, shorthand->brings[0]) != 0);
    add_field(&keys, &shorthand->keys->fields[0], true);
    add_choice(&keys, &shorthand->keys->fields[0], choice);
    return closed_object(&keys);
}

static json_t *one_of_schema(const char *const names[2])
{
    json_t *list = json_array();
    for (int i = 0; i < 2; i++)
        list = json_list_append(list, json_pack("{s:[s]}", "required", names[i]));
    return list;
}

/* An object that has keys of its own only. */
static json_t *plain_schema(const struct object_def *def)
{
    json_t *schema = keys_schema(def, NULL);
    if (def->one_of[0] != NULL)
        schema = json_put(schema, "oneOf", one_of_schema(def->one_of));
    return schema;
}

static json_t *whole_schema(const struct object_def *def)
{
    const struct object_def *tagged = def->shorthand != NULL ? def->shorthand->keys : def;
    if (!tagged->tagged)
        return plain_schema(def);
    json_t *variants = json_array();
    if (def->shorthand != NULL)
        variants = json_list_append(variants, plain_schema(def));
    for (const struct choice *c = tagged->fields[0].choices; c->name != NULL; c++)
        variants = json_list_append(variants, def->shorthand != NULL ? short_schema(def, c)
                                                                     : keys_schema(def, c));
    return json_put(json_object(), "oneOf", variants);
}

static json_t *object_schema(const struct object_def *def)
{
    if (def->shared != NULL)
        return json_put(json_object(), "$ref", json_sprintf("#/$defs/%s", def->shared));
    return whole_schema(def);
}

static json_t *shared_schemas(void)
{
    json_t *schemas = json_object();
    for (const struct object_def *const *def = job_shared_objects; *def != NULL; def++)
        schemas = json_put(schemas, (*def)->shared, whole_schema(*def));
    return schemas;
}

json_t *job_schema(void)
{
    json_t *schema =
        json_pack("{s:s, s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema", "title",
                  "A training job for traind, version 1");
    schema = json_put(schema, "$defs", shared_schemas());
    json_t *keys = object_schema(&job_object);
    if (schema == NULL || keys == NULL || json_object_update(schema, keys) != 0) {
        json_decref(schema);
        schema = NULL;
    }
    json_decref(keys);
    return schema;
}
