/* follow.c: see follow.h. One loop: take an event, merge it into the job's record, let the view
 * show it; when a job has ended, fetch its whole record (loss curve, confusion, weights) for the
 * end. */
#include "client/follow.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/follow_view.h"

static const double redraw_s = 0.1, tick_s = 1; /* after an event; while nothing happens */

static struct followed *find(struct follow *follow, json_int_t id)
{
    for (size_t i = 0; i < follow->n; i++)
        if (follow->jobs[i].record.id == id)
            return &follow->jobs[i];
    return NULL;
}

static bool anything_live(const struct follow *follow)
{
    for (size_t i = 0; i < follow->n; i++)
        if (!follow->jobs[i].ended)
            return true;
    return false;
}

/* `json` stays the caller's. */
static int add(struct follow *follow, json_t *json, struct followed **ret, struct err *err)
{
    if (follow->n == follow->size) {
        size_t size = follow->size * 2 + 8;
        struct followed *grown = realloc(follow->jobs, size * sizeof *grown);
        if (grown == NULL)
            return err_set(err, ERR_NOMEM, "out of memory");
        follow->jobs = grown;
        follow->size = size;
    }
    struct followed *job = &follow->jobs[follow->n++];
    *job = (struct followed){.json = json_incref(json), .said.state = STATE_COUNT};
    record_read(job->json, &job->record);
    *ret = job;
    return 0;
}

int follow_refresh(struct follow *follow, struct followed *job, struct err *err)
{
    json_t *whole;
    json_t *params = json_pack("{s:I}", "id", (json_int_t)job->record.id);
    int rc = ctl_call(follow->ctl, METHOD_JOB_SHOW, params, &whole, err);
    if (rc == ERR_NOT_FOUND || rc == ERR_DENIED)
        return 0;
    if (rc < 0)
        return rc;
    json_decref(job->json);
    job->json = whole;
    record_read(job->json, &job->record);
    return 0;
}

static int end_if_ended(struct follow *follow, struct followed *job, struct err *err)
{
    if (job->ended || !record_ended(&job->record))
        return 0;
    int rc = follow_refresh(follow, job, err);
    if (rc < 0)
        return rc;
    job->ended = true;
    if (job->record.state != STATE_COMPLETED && follow->view->key == NULL)
        follow->ctl->status = STATUS_FAILED;
    return follow->view->end(follow, job, err);
}

