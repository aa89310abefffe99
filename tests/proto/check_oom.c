/* Every allocation of proto and jansson fails in turn: an error, no crash, nothing half-done. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job.h"
#include "proto/job_schema.h"
#include "proto/json.h"
#include "proto/methods.h"
#include "proto/report.h"
#include "proto/rpc.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"
#include "tests/proto/jobs.h"

/* One attempt with an allocation failing: ERR_NOMEM, or 0. Check itself allocates, so an attempt
 * does not assert: it gives ERR_INTERNAL. */
typedef int attempt(void);

static struct job *job; /* for the attempts that dump */
static struct err err;

static int parsed(int rc, struct job *ret_job)
{
    if ((rc == 0) != (ret_job != NULL))
        rc = ERR_INTERNAL;
    job_free(ret_job);
    return rc;
}

/* Only short words: jansson 2.14 does not notice that the buffer of a word could not grow beyond 16
 * bytes (lex_save in load.c), and then reads on behind it. */
static int try_parse(void)
{
    static const char text[] =
        "{\"version\": 1, \"model\": {\"input\": {\"shape\": [1, 8, 8]}, \"layers\": ["
        "{\"type\": \"Conv2d\", \"name\": \"a.b\", \"out_channels\": 2, \"kernel_size\": [3, 3]},"
        "{\"type\": \"ReLU\"}, {\"type\": \"Add\", \"inputs\": [\"a.b\", \"1\"]}]},"
        "\"data\": {\"train\": {\"format\": \"idx\", \"inputs\": \"i\", \"targets\": \"t\"},"
        "\"transform\": {\"std\": [1, 2]}}, \"loss\": {\"type\": \"MSELoss\"},"
        "\"optimizer\": {\"type\": \"SGD\", \"lr\": 1}, \"train\": {\"epochs\": 1, \"batch_size\": "
        "1},"
        "\"parallel\": {\"mode\": \"replicate\", \"devices\": [\"cpu:0\", \"cpu:1\"]}}";
    struct job *result = NULL;
    int rc = job_parse(text, sizeof text - 1, &result, &err);
    return parsed(rc, result);
}

static int try_value(void)
{
    static json_t *value;
    if (value == NULL)
        value = json_loads(jobs_full, 0, NULL);
    struct job *result = NULL;
    int rc = job_from_json(value, &result, &err);
    return parsed(rc, result);
}

static int try_stages(void)
{
    static json_t *value;
    if (value == NULL) {
        value = json_loads(jobs_digits, 0, NULL);
        json_t *parallel = json_loads("{\"mode\": \"stages\", \"stages\": ["
                                      "{\"begin\": \"conv1\", \"devices\": [\"cpu:1\"]},"
                                      "{\"begin\": \"fc\", \"devices\": [\"cpu\"]}]}",
                                      0, NULL);
        json_object_set_new(value, "parallel", parallel);
    }
    struct job *result = NULL;
    int rc = job_from_json(value, &result, &err);
    return parsed(rc, result);
}

static int try_preset(void)
{
    static json_t *args;
    if (args == NULL)
        args = json_pack("{s:b}", "zero_init_residual", 1);
    json_t *model = NULL;
    int rc = job_preset("resnet18", args, &model, &err);
    if ((rc == 0) != (model != NULL))
        rc = ERR_INTERNAL;
    json_decref(model);
    return rc;
}

static int from_pointer(const void *result)
{
    return result != NULL ? 0 : ERR_NOMEM;
}

static int try_dump(void)
{
    json_t *dump = job_dump(job);
    json_decref(dump);
    return from_pointer(dump);
}

static int try_schema(void)
{
    json_t *schema = job_schema();
    json_decref(schema);
    return from_pointer(schema);
}

static int try_line(void)
{
    static json_t *value;
    if (value == NULL)
        value = json_pack("{s:[f, i], s:s}", "a", 0.1, 3, "b", "c");
    char *line = json_line(value);
    free(line);
    return from_pointer(line);
}

