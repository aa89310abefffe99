/* The whole screen of `trainctl top`, and the sparkline in it. */
#include <math.h>
#include <string.h>

#include "client/render/overview.h"
#include "client/render/sparkline.h"
#include "tests/lib/checks.h"

enum { JOBS = 50 };

static struct record records[JOBS];
static struct overview_job jobs[JOBS];

static void spark(bool utf8, const double *numbers, size_t n, const char *wanted)
{
    const struct style style = {.columns = 80, .rows = 24, .utf8 = utf8};
    struct text text = {0};
    sparkline_draw(&text, &style, numbers, n);
    ck_assert_str_eq(text_str(&text), wanted);
    text_done(&text);
}

START_TEST(sparklines)
{
    const double ramp[] = {0, 1, 2, 3, 4, 5, 6, 7}, same[] = {3, 3}, gap[] = {1, NAN, 2, INFINITY};
    spark(true, ramp, 8, "▁▂▃▄▅▆▇█");
    spark(false, ramp, 8, "__..--''");
    spark(true, same, 2, "▁▁");
    spark(true, gap, 4, "▁ █ ");
    spark(true, ramp, 0, "");
}
END_TEST

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

/* Jobs 1 … n of `json`'s record; the one at `chosen` is. */
static void make_jobs(const json_t *json, size_t n, size_t chosen)
{
    static const double trail[] = {4, 2, 1};
    for (size_t i = 0; i < n; i++) {
        record_read(json, &records[i]);
        records[i].id = (int64_t)i + 1;
        jobs[i] = (struct overview_job){&records[i], "ann", trail, 3, i == chosen};
    }
}

/* The screen's lines; each fits, and there are as many as the terminal has. */
static char *draw(size_t columns, size_t rows, const struct overview *overview)
{
    const struct style style = {.columns = columns, .rows = rows, .utf8 = true};
    struct text text = {0};
    size_t n = 0;
    overview_draw(&text, &style, overview);
    ck_assert(!text.failed);
    for (const char *line = text_str(&text); *line != '\0'; n++) {
        size_t length = strcspn(line, "\n");
        ck_assert_uint_le(text_columns(line, length), columns);
        line += length + 1;
    }
    ck_assert_uint_eq(n, rows);
    char *copy = strdup(text_str(&text));
    text_done(&text);
    return copy;
}

START_TEST(every_size)
{
    json_t *json = parse("{\"name\": \"a name that is rather long\", \"state\": \"running\","
                         " \"devices\": [\"cpu:0\"], \"losses\": [[1, 4], [2, 2], [3, 1]],"
                         " \"progress\": {\"step\": 5, \"steps\": 10, \"loss\": 1}}");
    json_t *devices = parse("[{\"name\": \"cpu:0\", \"state\": \"assigned\", \"job\": 1},"
                            " {\"name\": \"cpu:1\", \"state\": \"free\", \"job\": null}]");
    make_jobs(json, JOBS, 0);
    for (size_t columns = 20; columns < 220; columns += 9)
        for (size_t rows = 2; rows < 60; rows++)
            for (int one = 0; one < 2; one++) {
                const struct overview overview = {
                    .devices = devices, .jobs = jobs, .n_jobs = rows % JOBS, .one = one == 1};
                free(draw(columns, rows, &overview));
            }
    json_decref(devices);
    json_decref(json);
}
END_TEST

/* Wherever it stands, it is among those that are shown. */
START_TEST(the_chosen_job_is_shown)
{
    json_t *json = parse("{\"name\": \"job\", \"state\": \"queued\"}");
    for (size_t chosen = 0; chosen < JOBS; chosen++) {
        char wanted[32];
        make_jobs(json, JOBS, chosen);
        const struct overview overview = {.jobs = jobs, .n_jobs = JOBS};
        char *screen = draw(80, 24, &overview);
        snprintf(wanted, sizeof wanted, "▸ %2zu job", chosen + 1);
        ck_assert_msg(strstr(screen, wanted) != NULL, "%zu:\n%s", chosen, screen);
        free(screen);
    }
    json_decref(json);
}
END_TEST

START_TEST(roles)
{
    static const struct {
        const char *parallel, *role; /* of the fourth of four devices */
    } rows[] = {
        {"{\"mode\": \"replicate\", \"devices\": 4}", "cpu:3  replica 3\n"},
        {"{\"mode\": \"stages\", \"devices\": 4, \"split\": [\"a\", \"b\", \"c\"]}",
         "cpu:3  stage 3\n"},
        {"{\"mode\": \"stages\", \"devices\": 4, \"split\": [\"a\"], \"replicas\": 2}",
         "cpu:3  pipeline 1, stage 1\n"},
        {"{\"mode\": \"stages\", \"devices\": 4}", "cpu:3\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *json =
            json_pack("{s:s, s:[s, s, s, s], s:{s:o}}", "state", "running", "devices", "cpu:0",
                      "cpu:1", "cpu:2", "cpu:3", "document", "parallel", parse(rows[i].parallel));
        make_jobs(json, 1, 0);
        const struct overview overview = {.jobs = jobs, .n_jobs = 1, .one = true};
        char *screen = draw(80, 24, &overview);
        ck_assert_msg(strstr(screen, rows[i].role) != NULL, "%s:\n%s", rows[i].role, screen);
        free(screen);
        json_decref(json);
    }
}
END_TEST

/* Words of others cannot reach the terminal. */
START_TEST(harmless)
{
    json_t *json = json_pack("{s:s, s:s, s:[s]}", "state", "running", "name", "a\033[2J", "devices",
                             "cpu:0\033[2J");
    make_jobs(json, 1, 0);
    struct overview overview = {
        .jobs = jobs, .n_jobs = 1, .whose = "\033[2J", .message = "\033[2J"};
    for (int one = 0; one < 2; one++) {
        overview.one = one == 1;
        char *screen = draw(200, 24, &overview);
        ck_assert_ptr_null(strchr(screen, '\033'));
        free(screen);
    }
    json_decref(json);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("overview");
    TCase *tcase = checks_case(suite, "overview", 20);
    tcase_add_test(tcase, sparklines);
    tcase_add_test(tcase, every_size);
    tcase_add_test(tcase, the_chosen_job_is_shown);
    tcase_add_test(tcase, roles);
    tcase_add_test(tcase, harmless);
    return checks_run(suite);
}
