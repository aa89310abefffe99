/* cmd_change.c: trainctl cancel, hold and release. */
#include "client/ctl.h"
#include "client/record.h"

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

static int change(struct ctl *ctl, enum method method, struct err *err)
{
    json_t *ids, *result;
    int rc = ctl_ids(ctl, &ids, err);
    if (rc < 0)
        return rc;
    json_t *params = json_pack("{s:o, s:s*}", "ids", ids, "reason", ctl->args.values[OPT_REASON]);
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
    return change(ctl, METHOD_JOB_CANCEL, err);
}

int cmd_hold(struct ctl *ctl, struct err *err)
{
    return change(ctl, METHOD_JOB_HOLD, err);
}

int cmd_release(struct ctl *ctl, struct err *err)
{
    return change(ctl, METHOD_JOB_RELEASE, err);
}
