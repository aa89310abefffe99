/* follow_view.h: the three ways to show followed jobs: in place, as lines, as JSON. */
#ifndef CLIENT_FOLLOW_VIEW_H
#define CLIENT_FOLLOW_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/ctl.h"
#include "client/record.h"
#include "client/terminal.h"

/* One job that is followed. */
struct followed {
    json_t *json;         /* its record as far as it is known */
    struct record record; /* read from `json` */
    bool ended;
    struct { /* what the lines have said */
        enum job_state state;
        char reason[128];
        bool resumed;
        int tenth;
        double time, validation; /* when, by follow_clock; 0: not yet */
    } said;
};

struct follow {
    struct ctl *ctl;
    const struct follow_view *view;
    struct followed *jobs;
    size_t n, size;
    struct block block;
    struct text above; /* what has to be printed above the block */
    bool dirty;
    double drawn; /* when, in seconds of the monotonic clock */
};

struct follow_view {
    /* An event changed `job` (read already); `event` is the notification's params, or NULL for the
     * snapshot. */
    int (*event)(struct follow *follow, struct followed *job, const json_t *event, struct err *err);
    /* `job` has ended and its record is whole. */
    int (*end)(struct follow *follow, struct followed *job, struct err *err);
    /* An event about no single job ("lagged"); NULL in a view that has nothing to say of it. */
    int (*other)(const json_t *event, struct err *err);
    /* Draws all jobs; NULL in a view that needs no drawing. */
    int (*draw)(struct follow *follow, struct err *err);
};

extern const struct follow_view follow_view_live, follow_view_lines, follow_view_json;

/* Seconds of the monotonic clock. */
double follow_clock(void);

#endif
