/* overview.h: the screen of `trainctl top`: the devices, and all jobs or one of them. Pure. */
#ifndef CLIENT_RENDER_OVERVIEW_H
#define CLIENT_RENDER_OVERVIEW_H

#include "client/record.h"
#include "client/render/style.h"
#include "client/render/text.h"

enum { OVERVIEW_TRAIL = 12 /* losses that are kept of a job */ };

struct overview_job {
    const struct record *record;
    const char *user;    /* its name */
    const double *trail; /* its last losses */
    size_t n_trail;
    bool chosen;
};

struct overview {
    const json_t *devices; /* of device.list, or NULL */
    const struct overview_job *jobs;
    size_t n_jobs;
    const char *whose;   /* all of whose jobs these are; NULL: everybody's */
    const char *message; /* a question or what went wrong; NULL: the keys are shown */
    bool one;            /* look into the chosen job */
    double now;          /* seconds since 1970 */
};

/* Adds exactly style->rows lines, none wider than the style's columns. Of more jobs than there is
 * room for, those around the chosen one are shown. */
void overview_draw(struct text *text, const struct style *style, const struct overview *overview);

#endif
