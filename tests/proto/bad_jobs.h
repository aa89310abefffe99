/* bad_jobs.h: documents that break a rule, each the digits job with one value changed. */
#ifndef TESTS_PROTO_BAD_JOBS_H
#define TESTS_PROTO_BAD_JOBS_H

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"
#include "tests/lib/checks.h"
#include "tests/proto/jobs.h"

struct bad_job {
    const char *at, *value; /* what is put at a pointer (NULL: taken out) */
    int code;
    const char *path; /* NULL: the same as `at` */
    const char *fragment;
};

/* The digits job, or with `base` another, with one value put at a pointer (NULL: taken out). */
static json_t *patched(const char *base, const char *pointer, const char *value)
{
    json_t *root = json_loads(base, 0, NULL), *at = root;
    char part[128];
    const char *rest = pointer + 1;
    for (;;) {
        size_t n = strcspn(rest, "/");
        ck_assert_uint_lt(n, sizeof part);
        memcpy(part, rest, n);
        part[n] = '\0';
        if (rest[n] == '\0')
            break;
        at = json_is_array(at) ? json_array_get(at, strtoul(part, NULL, 10))
                               : json_object_get(at, part);
        ck_assert_msg(at != NULL, "nothing at %s of %s", part, pointer);
        rest += n + 1;
    }
    json_t *put = value != NULL ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    ck_assert(value == NULL || put != NULL);
    if (json_is_array(at))
        ck_assert_int_eq(strcmp(part, "-") == 0
                             ? json_array_append_new(at, put)
                             : json_array_set_new(at, strtoul(part, NULL, 10), put),
                         0);
    else
        ck_assert_int_eq(
            value != NULL ? json_object_set_new(at, part, put) : json_object_del(at, part), 0);
    return root;
}

#define INVALID ERR_JOB_INVALID
#define LATER ERR_JOB_UNSUPPORTED
#define NAME_257                                                                                   \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
    "aaaa"                                                                                         \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
    "aaaa"                                                                                         \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct bad_job bad_values[] = {
#include "tests/proto/bad_values.def"
};

static const struct bad_job bad_rules[] = {
#include "tests/proto/bad_rules.def"
};

#undef INVALID
#undef LATER

#endif
