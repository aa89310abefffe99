/* Every allocation of the renderers and the parsers of the command line fails in turn. */
#include <string.h>

#include "client/args.h"
#include "client/record.h"
#include "client/render/progress.h"
#include "client/render/summary.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

static const struct style style = {.columns = 80, .rows = 24, .utf8 = true, .color = true};

static const char completed[] =
    "{\"id\": 7, \"name\": \"d\", \"state\": \"completed\", \"started\": 1, \"ended\": 2, "
    "\"devices\": "
    "[\"cpu:0\"], \"progress\": {\"step\": 9, \"steps\": 9, \"loss\": 0.5, \"accuracy\": 0.9},"
    " \"losses\": [[1, 2], [2, 1]], \"confusion\": [[1, 2], [3, 4]], \"weights\": \"/w\"}";
static const char failed[] = "{\"id\": 7, \"name\": \"d\", \"state\": \"failed\","
                             " \"exit\": {\"code\": \"io\", \"message\": \"no\"}}";

static void draw(struct text *text, const struct record *record)
{
    progress_block(text, &style, record, 3);
    summary_draw(text, &style, record);
}

/* A text is whole, or it says that it is not. */
static void try_all(const char *document)
{
    struct record record;
    struct text whole = {0};
    json_t *json = json_loads(document, 0, NULL);
    record_read(json, &record);
    draw(&whole, &record);
    ck_assert(!whole.failed);
    for (long n = 1;; n++) {
        struct text text = {0};
        oom_arm(n);
        draw(&text, &record);
        bool tried = oom_disarm();
        ck_assert_int_eq(text.failed, tried);
        if (!tried)
            ck_assert_str_eq(text_str(&text), text_str(&whole));
        text_done(&text);
        if (!tried)
            break;
    }
    text_done(&whole);
    json_decref(json);
}

START_TEST(rendering)
{
    try_all(completed);
    try_all(failed);
}
END_TEST

START_TEST(command_line)
{
    char *argv[] = {"trainctl", "submit", "-w", "job.json", NULL};
    struct args args;
    struct err err = ERR_INIT;
    oom_arm(1);
    int rc = args_parse(4, argv, &args, &err);
    ck_assert(oom_disarm());
    ck_assert_int_eq(rc, ERR_NOMEM);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/oom");
    TCase *tcase = checks_case(suite, "oom", 0);
    tcase_add_test(tcase, rendering);
    tcase_add_test(tcase, command_line);
    return checks_run(suite);
}
