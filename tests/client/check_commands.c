/* Every command end to end: the built trainctl through pipes against a scripted daemon. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/client/peer.h"
#include "tests/client/run.h"
#include "tests/lib/checks.h"

#define JOB                                                                                        \
    "{\"version\": 1, \"model\": {\"input\": {\"shape\": [5]}, \"layers\": [{\"type\": "           \
    "\"Linear\", "                                                                                 \
    "\"out_features\": 2}]}, \"data\": {\"train\": {\"format\": \"random\", \"samples\": 100}}, "  \
    "\"loss\": {\"type\": \"MSELoss\"}, \"optimizer\": {\"type\": \"SGD\", \"lr\": 0.1}, "         \
    "\"train\": "                                                                                  \
    "{\"epochs\": 1, \"batch_size\": 30}}\n"
#define START(steps) peer_start(steps, sizeof(steps) / sizeof *(steps))
#define EVENT(id, type, record)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"method\":\"job.event\",\"params\":{\"seq\":1,\"id\":" id               \
    ",\"type\":\"" type "\",\"time\":1,\"record\":" record "}}\n"
#define NOT_FOUND                                                                                  \
    "\"error\":{\"code\":-32030,\"message\":\"there is no job "                                    \
    "9\",\"data\":{\"name\":\"not_found\"}}"

static struct run run;

static const char *param(const json_t *requests, size_t i, const char *key)
{
    const json_t *params = json_object_get(json_array_get(requests, i), "params");
    return json_string_value(json_object_get(params, key));
}

/* Submitting */

START_TEST(submit)
{
    static const struct peer_step steps[] = {
        {.method = "job.submit", .reply = "\"result\":{\"id\":7,\"state\":\"queued\"}"}};
    struct peer *peer = START(steps);
    char cwd[4096];
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "submit -", JOB), 0);
    ck_assert_str_eq(run.text, "7\n");
    ck_assert_str_eq(run.errors, "");
    json_t *requests = peer_stop(peer);
    ck_assert_str_eq(param(requests, 0, "cwd"), getcwd(cwd, sizeof cwd));
    ck_assert_uint_eq(strlen(param(requests, 0, "key")), 32);
    json_t *sent = json_object_get(json_object_get(json_array_get(requests, 0), "params"), "job");
    json_t *written = json_loads(JOB, 0, NULL);
    ck_assert(json_equal(sent, written));
    json_decref(written);
    json_decref(requests);
}
END_TEST

/* The daemon goes away with the request; the same key is sent to the one that comes back. */
START_TEST(submit_again)
{
    static const struct peer_step steps[] = {
        {.method = "job.submit", .hang_up = true},
        {.method = "job.submit", .reply = "\"result\":{\"id\":7,\"state\":\"queued\"}"}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "submit --json -", JOB), 0);
    ck_assert_str_eq(run.text, "{\"id\":7,\"state\":\"queued\"}\n");
    json_t *requests = peer_stop(peer);
    ck_assert_str_eq(param(requests, 0, "key"), param(requests, 1, "key"));
    json_decref(requests);
}
END_TEST

START_TEST(submit_refused)
{
    static const struct peer_step steps[] = {
        {.method = "job.submit",
         .reply =
             "\"error\":{\"code\":-32016,\"message\":\"9 devices\\u001b[2J\",\"data\":{\"name\":"
             "\"device.unknown\",\"path\":\"/train/batch_size\"}}"}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "submit -", JOB), 1);
    ck_assert_str_eq(run.text, "");
    ck_assert_str_eq(run.errors, "trainctl: <stdin>:1:253: /train/batch_size: 9 devices?[2J\n");
    json_decref(peer_stop(peer));
}
END_TEST

/* Documents that never reach a daemon. */
static const struct {
    const char *document, *errors;
} broken[] = {
    {"{\"version\": 1,\n  \"model\": [1,}", "trainctl: <stdin>:2:15: "},
    {"{\n \"version\": 1,\n \"modle\": {}}", "trainctl: <stdin>:3:2: /modle: "},
    {"", "trainctl: <stdin>:1:1: "},
};

