/* cmd_submit.c: trainctl submit. The document is checked here first, with the parser that the
 * daemon has too. A random key makes the submission repeatable: when the connection breaks before
 * the answer came, the same key is sent again, and the daemon queues the job once. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "client/ctl.h"
#include "client/follow.h"
#include "client/submit.h"

enum { RETRIES = 20, RETRY_MS = 250, KEY_BYTES = 16 };

static int make_key(char key[static 2 * KEY_BYTES + 1], struct err *err)
{
    unsigned char bytes[KEY_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_errno(err, errno, "getrandom");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(key + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* Sends the job until it is answered. A daemon that was never there is reported at once, one that
 * went away (a restart) is given five seconds. */
static int send_job(struct ctl *ctl, const char *cwd, const char *key, json_t **ret_result,
                    struct err *err)
{
    bool was_there = false;
    for (int i = 0;; i++) {
        json_t *params =
            json_pack("{s:O, s:s, s:s}", "job", ctl->document.root, "cwd", cwd, "key", key);
        int rc = ctl_call(ctl, METHOD_JOB_SUBMIT, params, ret_result, err);
        was_there |= ctl->conn != NULL;
        if (rc != ERR_UNREACHABLE || !was_there || i == RETRIES)
            return rc;
        ctl_disconnect(ctl);
        poll(NULL, 0, RETRY_MS);
    }
}

int submit_document(struct ctl *ctl, json_t **ret_result, struct err *err)
{
    char cwd[PATH_MAX], key[2 * KEY_BYTES + 1];
    json_t *result;
    if (getcwd(cwd, sizeof cwd) == NULL)
        return err_errno(err, errno, "cannot tell the current directory");
    int rc = make_key(key, err);
    if (rc == 0)
        rc = send_job(ctl, cwd, key, &result, err);
    if (rc < 0)
        return rc;
    if (!json_is_integer(json_object_get(result, "id"))) {
        json_decref(result);
        return err_set(err, ERR_PARSE, "traind's answer has no job id");
    }
    *ret_result = result;
    return 0;
}

int cmd_submit(struct ctl *ctl, struct err *err)
{
    json_t *result;
    int rc = document_read(ctl->args.words[0], &ctl->document, err);
    if (rc == 0)
        rc = submit_document(ctl, &result, err);
    if (rc < 0)
        return rc;
    json_t *id = json_object_get(result, "id");
    rc = ctl_print_json(args_has(&ctl->args, OPT_JSON) ? result : id, err);
    if (rc == 0 && args_has(&ctl->args, OPT_WATCH))
        rc = follow_jobs(ctl, json_pack("{s:[O]}", "ids", id), err);
    json_decref(result);
    return rc;
}
