/* cmd_top.c: trainctl top: the devices and everybody's jobs on the whole screen, until one leaves.
 * It is a view of follow.c's jobs, one that has keys and does not end with the jobs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/follow.h"
#include "client/follow_view.h"
#include "client/screen.h"

enum { EVERYBODY = -1, FETCH_EVERY_S = 2, PAGE = 10 };

struct top {
    int64_t chosen;            /* a job's id; 0: none */
    int64_t user;              /* whose jobs are shown, or EVERYBODY */
    bool one;                  /* the chosen job alone */
    const struct change *asks; /* waits for a y; NULL: none */
    char message[sizeof((struct err *)0)->message];
    json_t *devices;
    double fetched; /* devices and the chosen job, by follow_clock; 0: must be */
};

/* What is shown, in its order. */
struct shown {
    struct followed **jobs;
    size_t n, chosen; /* chosen: its place; n: none is */
};

/* Those that run, those that wait, those that have ended. */
static int rank(const struct record *record)
{
    return record_ended(record) ? 2 : json_array_size(record->devices) > 0 ? 0 : 1;
}

/* By rank and id, but of those that have ended the youngest first. */
static int compare(const void *a, const void *b)
{
    const struct record *x = &(*(struct followed *const *)a)->record;
    const struct record *y = &(*(struct followed *const *)b)->record;
    int ids = (x->id > y->id) - (x->id < y->id);
    if (rank(x) != rank(y))
        return rank(x) - rank(y);
    return rank(x) == 2 ? -ids : ids;
}

/* To be freed. Where the chosen job is not among them, the first becomes it. */
static int list_shown(const struct follow *follow, struct shown *ret_shown, struct err *err)
{
    struct top *top = follow->state;
    struct shown shown = {.jobs = calloc(follow->n + 1, sizeof *shown.jobs)};
    if (shown.jobs == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < follow->n; i++)
        if (top->user == EVERYBODY || follow->jobs[i].record.user == top->user)
            shown.jobs[shown.n++] = &follow->jobs[i];
    qsort(shown.jobs, shown.n, sizeof(struct followed *), compare);
    while (shown.chosen < shown.n && shown.jobs[shown.chosen]->record.id != top->chosen)
        shown.chosen++;
    if (shown.chosen == shown.n && shown.n > 0) {
        shown.chosen = 0;
        top->chosen = shown.jobs[0]->record.id;
        top->one = false;
    }
    *ret_shown = shown;
    return 0;
}

static void remember_loss(struct followed *job)
{
    const struct record *record = &job->record;
    size_t most = sizeof job->trail.losses / sizeof *job->trail.losses;
    if (!isfinite(record->loss) || record->step <= job->trail.step)
        return;
    if (job->trail.n == most)
        memmove(job->trail.losses, job->trail.losses + 1, --job->trail.n * sizeof(double));
    job->trail.losses[job->trail.n++] = record->loss;
    job->trail.step = record->step;
}

static int top_event(struct follow *follow, struct followed *job, const json_t *event,
                     struct err *err)
{
    struct top *top = follow->state;
    const char *type = json_string_value(json_object_get(event, "type"));
    (void)err;
    remember_loss(job);
    if (type != NULL && strcmp(type, "state") == 0)
        top->fetched = 0;
    follow->dirty = true;
    return 0;
}

static int top_end(struct follow *follow, struct followed *job, struct err *err)
{
    (void)job;
    (void)err;
    follow->dirty = true;
    return 0;
}

/* What no event tells: the devices, and the loss curve of a job that is looked into. */
static int fetch(struct follow *follow, struct followed *chosen, struct err *err)
{
    struct top *top = follow->state;
    json_t *result;
    if (top->fetched > 0 && follow_clock() < top->fetched + FETCH_EVERY_S)
        return 0;
    int rc = ctl_call(follow->ctl, METHOD_DEVICE_LIST, json_object(), &result, err);
    if (rc == 0) {
        json_decref(top->devices);
        top->devices = json_incref(json_object_get(result, "devices"));
        json_decref(result);
        top->fetched = follow_clock();
    }
    if (rc == 0 && top->one && chosen != NULL)
        rc = follow_refresh(follow, chosen, err);
    return rc;
}

static int draw_shown(struct follow *follow, const struct shown *shown, struct err *err)
{
    struct top *top = follow->state;
    char whose[CTL_USER_SIZE], (*users)[CTL_USER_SIZE] = calloc(shown->n + 1, sizeof *users);
    struct overview_job *jobs = calloc(shown->n + 1, sizeof *jobs);
    struct text lines = {0};
    struct overview overview = {
        .devices = top->devices,
        .jobs = jobs,
        .n_jobs = shown->n,
        .whose = top->user != EVERYBODY ? ctl_user(top->user, whose) : NULL,
        .message = top->message[0] != '\0' ? top->message : NULL,
        .one = top->one,
        .now = (double)time(NULL),
    };
    for (size_t i = 0; jobs != NULL && users != NULL && i < shown->n; i++) {
        struct followed *job = shown->jobs[i];
        jobs[i] = (struct overview_job){.record = &job->record,
                                        .user = ctl_user(job->record.user, users[i]),
                                        .trail = job->trail.losses,
                                        .n_trail = job->trail.n,
                                        .chosen = i == shown->chosen};
    }
    lines.failed = jobs == NULL || users == NULL;
    if (!lines.failed)
        overview_draw(&lines, &follow->ctl->style, &overview);
    int rc = screen_draw(&lines, err);
    text_done(&lines);
    free(jobs);
    free(users);
    return rc;
}

