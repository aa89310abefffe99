/* cmd_drain.c: trainctl drain and resume. */
#include <string.h>

#include "client/ctl.h"

/* The command's words as names of devices; "all" stands for no list. NULL without memory. */
static json_t *names(const struct ctl *ctl)
{
    const struct args *args = &ctl->args;
    json_t *list = json_array();
    if (args->n_words == 1 && strcmp(args->words[0], "all") == 0) {
        json_decref(list);
        return json_object();
    }
    for (size_t i = 0; i < args->n_words; i++)
        json_array_append_new(list, json_string(args->words[i]));
    return json_pack("{s:o}", "devices", list);
}

static int change(struct ctl *ctl, enum method method, struct err *err)
{
    json_t *result, *params = names(ctl);
    const char *reason = ctl->args.values[OPT_REASON];
    if (params != NULL && reason != NULL)
        json_object_set_new(params, "reason", json_string(reason));
    int rc = ctl_call(ctl, method, params, &result, err);
    if (rc < 0)
        return rc;
    rc = ctl_print_devices(ctl, result, err);
    json_decref(result);
    return rc;
}

int cmd_drain(struct ctl *ctl, struct err *err)
{
    return change(ctl, METHOD_DEVICE_DRAIN, err);
}

int cmd_resume(struct ctl *ctl, struct err *err)
{
    return change(ctl, METHOD_DEVICE_RESUME, err);
}