START_TEST(submit_broken)
{
    ck_assert_int_eq(run_command(&run, "/nowhere", "submit -", broken[_i].document), 1);
    ck_assert_msg(strncmp(run.errors, broken[_i].errors, strlen(broken[_i].errors)) == 0, "%s",
                  run.errors);
    ck_assert_str_eq(run.text, "");
}
END_TEST

/* Without any daemon: the parser and the worker that was built beside. */

START_TEST(check)
{
    ck_assert_int_eq(run_command(&run, "/nowhere", "check -", JOB), 0);
    ck_assert_str_eq(run.errors, "");
    ck_assert_ptr_eq(strstr(run.text, "<stdin>: ok (12 parameters, 4 steps, 1 device, "), run.text);
    ck_assert_int_eq(run_command(&run, "/nowhere", "check --json -", JOB), 0);
    ck_assert_ptr_eq(strstr(run.text, "{\"valid\":true,\"plan\":{"), run.text);
}
END_TEST

/* What only the worker can know is located in the document too. */
START_TEST(check_shapes)
{
    static const char job[] =
        "{\"version\": 1, \"model\": {\"input\": {\"shape\": [5]}, \"layers\": [\n"
        "  {\"type\": \"Linear\", \"in_features\": 4, \"out_features\": 2}]},\n"
        " \"data\": {\"train\": {\"format\": \"random\", \"samples\": 100}},\n"
        " \"loss\": {\"type\": \"MSELoss\"}, \"optimizer\": {\"type\": \"SGD\", \"lr\": 0.1},\n"
        " \"train\": {\"epochs\": 1, \"batch_size\": 30}}\n";
    ck_assert_int_eq(run_command(&run, "/nowhere", "check -", job), 1);
    ck_assert_ptr_eq(strstr(run.errors, "trainctl: <stdin>:2:"), run.errors);
    ck_assert_ptr_nonnull(strstr(run.errors, ": /model/layers/0"));
    ck_assert_str_eq(run.text, "");
}
END_TEST

START_TEST(plan)
{
    ck_assert_int_eq(run_command(&run, "/nowhere", "plan --cpu-devices 2 --devices cpu:1 -", JOB),
                     0);
    ck_assert_ptr_nonnull(strstr(run.text, "parameters  12\n"));
    ck_assert_ptr_nonnull(strstr(run.text, "steps       4, 4 an epoch\n"));
    ck_assert_ptr_nonnull(strstr(run.text, "\ncpu:1        30  "));
    ck_assert_ptr_nonnull(strstr(run.text, "\n0      Linear  [2]             12\n"));
    ck_assert_int_eq(run_command(&run, "/nowhere", "plan --devices cpu:99 -", JOB), 1);
    ck_assert_ptr_nonnull(strstr(run.errors, "cpu:99"));
}
END_TEST

/* Questions and changes */

START_TEST(list)
{
    static const struct peer_step steps[] = {
        {.method = "job.list",
         .reply = "\"result\":{\"next\":1,\"jobs\":[{\"id\":1,\"name\":\"a\\u001b[31m\",\"user\":0,"
                  "\"state\":\"completed\",\"started\":10,\"ended\":202,\"devices\":[\"cpu:0\"],"
                  "\"progress\":{\"accuracy\":0.97}}]}"},
        {.method = "job.list",
         .reply = "\"result\":{\"next\":null,\"jobs\":[{\"id\":2,\"user\":4294967000,\"state\":"
                  "\"queued\",\"reason\":\"behind job 1\",\"devices\":[],\"n_devices\":2}]}"}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "list --state queued,completed", NULL),
                     0);
    ck_assert_str_eq(run.text,
                     "ID  NAME       USER        STATE      DEVICES   TIME  STATUS\n"
                     " 1  a\\x1b[31m  root        completed  cpu:0    3m12s  accuracy 0.9700\n"
                     " 2  -          4294967000  queued     (2)          -  behind job 1\n");
    json_t *requests = peer_stop(peer);
    json_t *second = json_object_get(json_array_get(requests, 1), "params");
    ck_assert_int_eq(json_integer_value(json_object_get(second, "cursor")), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(second, "states")), 2);
    json_decref(requests);
}
END_TEST

