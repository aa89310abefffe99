/* job_rows.h: the words in which the tables of job_fields.c and job_layers.c are written. */
#ifndef PROTO_JOB_ROWS_H
#define PROTO_JOB_ROWS_H

#include <float.h>

#include "proto/job_fields.h"

#define AT(type, member)                                                                           \
    .offset = offsetof(struct type, member), .size = sizeof(((struct type *)0)->member)
#define REQUIRED .flags = FIELD_REQUIRED
#define COMPUTED .flags = FIELD_COMPUTED
#define DEFAULT(json) .fallback = json
#define RANGE(least, most) .imin = least, .imax = most
#define REALS(least, most) .dmin = least, .dmax = most
#define OPTION(text, number)                                                                       \
    {                                                                                              \
        .name = text, .value = number                                                              \
    }
#define CHOICES(...) .choices = ((const struct choice[]){__VA_ARGS__, {0}})
#define LATER_KEYS(...) ((const struct later[]){__VA_ARGS__, {0}})
#define LATER(...) .later = LATER_KEYS(__VA_ARGS__)

#define DIM_MAX INT32_MAX            /* a dimension, a count of features */
#define COUNT_MAX ((int64_t)1 << 40) /* steps, samples, epochs: products fit in int64 */
#define CHANNELS_MAX 4096
#define RECURRENT_MOST 1000 /* layers in one of another */
#define JOB_INTS_MAX 10000  /* entries of FIELD_INTS */
#define NAMED_MOST 1000     /* names in freeze, fresh: each is looked for in every layer */
#define PATH_MOST (LIMIT_PATH_BYTES - 1) /* without the NUL that the kernel counts */
#define REAL_MAX FLT_MAX                 /* all that is computed with is float32 */

extern const struct object_def job_layer_object;      /* of struct job_layer */
extern const struct object_def job_layer_init_object; /* of struct layer_init */
extern const struct object_def job_loss_object, job_optimizer_object, job_schedule_object;
extern const struct object_def job_data_object; /* of struct job_data */

#endif
