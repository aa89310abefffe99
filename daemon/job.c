/* job.c: see job.h. */
#include "daemon/job.h"

#include <stdlib.h>
#include <string.h>

static const struct move {
    enum job_state from, to;
    unsigned actors;
} moves[] = {
    {STATE_HELD, STATE_QUEUED, ACTOR_USER},
    {STATE_HELD, STATE_CANCELLED, ACTOR_USER | ACTOR_DAEMON},
    {STATE_HELD, STATE_FAILED, ACTOR_DAEMON}, /* as from queued */
    {STATE_QUEUED, STATE_HELD, ACTOR_USER},
    {STATE_QUEUED, STATE_STARTING, ACTOR_DAEMON},
    {STATE_QUEUED, STATE_CANCELLED, ACTOR_USER | ACTOR_DAEMON}, /* the daemon: see after.h */
    {STATE_QUEUED, STATE_FAILED, ACTOR_DAEMON},   /* its devices are not there any more */
    {STATE_STARTING, STATE_QUEUED, ACTOR_DAEMON}, /* the daemon died before anything ran */
    {STATE_STARTING, STATE_RUNNING, ACTOR_DAEMON},
    {STATE_STARTING, STATE_STOPPING, ACTOR_USER},
    {STATE_STARTING, STATE_FAILED, ACTOR_DAEMON},
    {STATE_STARTING, STATE_LOST, ACTOR_DAEMON},
    {STATE_RUNNING, STATE_STOPPING, ACTOR_USER | ACTOR_DAEMON}, /* the daemon: a time limit */
    {STATE_RUNNING, STATE_COMPLETED, ACTOR_DAEMON},
    {STATE_RUNNING, STATE_FAILED, ACTOR_DAEMON},
    {STATE_RUNNING, STATE_LOST, ACTOR_DAEMON},
    {STATE_STOPPING, STATE_CANCELLED, ACTOR_DAEMON},
    {STATE_STOPPING, STATE_COMPLETED, ACTOR_DAEMON}, /* it was done before it heard of it */
    {STATE_STOPPING, STATE_TIMED_OUT, ACTOR_DAEMON},
    {STATE_STOPPING, STATE_LOST, ACTOR_DAEMON},
};

bool job_may_move(enum job_state from, enum job_state to, enum job_actor actor)
{
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        if (moves[i].from == from && moves[i].to == to)
            return (moves[i].actors & actor) != 0;
    return false;
}

int job_move(struct job_record *record, enum job_state to, enum job_actor actor, int64_t now_ns,
             const char *reason, struct err *err)
{
    if (!job_may_move(record->state, to, actor))
        return err_set(err, ERR_JOB_STATE, "job %lld is %s and cannot become %s",
                       (long long)record->id, state_name(record->state), state_name(to));
    char *copy = NULL;
    if (reason != NULL && (copy = strdup(reason)) == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    free(record->reason);
    record->reason = copy;
    record->state = to;
    if (to == STATE_RUNNING)
        record->started_ns = now_ns;
    if (state_ended(to))
        record->ended_ns = now_ns;
    if (to == STATE_QUEUED)
        record->devices.n = 0;
    return 0;
}

static bool copy_string(char **ret_copy, const char *text)
{
    *ret_copy = text != NULL ? strdup(text) : NULL;
    return text == NULL || *ret_copy != NULL;
}

static bool copy_json(json_t **ret_copy, const json_t *value)
{
    *ret_copy = json_deep_copy(value); /* NULL for NULL */
    return value == NULL || *ret_copy != NULL;
}

struct job_record *job_record_copy(const struct job_record *record)
{
    struct job_record *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return NULL;
    *copy = *record;
    bool ok = copy_string(&copy->reason, record->reason);
    ok &= copy_string(&copy->name, record->name);
    ok &= copy_string(&copy->cwd, record->cwd);
    ok &= copy_string(&copy->output, record->output);
    ok &= copy_string(&copy->weights, record->weights);
    ok &= copy_json(&copy->after, record->after);
    ok &= copy_json(&copy->progress, record->progress);
    ok &= copy_json(&copy->exit, record->exit);
    ok &= copy_json(&copy->confusion, record->confusion);
    ok &= copy_json(&copy->losses, record->losses);
    if (ok)
        return copy;
    job_record_free(copy);
    return NULL;
}

void job_record_free(struct job_record *record)
{
    if (record == NULL)
        return;
    free(record->reason);
    free(record->name);
    free(record->cwd);
    free(record->output);
    free(record->weights);
    json_decref(record->after);
    json_decref(record->progress);
    json_decref(record->exit);
    json_decref(record->confusion);
    json_decref(record->losses);
    free(record);
}

void job_transition_done(struct job_transition *transition)
{
    free(transition->reason);
    transition->reason = NULL;
}