START_TEST(show)
{
    static const struct peer_step steps[] = {
        {.method = "job.show",
         .reply =
             "\"result\":{\"id\":7,\"name\":\"x\",\"user\":0,\"state\":\"failed\",\"devices\":[],"
             "\"n_devices\":2,\"submitted\":1,\"exit\":{\"code\":\"data.invalid\",\"message\":"
             "\"truncated\",\"path\":\"\"},\"history\":[{\"time\":1,\"to\":\"queued\",\"actor\":0,"
             "\"reason\":null},{\"time\":2,\"to\":\"failed\",\"actor\":\"daemon\",\"reason\":\"r\"}"
             "]}"}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "show 7", NULL), 0);
    ck_assert_str_eq(run.text, "job         7\n"
                               "name        x\n"
                               "state       failed\n"
                               "user        root\n"
                               "devices     2 asked for\n"
                               "submitted   1970-01-01 00:00:01\n"
                               "exit        data.invalid: truncated\n"
                               "\n"
                               "1970-01-01 00:00:01  queued by uid 0\n"
                               "1970-01-01 00:00:02  failed by daemon: r\n");
    json_decref(peer_stop(peer));
}
END_TEST

START_TEST(devices)
{
    static const struct peer_step steps[] = {
        {.method = "device.list",
         .reply =
             "\"result\":{\"devices\":[{\"name\":\"cpu:0\",\"type\":\"cpu\",\"model\":\"EPYC\","
             "\"cores\":[0,1],\"memory_bytes\":1503238553,\"job\":7,\"state\":\"assigned\"},{"
             "\"name\":\"cpu:1\",\"cores\":[2],\"memory_bytes\":1024,\"job\":null,\"state\":"
             "\"free\",\"model\":\"EPYC\"}]}"}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "devices", NULL), 0);
    ck_assert_str_eq(run.text, "DEVICE  STATE     JOB  CORES   MEMORY  MODEL\n"
                               "cpu:0   assigned    7      2  1.4 GiB  EPYC\n"
                               "cpu:1   free        -      1  1.0 KiB  EPYC\n");
    json_decref(peer_stop(peer));
}
END_TEST

START_TEST(info)
{
    static const struct peer_step steps[] = {
        {.method = "server.info",
         .reply =
             "\"result\":{\"version\":\"0.1.0\",\"protocol\":1,\"uid\":0,\"user_mode\":true,"
             "\"administrator\":true,\"pid\":5,\"uptime\":61,\"devices\":{\"total\":2,\"free\":1},"
             "\"jobs\":{\"queued\":0,\"running\":1}}"}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "info", NULL), 0);
    ck_assert_str_eq(run.text, "traind   0.1.0, protocol 1, process 5, up 1m01s, a user's own\n"
                               "you      uid 0, an administrator\n"
                               "devices  2, 1 free\n"
                               "jobs     1 running\n");
    json_decref(peer_stop(peer));
}
END_TEST

/* wait is silent, and its status is the answer. */
static const struct {
    const char *command, *reply;
    int status;
} waits[] = {
    {"wait 1 2",
     "{\"jobs\":[{\"id\":1,\"state\":\"completed\"},{\"id\":2,\"state\":\"completed\"}]}", 0},
    {"wait 1 2", "{\"jobs\":[{\"id\":1,\"state\":\"completed\"},{\"id\":2,\"state\":\"failed\"}]}",
     1},
    {"wait --any 1 2",
     "{\"jobs\":[{\"id\":1,\"state\":\"completed\"},{\"id\":2,\"state\":\"running\"}]}", 0},
    {"wait --any 1 2",
     "{\"jobs\":[{\"id\":1,\"state\":\"lost\"},{\"id\":2,\"state\":\"running\"}]}", 1},
    {"wait --timeout 0.5 1", "{\"jobs\":[{\"id\":1,\"state\":\"running\"}],\"timed_out\":true}", 1},
};