static int top_draw(struct follow *follow, struct err *err)
{
    struct shown shown;
    int rc = list_shown(follow, &shown, err);
    if (rc < 0)
        return rc;
    rc = fetch(follow, shown.chosen < shown.n ? shown.jobs[shown.chosen] : NULL, err);
    if (rc == 0)
        rc = draw_shown(follow, &shown, err);
    free(shown.jobs);
    return rc;
}

/* A change that a key asks for; what cannot be undone is asked back. */
static const struct change {
    int key;
    enum method method;
    const char *verb;
    bool asks;
} changes[] = {
    {'c', METHOD_JOB_CANCEL, "cancel", true},
    {'h', METHOD_JOB_HOLD, "hold", false},
    {'r', METHOD_JOB_RELEASE, "release", false},
};

/* What the daemon has against it is shown; only a connection that is gone ends all. */
static int change(struct follow *follow, const struct change *what, struct err *err)
{
    struct top *top = follow->state;
    struct err refused = ERR_INIT;
    json_t *result;
    int rc = ctl_call(follow->ctl, what->method,
                      json_pack("{s:[I]}", "ids", (json_int_t)top->chosen), &result, &refused);
    if (rc == ERR_UNREACHABLE || rc == ERR_CANCELLED || rc == ERR_NOMEM) {
        *err = refused;
        return rc;
    }
    if (rc < 0)
        snprintf(top->message, sizeof top->message, "%s", refused.message);
    else
        json_decref(result);
    return 1;
}

static const struct change *find_change(int key)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (changes[i].key == key)
            return &changes[i];
    return NULL;
}

static void move(struct top *top, const struct shown *shown, long by)
{
    long to = (long)shown->chosen + by, last = (long)shown->n - 1;
    to = to < 0 ? 0 : to > last ? last : to;
    if (shown->n > 0)
        top->chosen = shown->jobs[to]->record.id;
    top->fetched = 0;
}

static int act(struct follow *follow, const struct shown *shown, int key, struct err *err)
{
    static const struct {
        int key;
        long by;
    } moves[] = {
        {SCREEN_UP, -1}, {SCREEN_DOWN, 1}, {SCREEN_PAGE_UP, -PAGE}, {SCREEN_PAGE_DOWN, PAGE}};
    struct top *top = follow->state;
    const struct change *asked = top->asks, *what = find_change(key);
    top->message[0] = '\0';
    top->asks = NULL;
    if (asked != NULL)
        return key == 'y' ? change(follow, asked, err) : 1;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (moves[i].key == key)
            move(top, shown, moves[i].by);
    if (key == SCREEN_ENTER && shown->n > 0) {
        top->one = !top->one;
        top->fetched = 0;
    } else if (key == 'u' && shown->n > 0) {
        top->user = top->user == EVERYBODY ? shown->jobs[shown->chosen]->record.user : EVERYBODY;
    } else if (what != NULL && what->asks && shown->n > 0) {
        top->asks = what;
        snprintf(top->message, sizeof top->message, "%s job %" PRId64 "? y/n", what->verb,
                 top->chosen);
    } else if (what != NULL && shown->n > 0) {
        return change(follow, what, err);
    }
    return key == 'q' ? 0 : 1;
}

static int top_key(struct follow *follow, struct err *err)
{
    struct shown shown;
    int rc = list_shown(follow, &shown, err);
    if (rc < 0)
        return rc;
    rc = 1;
    for (int key; rc > 0 && (key = screen_key()) != SCREEN_NONE;) {
        rc = act(follow, &shown, key, err);
        free(shown.jobs);
        int listed = list_shown(follow, &shown, err);
        if (listed < 0)
            return listed;
    }
    free(shown.jobs);
    follow->dirty = true;
    follow->drawn = 0; /* at once */
    return rc;
}

static void top_resize(struct follow *follow)
{
    screen_resize(&follow->ctl->style);
}

static const struct follow_view view = {
    .event = top_event, .end = top_end, .draw = top_draw, .key = top_key, .resize = top_resize};

int cmd_top(struct ctl *ctl, struct err *err)
{
    struct top top = {.user = EVERYBODY};
    int rc = ctl_connect(ctl, err);
    if (rc == 0)
        rc = screen_open(&ctl->style, err);
    if (rc < 0)
        return rc;
    rc = follow_run(ctl, &view, &top, json_object(), err);
    screen_close();
    json_decref(top.devices);
    return rc;
}
