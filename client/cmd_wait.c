/* cmd_wait.c: trainctl wait. Silent: the exit status is the answer. */
#include "client/ctl.h"
#include "client/record.h"

/* With --any only the jobs that have ended count. */
static bool all_completed(const json_t *result, bool any)
{
    size_t i;
    json_t *job;
    json_array_foreach(json_object_get(result, "jobs"), i, job)
    {
        struct record record;
        record_read(job, &record);
        if (record.state != STATE_COMPLETED && (!any || record_ended(&record)))
            return false;
    }
    return !json_is_true(json_object_get(result, "timed_out"));
}

int cmd_wait(struct ctl *ctl, struct err *err)
{
    json_t *ids, *result;
    double seconds = 0;
    bool any = args_has(&ctl->args, OPT_ANY), limited = args_has(&ctl->args, OPT_TIMEOUT);
    int rc = limited ? args_seconds(&ctl->args, OPT_TIMEOUT, &seconds, err) : 0;
    if (rc == 0)
        rc = ctl_ids(ctl, &ids, err);
    if (rc < 0)
        return rc;
    json_t *params = json_pack("{s:o, s:b, s:o*}", "ids", ids, "any", any, "timeout",
                               limited ? json_real(seconds) : NULL);
    rc = ctl_call(ctl, METHOD_JOB_WAIT, params, &result, err);
    if (rc < 0)
        return rc;
    if (!all_completed(result, any))
        ctl->status = STATUS_FAILED;
    if (args_has(&ctl->args, OPT_JSON))
        rc = ctl_print_json(result, err);
    json_decref(result);
    return rc;
}
