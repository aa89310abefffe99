/* follow_view.h: the ways to show followed jobs: in place, as lines, as JSON, and on the whole
 * screen (cmd_top.c). */
#ifndef CLIENT_FOLLOW_VIEW_H
#define CLIENT_FOLLOW_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/ctl.h"
#include "client/record.h"
#include "client/render/overview.h"
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
    struct { /* the last losses that the whole screen saw, and at which step */
        double losses[OVERVIEW_TRAIL];
        size_t n;
        int64_t step;
    } trail;
};

struct follow {
    struct ctl *ctl;
    const struct follow_view *view;
    void *state; /* the view's own */
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
    /* A view that stays when all jobs have ended, until it is left by a key: 1: go on; 0: leave;
     * negative: an error. NULL in one that has no keys and ends with the jobs. */
    int (*key)(struct follow *follow, struct err *err);
    /* ctl->style has the terminal's new size. NULL where it makes no difference. */
    void (*resize)(struct follow *follow);
};

extern const struct follow_view follow_view_live, follow_view_lines, follow_view_json;

/* follow_jobs with a view, and what its functions find in follow->state. */
int follow_run(struct ctl *ctl, const struct follow_view *view, void *state, json_t *params,
               struct err *err);

/* The whole record of a job in place of what the events said; one that cannot be had changes
 * nothing. */
int follow_refresh(struct follow *follow, struct followed *job, struct err *err);

/* Seconds of the monotonic clock. */
double follow_clock(void);

#endif
