/* trainctl plot, on files of metrics and on a job of a scripted daemon. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client/peer.h"
#include "tests/client/run.h"
#include "tests/lib/checks.h"

static struct run run;

static const char *place(const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", checks_scratch(), name);
    return path;
}

static void write_metrics(const char *name, const char *rows)
{
    FILE *out = fopen(place(name), "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fputs(rows, out), 0);
    ck_assert_int_eq(fclose(out), 0);
}

static const char rows[] =
    "{\"step\": 1, \"epoch\": 1, \"loss\": 4, \"lr\": 0.5, \"samples\": 8, \"seconds\": 2}\n"
    "{\"step\": 2, \"epoch\": 1, \"loss\": 1, \"lr\": 0.25, \"samples\": 8, \"seconds\": 1}\n"
    "{\"step\": 2, \"epoch\": 1, \"validation_loss\": 2, \"accuracy\": 0.75}\n"
    "{\"step\": 3, \"epoch\": 1, \"lo"; /* a row that is being written */

static char *contents(const char *path, size_t *ret_size)
{
    static char bytes[1 << 20];
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "there is no %s", path);
    *ret_size = fread(bytes, 1, sizeof bytes - 1, in);
    bytes[*ret_size] = '\0';
    fclose(in);
    return bytes;
}

static int command(const char *socket, const char *format, const char *a, const char *b)
{
    char text[2048];
    snprintf(text, sizeof text, format, a, b);
    return run_command(&run, socket, text, "");
}

static void says(const char *text, const char *wanted)
{
    ck_assert_msg(strstr(text, wanted) != NULL, "«%s» is not in «%s»", wanted, text);
}

START_TEST(json_has_every_point)
{
    write_metrics("metrics.jsonl", rows);
    ck_assert_int_eq(command("/nowhere", "plot --json %s", checks_scratch(), ""), 0);
    ck_assert_str_eq(
        run.text,
        "{\"chart\":\"Loss\",\"name\":\"training\",\"points\":[[1.0,4.0],[2.0,1.0]]}\n"
        "{\"chart\":\"Loss\",\"name\":\"validation\",\"points\":[[2.0,2.0]]}\n"
        "{\"chart\":\"Validation accuracy\",\"name\":\"accuracy\",\"points\":[[2.0,0.75]]}\n"
        "{\"chart\":\"Learning rate\",\"name\":\"lr\",\"points\":[[1.0,0.5],[2.0,0.25]]}\n"
        "{\"chart\":\"Throughput\",\"name\":\"throughput\",\"points\":[[1.0,4.0],[2.0,8.0]]}\n");
    ck_assert_int_eq(command("/nowhere", "plot --json --of lr %s", place("metrics.jsonl"), ""), 0);
    ck_assert_str_eq(run.text, "{\"chart\":\"Learning rate\",\"name\":\"lr\",\"points\":[[1.0,0.5],"
                               "[2.0,0.25]]}\n");
}
END_TEST

START_TEST(a_terminal_shows_curves)
{
    write_metrics("metrics.jsonl", rows);
    ck_assert_int_eq(command("/nowhere", "plot --of loss,throughput %s", checks_scratch(), ""), 0);
    says(run.text, "Loss\n  training, last 1\n");
    says(run.text, "Throughput\n  throughput, last 8\n");
    ck_assert_ptr_null(strstr(run.text, "Learning"));
}
END_TEST

START_TEST(svg_names_the_jobs)
{
    size_t size;
    write_metrics("a.jsonl", rows);
    write_metrics("b.jsonl", rows);
    char two[1100];
    snprintf(two, sizeof two, "%s %s", place("a.jsonl"), place("b.jsonl"));
    ck_assert_int_eq(command("/nowhere", "plot %s -o %s", two, place("x.svg")), 0);
    ck_assert_str_eq(run.text, "");
    char *svg = contents(place("x.svg"), &size);
    says(svg, "a.jsonl, training</text>");
    says(svg, "b.jsonl, validation</text>");
    says(svg, ">Validation accuracy</text>");
    says(svg, ">samples a second (1/s)</text>");
    says(svg, "width=\"1280\" height=\"800\"");
    ck_assert_str_eq(svg + size - 7, "</svg>\n");
}
END_TEST

