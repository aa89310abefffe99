/* job_schema.h: the tables of job_fields.c as JSON Schema 2020-12 (for job.schema.json). */
#ifndef PROTO_JOB_SCHEMA_H
#define PROTO_JOB_SCHEMA_H

#include <jansson.h>

/* A new reference; NULL without memory. What rules over several keys say (job_check.c) is not in
 * it: a document that the schema refuses is refused by the parser, not always the other way. */
json_t *job_schema(void);

#endif