static int take_snapshot(struct follow *follow, const json_t *snapshot, bool ended_too,
                         struct err *err)
{
    size_t i;
    json_t *json;
    json_array_foreach(json_object_get(snapshot, "jobs"), i, json)
    {
        struct record record;
        struct followed *job;
        record_read(json, &record);
        if (record_ended(&record) && !ended_too)
            continue;
        int rc = add(follow, json, &job, err);
        if (rc == 0)
            rc = follow->view->event(follow, job, NULL, err);
        if (rc == 0)
            rc = end_if_ended(follow, job, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int take_event(struct follow *follow, const json_t *event, struct err *err)
{
    json_t *changes = json_object_get(event, "record");
    json_int_t id = json_integer_value(json_object_get(event, "id"));
    if (id == 0)
        return follow->view->other != NULL ? follow->view->other(event, err) : 0;
    struct followed *job = find(follow, id);
    if (job != NULL && job->ended)
        return 0;
    int rc = 0;
    if (job == NULL) { /* a job that was submitted since the watch began */
        json_t *json = json_pack("{s:I}", "id", id);
        rc = json != NULL ? add(follow, json, &job, err) : err_set(err, ERR_NOMEM, "out of memory");
        json_decref(json);
        if (rc == 0)
            rc = follow_refresh(follow, job, err);
        if (rc < 0)
            return rc;
    }
    if (json_is_object(changes) && json_object_update_recursive(job->json, changes) < 0)
        return err_set(err, ERR_NOMEM, "out of memory");
    record_read(job->json, &job->record);
    rc = follow->view->event(follow, job, event, err);
    return rc < 0 ? rc : end_if_ended(follow, job, err);
}

static int draw_if_due(struct follow *follow, bool always, struct err *err)
{
    double now = follow_clock();
    if (follow->view->draw == NULL ||
        (!always && !(follow->dirty && now >= follow->drawn + redraw_s)))
        return 0;
    follow->dirty = false;
    follow->drawn = now;
    return follow->view->draw(follow, err);
}

static int wait_ms(const struct follow *follow)
{
    if (follow->view->draw == NULL)
        return -1;
    double left = follow->drawn + (follow->dirty ? redraw_s : tick_s) - follow_clock();
    return left > 0 ? (int)ceil(left * 1000) : 0;
}

static void resize(struct follow *follow)
{
    terminal_style(&follow->ctl->style);
    if (follow->view->resize != NULL)
        follow->view->resize(follow);
}

/* One event of any kind. 1: go on; 0: leave; negative: an error. */
static int step(struct follow *follow, struct err *err)
{
    json_t *notification;
    int rc = draw_if_due(follow, false, err);
    if (rc < 0)
        return rc;
    int event = conn_next(follow->ctl->conn, wait_ms(follow), &notification, err);
    if (event < 0)
        return event;
    if (event == CONN_KEY)
        return follow->view->key(follow, err);
    if (event == CONN_INTERRUPT)
        return err_set(err, ERR_CANCELLED, "interrupted");
    if (event == CONN_NO_READER) {
        follow->ctl->status = STATUS_FAILED;
        return 0;
    }
    if (event == CONN_RESIZE)
        resize(follow);
    if (event != CONN_NOTIFICATION)
        rc = draw_if_due(follow, true, err);
    else {
        rc = take_event(follow, json_object_get(notification, "params"), err);
        json_decref(notification);
    }
    return rc < 0 ? rc : 1;
}

static json_t *live_ids(const struct follow *follow)
{
    json_t *ids = json_array();
    for (size_t i = 0; i < follow->n; i++)
        if (!follow->jobs[i].ended)
            json_array_append_new(ids, json_integer(follow->jobs[i].record.id));
    return ids;
}

static void add_way_back(struct text *text, const char *command, const json_t *ids)
{
    size_t i;
    json_t *id;
    text_fmt(text, "%s; come back with: trainctl %s",
             json_array_size(ids) == 1 ? "the job goes on" : "the jobs go on", command);
    json_array_foreach((json_t *)ids, i, id)
        text_fmt(text, " %" JSON_INTEGER_FORMAT, json_integer_value(id));
}

void follow_detached(struct ctl *ctl, const char *command, const json_t *ids)
{
    struct text text = {0};
    add_way_back(&text, command, ids);
    /* the terminal has echoed ^C in this line */
    fprintf(stderr, "%strainctl: detached: %s\n", ctl->style.terminal ? "\n" : "", text_str(&text));
    text_done(&text);
    ctl->status = STATUS_DETACHED;
}

/* Turns what ended the loop early into what the user is told. */
static int leave(struct follow *follow, int rc, struct err *err)
{
    json_t *ids = live_ids(follow);
    struct text text = {0};
    if (follow->view->key != NULL) {
        rc = rc == ERR_CANCELLED ? 0 : rc;
    } else if (rc == ERR_CANCELLED) {
        follow_detached(follow->ctl, "watch", ids);
        rc = 0;
    } else if (rc == ERR_UNREACHABLE && json_array_size(ids) > 0) {
        char what[sizeof err->message];
        snprintf(what, sizeof what, "%s", err->message);
        add_way_back(&text, "watch", ids);
        err_set(err, ERR_UNREACHABLE, "%s; %s", what, text_str(&text));
    }
    text_done(&text);
    json_decref(ids);
    return rc;
}

static int follow_all(struct follow *follow, json_t *params, struct err *err)
{
    json_t *snapshot;
    bool named = json_object_get(params, "ids") != NULL;
    int rc = ctl_call(follow->ctl, METHOD_JOB_WATCH, params, &snapshot, err);
    if (rc < 0)
        return rc;
    rc = conn_watch_signals(follow->ctl->conn, err);
    if (rc == 0)
        rc = take_snapshot(follow, snapshot, named, err);
    json_decref(snapshot);
    if (rc == 0 && follow->view->key != NULL)
        conn_watch_keys(follow->ctl->conn);
    else if (rc == 0 && follow->n == 0 && !named && follow->view != &follow_view_json)
        fprintf(stderr, "trainctl: no job of yours is queued or running\n");
    while (rc == 0 && (follow->view->key != NULL || anything_live(follow))) {
        rc = step(follow, err);
        if (rc == 0)
            return 0;
        rc = rc > 0 ? 0 : rc;
    }
    return rc == 0 ? draw_if_due(follow, follow->dirty, err) : rc;
}

int follow_run(struct ctl *ctl, const struct follow_view *view, void *state, json_t *params,
               struct err *err)
{
    struct follow follow = {.ctl = ctl, .view = view, .state = state};
    int rc = leave(&follow, follow_all(&follow, params, err), err);
    for (size_t i = 0; i < follow.n; i++)
        json_decref(follow.jobs[i].json);
    free(follow.jobs);
    text_done(&follow.above);
    return rc;
}

int follow_jobs(struct ctl *ctl, json_t *params, struct err *err)
{
    const struct follow_view *view = args_has(&ctl->args, OPT_JSON) ? &follow_view_json
                                     : ctl->style.terminal          ? &follow_view_live
                                                                    : &follow_view_lines;
    return follow_run(ctl, view, NULL, params, err);
}