START_TEST(waiting)
{
    char reply[512];
    struct peer_step step = {.method = "job.wait", .reply = reply};
    snprintf(reply, sizeof reply, "\"result\":%s", waits[_i].reply);
    struct peer *peer = peer_start(&step, 1);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), waits[_i].command, NULL),
                     waits[_i].status);
    ck_assert_str_eq(run.text, "");
    ck_assert_str_eq(run.errors, "");
    json_decref(peer_stop(peer));
}
END_TEST

START_TEST(error_statuses)
{
    static const struct peer_step missing[] = {{.method = "job.show", .reply = NOT_FOUND}};
    static const struct peer_step denied[] = {{.method = "job.cancel",
                                               .reply =
                                                   "\"error\":{\"code\":-32031,\"message\":\"not "
                                                   "yours\",\"data\":{\"name\":\"denied\"}}"}};
    static const struct peer_step gone[] = {{.method = "job.show", .hang_up = true}};
    struct peer *peer = START(missing);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "show 9 --json", NULL), 3);
    ck_assert_str_eq(run.errors, "trainctl: there is no job 9\n");
    ck_assert_str_eq(run.text, "{\"error\":{\"name\":\"not_found\",\"path\":\"\",\"message\":"
                               "\"there is no job 9\"}}\n");
    json_decref(peer_stop(peer));
    peer = START(denied);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "cancel 9", NULL), 4);
    json_decref(peer_stop(peer));
    peer = START(gone);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "show 9", NULL), 5);
    json_decref(peer_stop(peer));
}
END_TEST

START_TEST(no_daemon)
{
    char left_over[128];
    struct peer *peer = peer_start(NULL, 0);
    snprintf(left_over, sizeof left_over, "%s.old", peer_socket(peer));
    ck_assert_int_eq(link(peer_socket(peer), left_over), 0);
    json_decref(peer_stop(peer));
    ck_assert_int_eq(run_command(&run, "/nowhere/traind.sock", "list", NULL), 5);
    ck_assert_ptr_nonnull(strstr(run.errors, "no socket at /nowhere/traind.sock; start it with"));
    ck_assert_int_eq(run_command(&run, left_over, "list", NULL), 5);
    ck_assert_ptr_nonnull(strstr(run.errors, "nobody answers at"));
    unlink(left_over);
}
END_TEST

static const struct {
    const char *command, *errors;
} usage[] = {
    {"", "trainctl: what shall be done? See `trainctl help`\n"},
    {"lst", "trainctl: there is no command 'lst': did you mean 'list'?\n"},
    {"submit", "trainctl: submit needs FILE|-: trainctl submit FILE|-\n"},
    {"list x", "trainctl: list: there is a word too many: 'x'\n"},
    {"list --follow", "trainctl: list takes no --follow\n"},
    {"show x", "trainctl: 'x' is not a job's id: ids are numbers, as `trainctl list` shows them\n"},
    {"list --state dancing",
     "trainctl: --state: there is no state 'dancing'; allowed are held, queued, starting, running, "
     "stopping, preempted, completed, failed, cancelled, timed_out, lost\n"},
};

START_TEST(wrong_usage)
{
    ck_assert_int_eq(run_command(&run, "/nowhere", usage[_i].command, NULL), 2);
    ck_assert_str_eq(run.errors, usage[_i].errors);
}
END_TEST