START_TEST(png_of_a_daemons_job)
{
    char reply[1024];
    size_t size;
    write_metrics("metrics.jsonl", rows);
    snprintf(reply, sizeof reply,
             "\"result\":{\"id\":7,\"state\":\"running\",\"name\":\"digits\",\"output\":\"%s\"}",
             checks_scratch());
    const struct peer_step steps[] = {{.method = "job.show", .reply = reply}};
    struct peer *peer = peer_start(steps, 1);
    ck_assert_int_eq(command(peer_socket(peer), "plot 7 --of loss --output=%s", place("x.png"), ""),
                     0);
    json_decref(peer_stop(peer));
    const char *png = contents(place("x.png"), &size);
    ck_assert_uint_gt(size, 1000);
    ck_assert_mem_eq(png, "\x89PNG\r\n\x1a\n", 8);
}
END_TEST

START_TEST(a_job_that_has_not_begun)
{
    static const struct peer_step steps[] = {
        {.method = "job.show", .reply = "\"result\":{\"id\":7,\"state\":\"queued\"}"}};
    struct peer *peer = peer_start(steps, 1);
    ck_assert_int_eq(command(peer_socket(peer), "plot 7", "", ""), 3);
    says(run.errors, "job 7 has not begun");
    json_decref(peer_stop(peer));
}
END_TEST

START_TEST(a_job_that_trained_nothing)
{
    static const struct peer_step steps[] = {
        {.method = "job.show",
         .reply = "\"result\":{\"id\":7,\"state\":\"failed\",\"losses\":[],"
                  "\"output\":\"/nowhere/7\"}"},
        {.method = "job.show",
         .reply = "\"result\":{\"id\":8,\"state\":\"completed\",\"losses\":[[1,2.5]],"
                  "\"output\":\"/nowhere/8\",\"weights\":\"/nowhere/8/evaluation.json\"}"}};
    struct peer *peer = peer_start(steps, 2);
    ck_assert_int_eq(command(peer_socket(peer), "plot 7", "", ""), 3);
    says(run.errors, "job 7 trained no step");
    ck_assert_int_eq(command(peer_socket(peer), "plot 8", "", ""), 3);
    says(run.errors, "job 8 trained no step");
    json_decref(peer_stop(peer));
}
END_TEST

static const struct {
    const char *command;
    int status;
    const char *errors;
} refusals[] = {
    {"plot", 2, "plot needs ID|DIRECTORY..."},
    {"plot /nowhere/x", 1, "cannot open /nowhere/x: No such file"},
    {"plot /dev/null", 1, "/dev/null is no file"},
    {"plot --of los /nowhere", 2, "did you mean loss?"},
    {"plot --of loss,,lr /nowhere", 2, "allowed are loss, accuracy, lr, throughput"},
    {"plot -o x.gif /nowhere", 2, "must end in .svg or .png"},
    {"plot -o .svg /nowhere", 2, "must end in .svg or .png"},
};

START_TEST(mistakes_are_named)
{
    ck_assert_int_eq(command("/nowhere", "%s", refusals[_i].command, ""), refusals[_i].status);
    says(run.errors, refusals[_i].errors);
    ck_assert_str_eq(run.text, "");
}
END_TEST

START_TEST(broken_and_empty_files)
{
    write_metrics("bad.jsonl", "{\"step\": 1, \"loss\": 1}\n{\"step\": 2,, \"loss\": 1}\n");
    ck_assert_int_eq(command("/nowhere", "plot %s", place("bad.jsonl"), ""), 1);
    says(run.errors, "bad.jsonl: line 2: ");
    write_metrics("none.jsonl", "[1]\n{\"step\": 1, \"samples\": 4, \"seconds\": 0}\n");
    ck_assert_int_eq(command("/nowhere", "plot %s", place("none.jsonl"), ""), 3);
    says(run.errors, "there is nothing to plot yet");
    write_metrics("a.jsonl", rows);
    ck_assert_int_eq(command("/nowhere", "plot %s -o %s", place("a.jsonl"), "/nowhere/x.svg"), 1);
    says(run.errors, "cannot create /nowhere/x.svg");
}
END_TEST

int main(void)
{
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("plot");
    TCase *tcase = checks_case(suite, "plot", 20);
    tcase_add_test(tcase, json_has_every_point);
    tcase_add_test(tcase, a_terminal_shows_curves);
    tcase_add_test(tcase, svg_names_the_jobs);
    tcase_add_test(tcase, png_of_a_daemons_job);
    tcase_add_test(tcase, a_job_that_has_not_begun);
    tcase_add_test(tcase, a_job_that_trained_nothing);
    tcase_add_loop_test(tcase, mistakes_are_named, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(tcase, broken_and_empty_files);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
