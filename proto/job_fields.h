/* job_fields.h: the job document as tables (internal to proto).
 *
 * One row a key: its name, kind, place in `struct job`, default, range, choices. The parser
 * (job.c, job_kinds.c), the dump and the schema (job_schema.c) walk these rows; what a row cannot
 * say, a rule over several keys, is in job_check.c. A new key is a row; a new layer a choice.
 */
#ifndef PROTO_JOB_FIELDS_H
#define PROTO_JOB_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"

enum field_kind {
    FIELD_INT,        /* int64_t */
    FIELD_NUMBER,     /* double */
    FIELD_BOOL,       /* bool */
    FIELD_NAME,       /* char *: the job's name */
    FIELD_LAYER_NAME, /* char *: dots, but no empty part */
    FIELD_PATH,       /* char * */
    FIELD_CHOICE,     /* an enum or a bool: the value of a choice */
    FIELD_FLAGS,      /* a list of choices: the bools at offset + value */
    FIELD_FIXED,      /* nothing: a key with one legal value, the default */
    FIELD_PAIR,       /* int64_t[2]: one integer for both, or two; or a choice's value for both */
    FIELD_SHAPE,      /* struct job_shape */
    FIELD_NUMBERS,    /* struct job_numbers */
    FIELD_INTS,       /* struct job_ints */
    FIELD_EVERY,      /* struct job_every */
    FIELD_NAMES,      /* char **, with its size_t count at `aux` */
    FIELD_SEGMENTS,   /* struct job_segments */
    FIELD_DEVICES,    /* n_devices and devices of struct job_parallel */
    FIELD_OBJECT,     /* an object of its own rows, in the same or an inner struct */
    FIELD_OBJECTS,    /* a list of such objects: an array, with its size_t count at `aux` */
    FIELD_MAP,        /* the same by name: char *name is an element's first member */
    FIELD_SOLE,       /* the same with one element, written as itself; its name is the field's */
    FIELD_TEXTS,      /* struct job_texts */
    FIELD_COLUMN,     /* struct job_column */
    FIELD_TRISTATE,   /* enum job_tristate: "auto", true, false */
    FIELD_DURATION,   /* int64_t: seconds, 0 is none */
    FIELD_KIND_COUNT
};

enum field_flag {
    FIELD_REQUIRED = 1,
    FIELD_COMPUTED = 2,  /* without a value it follows from others (job_check.c); always dumped */
    FIELD_ABOVE = 4,     /* dmin itself is not allowed */
    FIELD_UNTIMED = 8,   /* FIELD_EVERY: no seconds */
    FIELD_OPTIONAL = 16, /* FIELD_OBJECT: the bool at `aux` says whether it was given */
    FIELD_LONE = 32,     /* FIELD_SHAPE: an integer alone stands for a list of it */
    FIELD_BELOW = 64,    /* dmax itself is not allowed */
    FIELD_LIST = 128,    /* FIELD_NUMBERS: always a list */
    FIELD_NULL = 256,    /* FIELD_INT: null is allowed too, for none: INT64_MIN */
    FIELD_AUTO = 512     /* FIELD_INT: "auto" is allowed too: JOB_INT_AUTO */
};

enum { JOB_INT_AUTO = -1 };

/* What job.md describes and this version does not have: a key, or a value. As a value `match` is a
 * string's text, or "#", "[]", "{}", "null" for any number, list, object, for null. Ends with
 * {0}. */
struct later {
    const char *match;
    const char *what; /* a plural: "LSTM layers" are not in this version */
};

/* A value of FIELD_CHOICE; of an object's tag, with the keys that come with it. Ends with {0}.
 */
struct choice {
    const char *name;
    int value;
    const struct field *fields; /* NULL: none */
    const struct later *later;  /* keys; NULL: none */
};

struct field {
    const char *name;
    enum field_kind kind;
    const char *help; /* what the schema says of it */
    size_t offset;    /* in the struct of its object */
    size_t size;      /* of the member; FIELD_OBJECTS, _MAP, _SOLE: of an element */
    size_t aux;       /* a second offset, see the kinds */
    unsigned flags;
    const char *fallback; /* the default, as JSON; NULL: none */
    int64_t imin, imax;   /* integers: values; strings: bytes; lists: entries */
    double dmin, dmax;    /* numbers */
    const struct choice *choices;
    const struct object_def *object;
    const struct later *later; /* values; NULL: none */
};

/* Another way to write an object: keys that stand for one of its own (preset.h). */
struct shorthand {
    const struct object_def *keys; /* tagged: the tag says that the object is written so */
    size_t size;                   /* of the struct of `keys` */
    const char *stands_for;        /* the key that they stand for: one of both is given */
    const char *brings[2];         /* the first is given a value where the document has neither */
    /* Rules over several of `keys`: ERR_JOB_INVALID with a path below that of `keys`. */
    int (*check)(const void *base, struct err *err);
    json_t *(*expand)(const void *base); /* an object of both; NULL without memory */
};

struct object_def {
    const char *what;           /* in messages: unknown key "x" in WHAT */
    const struct field *fields; /* ends with a NULL name */
    bool tagged;                /* the first field's choice brings more keys */
    const struct later *later;  /* keys; NULL: none */
    const char *one_of[2];      /* exactly one of these keys must be given; NULL: no such rule */
    const struct shorthand *shorthand; /* NULL: none */
    const char *shared; /* its name in the schema, which says it once; NULL: at each place */
};

extern const struct object_def job_object;                  /* of struct job */
extern const struct object_def *const job_shared_objects[]; /* ends with NULL */

/* The choice with this value; NULL if there is none. */
const struct choice *job_choice(const struct field *field, int value);
/* The choices of a layer's "type": names and keys of layers. */
const struct choice *job_layer_choices(void);
/* The units of FIELD_EVERY. */
struct every_unit_def {
    const char *name;
    int unit; /* enum every_unit */
    int64_t factor;
};
extern const struct every_unit_def job_every_units[]; /* ends with {0} */

#endif
