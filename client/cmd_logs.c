/* cmd_logs.c: trainctl logs. What the job printed goes out byte for byte. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base64.h"
#include "client/ctl.h"
#include "client/follow.h"
#include "client/record.h"

/* A piece of the log: {"offset", "next", "data", "encoding", "eof"}. */

static int print_bytes(const char *data, size_t size, bool base64, struct err *err)
{
    char *decoded = NULL;
    int rc = 0;
    if (base64) {
        decoded = malloc(size + 1);
        if (decoded == NULL)
            return err_set(err, ERR_NOMEM, "out of memory");
        if (!base64_decode(data, size, decoded, &size))
            rc = err_set(err, ERR_PARSE, "traind sent a piece of the log that is not Base64");
        data = decoded;
    }
    if (rc == 0 && (fwrite(data, 1, size, stdout) != size || fflush(stdout) != 0))
        rc = err_errno(err, errno, "cannot write to standard output");
    free(decoded);
    return rc;
}

static int print_piece(const struct ctl *ctl, const json_t *piece, struct err *err)
{
    const json_t *data = json_object_get(piece, "data");
    const char *encoding = json_string_value(json_object_get(piece, "encoding"));
    if (args_has(&ctl->args, OPT_JSON))
        return ctl_print_json(piece, err);
    if (!json_is_string(data))
        return err_set(err, ERR_PARSE, "traind sent a piece of the log without data");
    return print_bytes(json_string_value(data), json_string_length(data),
                       encoding != NULL && strcmp(encoding, "base64") == 0, err);
}

static bool at_end(const json_t *piece)
{
    return json_is_true(json_object_get(piece, "eof"));
}

/* Prints the piece from *offset on and moves it. 1: there may be more; 0: that was all. */
static int next_piece(struct ctl *ctl, int64_t id, json_int_t *offset, bool follow, struct err *err)
{
    json_t *piece;
    json_t *params =
        json_pack("{s:I, s:I, s:b}", "id", (json_int_t)id, "offset", *offset, "follow", follow);
    int rc = ctl_call(ctl, METHOD_JOB_LOGS, params, &piece, err);
    if (rc < 0)
        return rc;
    json_int_t next = json_integer_value(json_object_get(piece, "next"));
    bool more = next > *offset && !at_end(piece);
    *offset = next;
    rc = print_piece(ctl, piece, err);
    more = follow ? !at_end(piece) : more;
    json_decref(piece);
    return rc < 0 ? rc : more;
}

/* 1: go on; 0: the end. */
static int take_piece(struct ctl *ctl, json_t *notification, struct err *err)
{
    const char *method = json_string_value(json_object_get(notification, "method"));
    const json_t *piece = json_object_get(notification, "params");
    if (method == NULL || strcmp(method, "job.log") != 0)
        return 1;
    int rc = print_piece(ctl, piece, err);
    return rc < 0 ? rc : !at_end(piece);
}

static int follow_pieces(struct ctl *ctl, struct err *err)
{
    for (;;) {
        json_t *notification;
        int event = conn_next(ctl->conn, -1, &notification, err);
        if (event < 0)
            return event;
        if (event == CONN_INTERRUPT)
            return err_set(err, ERR_CANCELLED, "interrupted");
        if (event == CONN_NO_READER) {
            ctl->status = STATUS_FAILED;
            return 0;
        }
        if (event != CONN_NOTIFICATION)
            continue;
        int rc = take_piece(ctl, notification, err);
        json_decref(notification);
        if (rc <= 0)
            return rc;
    }
}

/* A followed job that did not complete is this command's failure too. */
static int check_end(struct ctl *ctl, int64_t id, struct err *err)
{
    json_t *result;
    struct record record;
    int rc =
        ctl_call(ctl, METHOD_JOB_WAIT, json_pack("{s:[I]}", "ids", (json_int_t)id), &result, err);
    if (rc < 0)
        return rc;
    record_read(json_array_get(json_object_get(result, "jobs"), 0), &record);
    if (record.state != STATE_COMPLETED)
        ctl->status = STATUS_FAILED;
    json_decref(result);
    return 0;
}

static int follow_log(struct ctl *ctl, int64_t id, struct err *err)
{
    json_int_t offset = 0;
    int rc = ctl_connect(ctl, err);
    if (rc == 0)
        rc = conn_watch_signals(ctl->conn, err);
    if (rc == 0)
        rc = next_piece(ctl, id, &offset, true, err);
    if (rc > 0)
        rc = follow_pieces(ctl, err);
    if (rc == 0 && ctl->status == 0)
        rc = check_end(ctl, id, err);
    if (rc == ERR_CANCELLED) {
        json_t *ids = json_pack("[I]", (json_int_t)id);
        follow_detached(ctl, "logs -f", ids);
        json_decref(ids);
        rc = 0;
    }
    return rc;
}

int cmd_logs(struct ctl *ctl, struct err *err)
{
    int64_t id;
    json_int_t offset = 0;
    int rc = args_id(ctl->args.words[0], &id, err);
    if (rc < 0)
        return rc;
    if (args_has(&ctl->args, OPT_FOLLOW))
        return follow_log(ctl, id, err);
    do
        rc = next_piece(ctl, id, &offset, false, err);
    while (rc > 0);
    return rc;
}
