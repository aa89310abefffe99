/* job_kinds.h: what a kind of field does: the functions behind `enum field_kind` (internal). */
#ifndef PROTO_JOB_KINDS_H
#define PROTO_JOB_KINDS_H

#include <jansson.h>

#include "proto/err.h"
#include "proto/job_fields.h"

/* Where the parser is in the document. */
struct job_parser {
    struct err *err;
    char path[sizeof((struct err *)0)->path]; /* a JSON Pointer */
    size_t used;
};

/* Goes down to a key or an entry; returns where to come back to (job_parser_leave). A key that does
 * not fit in the path is left out: the pointer then names what holds it. */
size_t job_parser_enter(struct job_parser *parser, const char *key);
size_t job_parser_enter_index(struct job_parser *parser, size_t index);
void job_parser_leave(struct job_parser *parser, size_t mark);
/* Sets ERR_NOMEM; returns it. */
int job_parser_nomem(struct job_parser *parser);
/* Sets "NAME must be EXPECTED, found FOUND" at the parser's place; returns ERR_JOB_INVALID. */
int job_parser_refuse(struct job_parser *parser, const struct field *field, const json_t *value);

/* `base` is the struct of the object that has the field. */
struct field_type {
    /* What is allowed, in words after "must be". */
    void (*expect)(const struct field *field, char *buf, size_t size);
    int (*parse)(struct job_parser *parser, const struct field *field, const json_t *value,
                 void *base);
    /* Whether there is something to dump. */
    bool (*given)(const struct field *field, const void *base);
    /* A new reference; NULL without memory. */
    json_t *(*dump)(const struct field *field, const void *base);
    void (*release)(const struct field *field, void *base); /* NULL: nothing to free */
};

extern const struct field_type *const job_field_types[FIELD_KIND_COUNT];
extern const struct field_type job_type_int, job_type_number, job_type_bool, job_type_text,
    job_type_layer_name, job_type_choice, job_type_flags, job_type_fixed, job_type_every,
    job_type_pair, job_type_shape, job_type_numbers, job_type_ints, job_type_names,
    job_type_segments, job_type_devices, job_type_map, job_type_sole, job_type_texts,
    job_type_column, job_type_tristate, job_type_duration;

/* For the kinds themselves: the member of a field, and the count beside a list. */
void *job_at(const struct field *field, void *base);
const void *job_in(const struct field *field, const void *base);
size_t *job_count_at(const struct field *field, void *base);
size_t job_count_in(const struct field *field, const void *base);
bool job_always(const struct field *field, const void *base); /* for `given` */
bool job_counted(const struct field *field,
                 const void *base); /* the same: of a list with entries */
/* Whether a value lies in the field's range, and that range in words. */
bool job_int_fits(const struct field *field, const json_t *value);
const char *job_int_range(const struct field *field, char buf[static 64]);
bool job_number_fits(const struct field *field, const json_t *value);
const char *job_number_range(const struct field *field, char buf[static 64]);
/* The number as people write it: 0, not 0.0. A new reference. */
json_t *job_number_value(double number);
int job_text_store(struct job_parser *parser, const struct field *field, const json_t *value,
                   void *base);

/* Objects, walked by their rows (job.c). `base` is zeroed before the first parse; what a failed
 * parse left in it is freed by job_object_release as well. */
int job_object_parse(struct job_parser *parser, const struct object_def *def, const json_t *value,
                     void *base);
/* An object with its shorthand written out (job_shorthand.c): a new reference to it, which is
 * `value` itself where it is not used. Errors: ERR_JOB_INVALID, ERR_NOMEM. */
int job_shorthand_expand(struct job_parser *parser, const struct object_def *def,
                         const json_t *value, json_t **ret_value);
json_t *job_object_dump(const struct object_def *def, const void *base);
void job_object_release(const struct object_def *def, void *base);

#endif
