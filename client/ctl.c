/* ctl.c: see ctl.h. */
#include "client/ctl.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/terminal.h"
#include "proto/json.h"

int ctl_connect(struct ctl *ctl, struct err *err)
{
    char path[256];
    if (ctl->conn != NULL)
        return 0;
    int rc = conn_path(ctl->args.values[OPT_SOCKET], path, sizeof path, err);
    return rc < 0 ? rc : conn_open(path, &ctl->conn, err);
}

int ctl_call(struct ctl *ctl, enum method method, json_t *params, json_t **ret_result,
             struct err *err)
{
    int rc = ctl_connect(ctl, err);
    if (rc == 0)
        return conn_call(ctl->conn, method, params, ret_result, err);
    json_decref(params);
    return rc;
}

void ctl_disconnect(struct ctl *ctl)
{
    conn_close(ctl->conn);
    ctl->conn = NULL;
}

int ctl_print(struct text *text, struct err *err)
{
    int rc = terminal_write(text, err);
    text_done(text);
    return rc;
}

int ctl_print_json(const json_t *value, struct err *err)
{
    struct text text = {0};
    char *line = json_line(value);
    if (line == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    text_json(&text, line);
    text_add(&text, "\n");
    free(line);
    return ctl_print(&text, err);
}

int ctl_subcommand(struct ctl *ctl, const struct subcommand *table, struct err *err)
{
    enum { MOST = 8 };
    const char *names[MOST];
    size_t n = 0;
    const struct args *args = &ctl->args;
    for (; table[n].name != NULL && n < MOST; n++) {
        names[n] = table[n].name;
        if (strcmp(args->words[0], table[n].name) == 0 && args->n_words == table[n].words + 1)
            return table[n].run(ctl, args->words + 1, err);
        if (strcmp(args->words[0], table[n].name) == 0)
            return err_set(err, ERR_USAGE,
                           "%s %s takes %zu word%s, found %zu: see `trainctl help %s`",
                           args->command, names[n], table[n].words, table[n].words == 1 ? "" : "s",
                           args->n_words - 1, args->command);
    }
    const char *near = json_nearest(args->words[0], names, n);
    return err_set(err, ERR_USAGE, "there is no command '%s %s'%s%s%s; see `trainctl help %s`",
                   args->command, args->words[0], near != NULL ? ", did you mean '" : "",
                   near != NULL ? near : "", near != NULL ? "'?" : "", args->command);
}

int ctl_ids(const struct ctl *ctl, json_t **ret_ids, struct err *err)
{
    json_t *ids = json_array();
    int rc = ids != NULL ? 0 : err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < ctl->args.n_words && rc == 0; i++) {
        int64_t id;
        rc = args_id(ctl->args.words[i], &id, err);
        if (rc == 0 && json_array_append_new(ids, json_integer(id)) < 0)
            rc = err_set(err, ERR_NOMEM, "out of memory");
    }
    if (rc < 0)
        json_decref(ids);
    else
        *ret_ids = ids;
    return rc;
}

const char *ctl_user(int64_t uid, char buf[static CTL_USER_SIZE])
{
    const struct passwd *user = getpwuid((uid_t)uid);
    if (user != NULL)
        snprintf(buf, CTL_USER_SIZE, "%s", user->pw_name);
    else
        snprintf(buf, CTL_USER_SIZE, "%" PRId64, uid);
    return buf;
}