START_TEST(help)
{
    ck_assert_int_eq(run_command(&run, "/nowhere", "--help", NULL), 0);
    ck_assert_ptr_nonnull(strstr(run.text, "  submit FILE|-    "));
    ck_assert_int_eq(run_command(&run, "/nowhere", "help logs", NULL), 0);
    ck_assert_ptr_nonnull(strstr(run.text, "-f, --follow"));
    ck_assert_int_eq(run_command(&run, "/nowhere", "version", NULL), 0);
    ck_assert_ptr_eq(strstr(run.text, "trainctl "), run.text);
}
END_TEST

/* Logs */

START_TEST(logs)
{
    static const struct peer_step steps[] = {
        {.method = "job.logs",
         .reply =
             "\"result\":{\"offset\":0,\"next\":3,\"data\":\"a\\u001bb\",\"encoding\":\"utf-8\","
             "\"eof\":false}"},
        {.method = "job.logs",
         .reply = "\"result\":{\"offset\":3,\"next\":6,\"data\":\"/wAK\",\"encoding\":\"base64\","
                  "\"eof\":true}"}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "logs 7", NULL), 0);
    ck_assert_uint_eq(run.used, 6);
    ck_assert_mem_eq(run.text, "a\033b\xff\0\n", 6);
    json_decref(peer_stop(peer));
}
END_TEST

#define PIECE(offset, next, data, eof)                                                             \
    "{\"jsonrpc\":\"2.0\",\"method\":\"job.log\",\"params\":{\"id\":7,\"offset\":" offset          \
    ",\"next\":" next ",\"data\":\"" data "\",\"encoding\":\"utf-8\",\"eof\":" eof "}}\n"

/* Followed to the end: the job failed, and so does the command. */
START_TEST(logs_followed)
{
    static const struct peer_step steps[] = {
        {.method = "job.logs",
         .reply = "\"result\":{\"offset\":0,\"next\":2,\"data\":\"a\\n\",\"encoding\":\"utf-8\","
                  "\"eof\":false}",
         .after = PIECE("2", "4", "b\\n", "false") PIECE("4", "6", "c\\n", "true")},
        {.method = "job.wait", .reply = "\"result\":{\"jobs\":[{\"id\":7,\"state\":\"failed\"}]}"}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "logs -f 7", NULL), 1);
    ck_assert_str_eq(run.text, "a\nb\nc\n");
    json_decref(peer_stop(peer));
}
END_TEST

/* Following */

#define QUEUED                                                                                     \
    "{\"id\":7,\"name\":\"d\",\"state\":\"queued\",\"reason\":\"behind job 6\",\"devices\":[]}"
#define STARTED                                                                                    \
    EVENT("7", "state", "{\"state\":\"running\",\"reason\":null,\"devices\":[\"cpu:0\"]}")
#define PROGRESS(step)                                                                             \
    EVENT("7", "progress",                                                                         \
          "{\"progress\":{\"resumed_step\":1,\"step\":" step ",\"steps\":100,\"loss\":0.5}}")

#define LAGGED                                                                                     \
    "{\"jsonrpc\":\"2.0\",\"method\":\"job.event\",\"params\":{\"seq\":1,\"type\":"                \
    "\"lagged\",\"time\":1}}\n"

