/* verdict.c: see verdict.h. */
#define _GNU_SOURCE /* sigabbrev_np */
#include "daemon/verdict.h"

#include <string.h>

static const char *const reason_names[RUNNER_REASON_COUNT] = {
#define X(name, text) [RUNNER_##name] = text,
    RUNNER_REASONS(X)
#undef X
};

static void exited(struct err *why, const struct runner_exit *ended, int grace_s)
{
    (void)grace_s;
    if (ended->status == 0)
        err_set(why, ERR_INTERNAL, "the worker exited without saying that it was done");
    else
        err_set(why, ERR_INTERNAL, "the worker exited with status %d without saying why",
                ended->status);
}

static void signalled(struct err *why, const struct runner_exit *ended, int grace_s)
{
    (void)grace_s;
    const char *name = sigabbrev_np(ended->signal);
    err_set(why, ERR_INTERNAL, "the worker was killed by signal %d (%s%s)", ended->signal,
            name != NULL ? "SIG" : "unknown", name != NULL ? name : "");
}

static void oom(struct err *why, const struct runner_exit *ended, int grace_s)
{
    (void)ended;
    (void)grace_s;
    err_set(why, ERR_NOMEM, "killed by the kernel for memory");
}

static void hung(struct err *why, const struct runner_exit *ended, int grace_s)
{
    (void)ended;
    err_set(why, ERR_INTERNAL, "did not exit within %d s after its end", grace_s);
}

static void stopped(struct err *why, const struct runner_exit *ended, int grace_s)
{
    (void)ended;
    (void)grace_s;
    err_set(why, ERR_CANCELLED, "stopped by a signal that the daemon did not send");
}

static void exec_failed(struct err *why, const struct runner_exit *ended, int grace_s)
{
    (void)grace_s;
    err_set(why, ERR_IO, "%s", ended->message[0] != '\0' ? ended->message : "could not be started");
}

static void (*const sentences[RUNNER_REASON_COUNT])(struct err *, const struct runner_exit *,
                                                    int) = {
    [RUNNER_EXITED] = exited, [RUNNER_SIGNALLED] = signalled, [RUNNER_OOM] = oom,
    [RUNNER_HUNG] = hung,     [RUNNER_STOPPED] = stopped,     [RUNNER_EXEC_FAILED] = exec_failed,
};

/* The worker's own words, from the `exit` object that journal.c has kept. */
static void reported(struct err *why, const json_t *said)
{
    const char *path = json_string_value(json_object_get(said, "path"));
    const char *message = json_string_value(json_object_get(said, "message"));
    const char *code = json_string_value(json_object_get(said, "code"));
    err_at(why, err_from_name(code != NULL ? code : ""), path != NULL ? path : "", "%s",
           message != NULL ? message : "failed");
}

void verdict_reach(const struct job_record *record, const struct runner_exit *ended, int grace_s,
                   struct verdict *ret_verdict)
{
    *ret_verdict = (struct verdict){.state = STATE_FAILED, .why = ERR_INIT};
    struct err *why = &ret_verdict->why;
    if (record->outcome == OUTCOME_DONE && ended->status == 0 && ended->signal == 0) {
        ret_verdict->state = STATE_COMPLETED;
    } else if (record->state == STATE_STOPPING) {
        ret_verdict->state = record->stop == STOP_TIME_LIMIT ? STATE_TIMED_OUT : STATE_CANCELLED;
        err_set(why, ERR_CANCELLED, "%s", record->reason != NULL ? record->reason : "cancelled");
    } else if (record->outcome == OUTCOME_FAILED) {
        reported(why, record->exit);
    } else {
        sentences[ended->reason](why, ended, grace_s);
    }
}

static json_t *number_or_null(int value, int none)
{
    return value == none ? json_null() : json_integer(value);
}

static json_t *text_or_null(const char *text)
{
    return text == NULL || text[0] == '\0' ? json_null() : json_string(text);
}

json_t *verdict_json(const struct verdict *verdict, const struct runner_exit *ended)
{
    const struct err *why = &verdict->why;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "status",
                     ended != NULL ? number_or_null(ended->status, -1) : json_null(), "signal",
                     ended != NULL ? number_or_null(ended->signal, 0) : json_null(), "reason",
                     text_or_null(ended != NULL ? reason_names[ended->reason] : NULL), "code",
                     text_or_null(why->code != 0 ? err_name(why->code) : NULL), "message",
                     text_or_null(why->message), "path", text_or_null(why->path));
}
