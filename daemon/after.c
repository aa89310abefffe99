/* after.c: see after.h. */
#include "daemon/after.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/store.h"

void after_clear(struct after *after)
{
    free(after->id);
    *after = (struct after){0};
}

static void enter(struct after *after, int64_t id, enum job_state state)
{
    if (!state_ended(state)) {
        after->id[after->n++] = id;
    } else if (state != STATE_COMPLETED && after->broken == 0) {
        after->broken = id;
        after->how = state;
    }
}

int after_read(struct after *after, struct store *store, const json_t *ids, struct err *err)
{
    size_t n = json_array_size(ids);
    after_clear(after);
    if (n == 0)
        return 0;
    if ((after->id = calloc(n, sizeof *after->id)) == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        struct job_brief brief;
        int64_t id = json_integer_value(json_array_get(ids, i));
        int rc = store_get_brief(store, id, &brief, err);
        if (rc == ERR_NOT_FOUND) {
            char path[64];
            snprintf(path, sizeof path, "/queue/after/%zu", i);
            return err_at(err, ERR_JOB_INVALID, path, "there is no job %" PRId64, id);
        }
        if (rc != 0)
            return rc;
        json_decref(brief.exit);
        enter(after, id, brief.state);
    }
    return 0;
}

static bool waits(const struct live *live)
{
    return live->record->state == STATE_QUEUED || live->record->state == STATE_HELD;
}

void after_settle(struct daemon *daemon, struct live *live)
{
    char reason[96];
    if (live->after.broken == 0 || !waits(live))
        return;
    snprintf(reason, sizeof reason, "it was to run after job %" PRId64 ", which ended as %s",
             live->after.broken, state_name(live->after.how));
    jobs_move(daemon, live, STATE_CANCELLED, NULL, reason);
}

/* Takes the id off what the job waits for; false if it is not there. */
static bool strike(struct after *after, int64_t id)
{
    size_t kept = 0;
    for (size_t i = 0; i < after->n; i++)
        if (after->id[i] != id)
            after->id[kept++] = after->id[i];
    bool found = kept < after->n;
    after->n = kept;
    return found;
}

void after_ended(struct daemon *daemon, int64_t id, enum job_state state)
{
    bool any = false;
    for (size_t i = 0; i < daemon->jobs.n; i++) {
        struct live *live = daemon->jobs.live[i];
        if (live->after.n == 0 || !strike(&live->after, id))
            continue;
        any = true;
        enter(&live->after, id, state);
        after_settle(daemon, live);
    }
    if (any)
        jobs_schedule(daemon);
}