START_TEST(watch)
{
    static const struct peer_step steps[] = {
        {.method = "job.watch",
         /* an event that overtakes the reply is not lost */
         .before = STARTED,
         .reply = "\"result\":{\"seq\":1,\"jobs\":[" QUEUED "]}",
         .after = PROGRESS("1") LAGGED PROGRESS("2") PROGRESS("50")
             EVENT("7", "validation", "{\"progress\":{\"epoch\":1,\"accuracy\":0.5}}")
         /* at once after it: not worth a line */
         EVENT("7", "validation", "{\"progress\":{\"epoch\":2,\"accuracy\":0.6}}")
             EVENT("7", "state", "{\"state\":\"completed\"}")},
        {.method = "job.show",
         .reply =
             "\"result\":{\"id\":7,\"state\":\"completed\",\"devices\":[\"cpu:0\"],\"progress\":{"
             "\"accuracy\":0.5},\"weights\":\"/w\"}"}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "watch 7", NULL), 0);
    ck_assert_str_eq(run.text, "job 7: queued: behind job 6\n"
                               "job 7: running on cpu:0\n"
                               "job 7: resumed after step 1\n"
                               "job 7: step 1/100 (1%), loss 0.5000\n"
                               "job 7: step 50/100 (50%), loss 0.5000\n"
                               "job 7: validation after epoch 1: accuracy 0.5000\n"
                               "job 7 completed on cpu:0\n"
                               "validation accuracy 0.5000\n"
                               "\n"
                               "weights: /w\n");
    json_decref(peer_stop(peer));
}
END_TEST

START_TEST(submit_and_watch_a_failure)
{
    static const struct peer_step steps[] = {
        {.method = "job.submit", .reply = "\"result\":{\"id\":7,\"state\":\"queued\"}"},
        {.method = "job.watch",
         .reply = "\"result\":{\"seq\":1,\"jobs\":[" QUEUED "]}",
         .after = EVENT("7", "state", "{\"state\":\"failed\"}")},
        {.method = "job.show",
         .reply =
             "\"result\":{\"id\":7,\"state\":\"failed\",\"exit\":{\"code\":\"loss.nan\",\"path\":"
             "\"/optimizer/lr\",\"message\":\"not finite\"}}"}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "submit -w -", JOB), 1);
    ck_assert_str_eq(run.text, "7\n"
                               "job 7: queued: behind job 6\n"
                               "job 7 failed\n"
                               "loss.nan: /optimizer/lr: not finite\n"
                               "its output: trainctl logs 7\n");
    json_decref(peer_stop(peer));
}
END_TEST

START_TEST(watch_as_json)
{
    static const struct peer_step steps[] = {
        {.method = "job.watch",
         .reply = "\"result\":{\"seq\":1,\"jobs\":[{\"id\":7,\"state\":\"running\"}]}",
         .after = LAGGED EVENT("7", "state", "{\"state\":\"completed\"}")},
        {.method = "job.show", .reply = "\"result\":{\"id\":7,\"state\":\"completed\"}"}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "watch 7 --json", NULL), 0);
    ck_assert_str_eq(run.text, "{\"id\":7,\"state\":\"running\"}\n"
                               "{\"seq\":1,\"type\":\"lagged\",\"time\":1}\n"
                               "{\"seq\":1,\"id\":7,\"type\":\"state\",\"time\":1,\"record\":"
                               "{\"state\":\"completed\"}}\n"
                               "{\"id\":7,\"state\":\"completed\"}\n");
    json_decref(peer_stop(peer));
}
END_TEST

/* Without ids: the caller's own that have not ended, and those that come meanwhile. */
START_TEST(watch_own)
{
    static const struct peer_step steps[] = {
        {.method = "job.watch",
         .reply = "\"result\":{\"seq\":1,\"jobs\":[{\"id\":3,\"state\":\"failed\"}," QUEUED "]}",
         .after = EVENT("8", "state", "{\"state\":\"queued\"}")},
        {.method = "job.show",
         .reply = "\"result\":{\"id\":8,\"state\":\"queued\",\"reason\":\"behind job 7\"}",
         .after = EVENT("7", "state", "{\"state\":\"completed\"}")},
        {.method = "job.show",
         .reply = "\"result\":{\"id\":7,\"state\":\"completed\"}",
         .after = EVENT("8", "state", "{\"state\":\"completed\"}")},
        {.method = "job.show", .reply = "\"result\":{\"id\":8,\"state\":\"completed\"}"}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "watch", NULL), 0);
    ck_assert_str_eq(run.text, "job 7: queued: behind job 6\n"
                               "job 8: queued: behind job 7\n"
                               "job 7 completed\n"
                               "job 8 completed\n");
    json_t *requests = peer_stop(peer);
    const json_t *params = json_object_get(json_array_get(requests, 0), "params");
    ck_assert_int_eq(json_integer_value(json_object_get(params, "user")), (long)getuid());
    json_decref(requests);
}
END_TEST