static int try_request(void)
{
    static const char line[] =
        "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"job.show\", \"params\": {\"id\": 7}}";
    struct rpc_request request;
    int rc = rpc_request_parse(line, sizeof line - 1, &request, &err);
    rpc_request_done(&request);
    return rc;
}

static int try_bare_request(void)
{
    static const char line[] = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"server.info\"}";
    struct rpc_request request;
    int rc = rpc_request_parse(line, sizeof line - 1, &request, &err);
    rpc_request_done(&request);
    return rc;
}

static int try_framer(void)
{
    struct rpc_framer framer = {0};
    int rc = 0;
    for (int i = 0; rc == 0 && i < 4; i++)
        rc = rpc_framer_feed(&framer, jobs_full, sizeof jobs_full - 1, &err);
    rpc_framer_done(&framer);
    return rc;
}

static int try_error_reply(void)
{
    struct err sent = {ERR_JOB_INVALID, "/model", "wrong"};
    json_t *reply = rpc_error_new(NULL, &sent);
    json_decref(reply);
    return from_pointer(reply);
}

static int try_messages(void)
{
    static json_t *params;
    if (params == NULL)
        params = json_pack("{s:i}", "id", 7);
    json_t *messages[] = {rpc_request_new(1, "job.show", params),
                          rpc_notification_new("job.event", params), rpc_result_new(NULL, params)};
    int rc = 0;
    for (size_t i = 0; i < 3; i++) {
        rc = messages[i] == NULL ? ERR_NOMEM : rc;
        json_decref(messages[i]);
    }
    return params->refcount == 1 ? rc : ERR_INTERNAL;
}

static int try_describe(void)
{
    json_t *described = method_describe();
    json_decref(described);
    return from_pointer(described);
}

static int try_report(void)
{
    static const char line[] = "{\"type\":\"done\",\"step\":9,\"weights\":\"w\",\"accuracy\":0.75,"
                               "\"confusion\":[[3,0],[1,4]]}";
    struct report report;
    int rc = report_parse(line, sizeof line - 1, &report, &err);
    if (rc != 0)
        return rc;
    char *text = report_format(&report);
    report_done(&report);
    free(text);
    return from_pointer(text);
}

static int try_failure(void)
{
    static const struct report report = {.type = REPORT_FAILED, .err = {ERR_IO, "/a", "no disk"}};
    char *text = report_format(&report);
    free(text);
    return from_pointer(text);
}

static attempt *const attempts[] = {
    try_parse,    try_stages,       try_value,  try_dump,     try_schema,
    try_line,     try_request,      try_framer, try_describe, try_error_reply,
    try_messages, try_bare_request, try_report, try_failure,  try_preset,
};

START_TEST(every_allocation_fails_in_turn)
{
    /* FEW: more allocations than any attempt makes. Behind the first ALL rows are like those before
     * them: every eleventh is enough, and a sanitizer has the time. */
    enum { FEW = 40000, ALL = 2000, STRIDE = 11 };
    ck_assert_int_eq(job_parse(jobs_full, sizeof jobs_full - 1, &job, &err), 0);
    ck_assert_int_eq(attempts[_i](), 0); /* what an attempt keeps is made now */
    long n = 1;
    for (;; n += n < ALL ? 1 : STRIDE) {
        ck_assert_int_lt(n, FEW);
        oom_arm(n);
        int rc = attempts[_i]();
        if (!oom_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == ERR_NOMEM, "allocation %ld: %d (%s)", n, rc, err.message);
    }
    ck_assert_int_gt(n, 1);
    job_free(job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proto/oom");
    TCase *tcase = checks_case(suite, "oom", 240);
    tcase_add_loop_test(tcase, every_allocation_fails_in_turn, 0,
                        sizeof attempts / sizeof attempts[0]);
    return checks_run(suite);
}
