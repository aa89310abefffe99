/* cmd_info.c: trainctl info. */
#include "client/ctl.h"
#include "client/render/units.h"

static void add_jobs(struct text *text, const struct style *style, const json_t *jobs)
{
    const char *state, *between = "";
    json_t *count;
    text_add(text, "jobs     ");
    json_object_foreach((json_t *)jobs, state, count)
    {
        if (json_integer_value(count) == 0)
            continue;
        text_fmt(text, "%s%" JSON_INTEGER_FORMAT " ", between, json_integer_value(count));
        text_safe(text, style, state);
        between = ", ";
    }
    text_add(text, between[0] == '\0' ? "none\n" : "\n");
}

static int print_info(const struct ctl *ctl, const json_t *info, struct err *err)
{
    char buf[UNITS_SIZE];
    struct text text = {0};
    const json_t *devices = json_object_get(info, "devices");
    text_add(&text, "traind   ");
    text_safe(&text, &ctl->style, json_string_value(json_object_get(info, "version")));
    text_fmt(&text,
             ", protocol %" JSON_INTEGER_FORMAT ", process %" JSON_INTEGER_FORMAT ", up %s%s\n",
             json_integer_value(json_object_get(info, "protocol")),
             json_integer_value(json_object_get(info, "pid")),
             units_duration(json_number_value(json_object_get(info, "uptime")), buf),
             json_is_true(json_object_get(info, "user_mode")) ? ", a user's own" : "");
    text_fmt(&text, "you      uid %" JSON_INTEGER_FORMAT "%s\n",
             json_integer_value(json_object_get(info, "uid")),
             json_is_true(json_object_get(info, "administrator")) ? ", an administrator" : "");
    text_fmt(&text, "devices  %" JSON_INTEGER_FORMAT ", %" JSON_INTEGER_FORMAT " free\n",
             json_integer_value(json_object_get(devices, "total")),
             json_integer_value(json_object_get(devices, "free")));
    add_jobs(&text, &ctl->style, json_object_get(info, "jobs"));
    return ctl_print(&text, err);
}

int cmd_info(struct ctl *ctl, struct err *err)
{
    json_t *info;
    int rc = ctl_call(ctl, METHOD_SERVER_INFO, json_object(), &info, err);
    if (rc < 0)
        return rc;
    rc = args_has(&ctl->args, OPT_JSON) ? ctl_print_json(info, err) : print_info(ctl, info, err);
    json_decref(info);
    return rc;
}
