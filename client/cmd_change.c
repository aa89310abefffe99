/* cmd_change.c: trainctl cancel, hold, release and update. */
#include "client/ctl.h"
#include "client/record.h"
#include "proto/json.h"

static int print_jobs(const struct ctl *ctl, const json_t *result, struct err *err)
{
    struct text text = {0};
    size_t i;
    json_t *job;
    json_array_foreach(json_object_get(result, "jobs"), i, job)
    {
        struct record record;
        record_read(job, &record);
        text_fmt(&text, "job %lld: ", (long long)record.id);
        text_safe(&text, &ctl->style, record.state_text);
        text_add(&text, "\n");
    }
    return ctl_print(&text, err);
}

/* `more` (consumed): what the method takes beside ids and a reason; NULL: no memory. */
static int change(struct ctl *ctl, enum method method, json_t *more, struct err *err)
{
    json_t *ids, *result;
    int rc = ctl_ids(ctl, &ids, err);
    if (rc < 0) {
        json_decref(more);
        return rc;
    }
    json_t *params = json_pack("{s:o, s:s*}", "ids", ids, "reason", ctl->args.values[OPT_REASON]);
    if (more == NULL || json_object_update(params, more) < 0) {
        json_decref(params);
        params = NULL;
    }
    json_decref(more);
    rc = ctl_call(ctl, method, params, &result, err);
    if (rc < 0)
        return rc;
    rc =
        args_has(&ctl->args, OPT_JSON) ? ctl_print_json(result, err) : print_jobs(ctl, result, err);
    json_decref(result);
    return rc;
}

int cmd_cancel(struct ctl *ctl, struct err *err)
{
    return change(ctl, METHOD_JOB_CANCEL, json_object(), err);
}

int cmd_hold(struct ctl *ctl, struct err *err)
{
    return change(ctl, METHOD_JOB_HOLD, json_object(), err);
}

int cmd_release(struct ctl *ctl, struct err *err)
{
    return change(ctl, METHOD_JOB_RELEASE, json_object(), err);
}

int cmd_update(struct ctl *ctl, struct err *err)
{
    const struct args *args = &ctl->args;
    json_t *more = json_pack("{s:s*}", "time_limit", args->values[OPT_TIME_LIMIT]);
    int64_t priority;
    if (!args_has(args, OPT_PRIORITY))
        return change(ctl, METHOD_JOB_UPDATE, more, err);
    int rc = args_integer(args, OPT_PRIORITY, &priority, err);
    if (rc < 0) {
        json_decref(more);
        return rc;
    }
    more = json_put(more, "priority", json_integer((json_int_t)priority));
    return change(ctl, METHOD_JOB_UPDATE, more, err);
}