START_TEST(daemon_gone)
{
    static const struct peer_step steps[] = {
        {.method = "job.watch",
         .reply = "\"result\":{\"seq\":1,\"jobs\":[" QUEUED "]}",
         .after = STARTED,
         .hang_up = true}};
    struct peer *peer = START(steps);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "watch 7", NULL), 5);
    ck_assert_ptr_nonnull(strstr(run.errors,
                                 "closed the connection; the job goes on; come back with: "
                                 "trainctl watch 7\n"));
    json_decref(peer_stop(peer));
}
END_TEST

/* A pipe's reader that leaves ends the watch, also while nothing happens that could be written. */
START_TEST(no_reader)
{
    static const struct peer_step steps[] = {
        {.method = "job.watch", .reply = "\"result\":{\"seq\":1,\"jobs\":[" QUEUED "]}"}};
    struct peer *peer = START(steps);
    int status;
    run_start(&run, peer_socket(peer), "watch 7", NULL);
    run_until(&run, "behind job 6\n");
    close(run.out);
    ck_assert_int_eq(waitpid(run.pid, &status, 0), run.pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    close(run.in);
    close(run.errors_fd);
    json_decref(peer_stop(peer));
}
END_TEST

START_TEST(not_the_protocol)
{
    static const struct peer_step garbage[] = {
        {.method = "job.list", .before = "220 mail.example.org ESMTP\n"}};
    static const struct peer_step half[] = {{.method = "job.list",
                                             .before = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\"",
                                             .hang_up = true}};
    static const struct peer_step neither[] = {{.method = "job.list", .reply = "\"x\":1"}};
    struct peer *peer = START(garbage);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "list", NULL), 1);
    ck_assert_ptr_nonnull(strstr(run.errors, "does not speak its protocol"));
    json_decref(peer_stop(peer));
    peer = START(half);
    ck_assert_int_ne(run_command(&run, peer_socket(peer), "list", NULL), 0);
    json_decref(peer_stop(peer));
    peer = START(neither);
    ck_assert_int_eq(run_command(&run, peer_socket(peer), "list", NULL), 1);
    json_decref(peer_stop(peer));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, submit);
    tcase_add_test(tcase, submit_again);
    tcase_add_test(tcase, submit_refused);
    tcase_add_loop_test(tcase, submit_broken, 0, sizeof broken / sizeof *broken);
    tcase_add_test(tcase, check);
    tcase_add_test(tcase, check_shapes);
    tcase_add_test(tcase, plan);
    tcase_add_test(tcase, list);
    tcase_add_test(tcase, show);
    tcase_add_test(tcase, devices);
    tcase_add_test(tcase, info);
    tcase_add_loop_test(tcase, waiting, 0, sizeof waits / sizeof *waits);
    tcase_add_test(tcase, error_statuses);
    tcase_add_test(tcase, no_daemon);
    tcase_add_loop_test(tcase, wrong_usage, 0, sizeof usage / sizeof *usage);
    tcase_add_test(tcase, help);
    tcase_add_test(tcase, logs);
    tcase_add_test(tcase, logs_followed);
    tcase_add_test(tcase, watch);
    tcase_add_test(tcase, submit_and_watch_a_failure);
    tcase_add_test(tcase, watch_as_json);
    tcase_add_test(tcase, watch_own);
    tcase_add_test(tcase, daemon_gone);
    tcase_add_test(tcase, no_reader);
    tcase_add_test(tcase, not_the_protocol);
}

int main(void)
{
    Suite *suite = suite_create("client/commands");
    add_tests(checks_case(suite, "commands", 20));
    return checks_run(suite);
}
