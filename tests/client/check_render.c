#include <math.h>
#include <string.h>

#include "client/record.h"
#include "client/render/bar.h"
#include "client/render/plot.h"
#include "client/render/progress.h"
#include "client/render/summary.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "client/render/units.h"
#include "tests/lib/checks.h"

static const struct style utf8 = {.columns = 80, .rows = 24, .utf8 = true};
static const struct style ascii = {.columns = 80, .rows = 24};
static const struct style color = {.columns = 80, .rows = 24, .utf8 = true, .color = true};

/* Compares and frees. */
static void assert_text(struct text *text, const char *wanted)
{
    ck_assert(!text->failed);
    ck_assert_str_eq(text_str(text), wanted);
    text_done(text);
}

START_TEST(durations)
{
    static const struct {
        double seconds;
        const char *text;
    } rows[] = {{0, "0s"},         {8, "8s"},          {0.04, "0.0s"},    {0.42, "0.4s"},
                {9.94, "9.9s"},    {9.96, "10s"},      {59.4, "59s"},     {59.6, "1m00s"},
                {192, "3m12s"},    {3599.4, "59m59s"}, {3599.6, "1h00m"}, {3840, "1h04m"},
                {86369, "23h59m"}, {86371, "1d00h"},   {183600, "2d03h"}, {NAN, "-"},
                {INFINITY, "-"},   {-1, "-"},          {1e300, "-"}};
    char buf[UNITS_SIZE];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_str_eq(units_duration(rows[i].seconds, buf), rows[i].text);
}
END_TEST

START_TEST(sizes_and_counts)
{
    char buf[UNITS_SIZE];
    ck_assert_str_eq(units_bytes(0, buf), "0 B");
    ck_assert_str_eq(units_bytes(1023, buf), "1023 B");
    ck_assert_str_eq(units_bytes(1024, buf), "1.0 KiB");
    ck_assert_str_eq(units_bytes(1503238553, buf), "1.4 GiB");
    ck_assert_str_eq(units_bytes(23 << 20, buf), "23 MiB");
    ck_assert_str_eq(units_bytes((1 << 20) - 1, buf), "1.0 MiB");
    ck_assert_str_eq(units_bytes(INT64_MAX, buf), "8192 PiB");
    ck_assert_str_eq(units_bytes(-5, buf), "0 B");
    ck_assert_str_eq(units_count(0, buf), "0");
    ck_assert_str_eq(units_count(999, buf), "999");
    ck_assert_str_eq(units_count(19466, buf), "19,466");
    ck_assert_str_eq(units_count(-1234567, buf), "-1,234,567");
    ck_assert_str_eq(units_count(INT64_MIN, buf), "-9,223,372,036,854,775,808");
    ck_assert_str_eq(units_si(950, buf), "950");
    ck_assert_str_eq(units_si(1234, buf), "1.23 k");
    ck_assert_str_eq(units_si(41.23e6, buf), "41.2 M");
    ck_assert_str_eq(units_si(999.9e9, buf), "1.00 T");
    ck_assert_str_eq(units_si(NAN, buf), "-");
}
END_TEST

START_TEST(numbers)
{
    static const struct {
        double x;
        const char *text;
    } rows[] = {
        {0.5, "0.5000"},     {2.302585, "2.303"}, {-0.0123456, "-0.01235"}, {12345.6, "12346"},
        {1234.5, "1234"},    {1e-5, "1.000e-05"}, {2.5e7, "2.500e+07"},     {0, "0"},
        {1e-4, "0.0001000"}, {NAN, "nan"}};
    char buf[UNITS_SIZE];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_str_eq(units_number(rows[i].x, buf), rows[i].text);
}
END_TEST

/* What others wrote cannot act on the terminal. */
START_TEST(safe)
{
    struct text text = {0};
    text_safe(&text, &utf8, "a\033[2Jb\n\t\r\x7f");
    assert_text(&text, "a\\x1b[2Jb\\n\\t\\x0d\\x7f");
    text_safe(&text, &utf8,
              "é\xc2\x9b"
              "31m\xe2\x80\xae"
              "x\xff\xc0\xaf\xed\xa0\x80");
    assert_text(&text, "é\\x9b31m\\u202ex\\xff\\xc0\\xaf\\xed\\xa0\\x80");
    text_safe(&text, &ascii, "é日x\xe2");
    assert_text(&text, "??x\\xe2");
    text_safe(&text, &utf8, NULL);
    assert_text(&text, "");
    text_json(&text, "{\"a\":\"\xc2\x9bq\x7f\xc3\xa9\"}");
    assert_text(&text, "{\"a\":\"\\u009bq\\u007fé\"}");
}
END_TEST

START_TEST(widths_and_cuts)
{
    struct text text = {0};
    ck_assert_uint_eq(text_columns("abc", 3), 3);
    ck_assert_uint_eq(text_columns("é日", strlen("é日")), 3);
    ck_assert_uint_eq(text_columns("e\xcc\x81", 3), 1);
    ck_assert_uint_eq(text_columns("\033[31mab\033[0m", strlen("\033[31mab\033[0m")), 2);
    text_clip(&text, &utf8, "abcdef", 6);
    assert_text(&text, "abcdef");
    text_clip(&text, &utf8, "abcdefg", 6);
    assert_text(&text, "abcde…");
    text_clip(&text, &ascii, "abcdefg", 6);
    assert_text(&text, "abcde~");
    text_clip(&text, &utf8, "日本語", 5);
    assert_text(&text, "日本…");
    text_clip(&text, &utf8, "日本語", 4);
    assert_text(&text, "日…");
    text_clip(&text, &color, "\033[31mabcdef\033[0m", 3);
    assert_text(&text, "\033[31mab…\033[0m");
    struct style narrow = utf8;
    narrow.columns = 3;
    ck_assert_uint_eq(text_clip_lines(&text, &narrow, "abcd\nx\n"), 2);
    assert_text(&text, "ab…\nx\n");
}
END_TEST

START_TEST(paint)
{
    struct text text = {0};
    text_paint(&text, &color, COLOR_RED, "x");
    text_paint(&text, &utf8, COLOR_RED, "y");
    text_paint(&text, &color, COLOR_NONE, "z");
    assert_text(&text, "\033[31mx\033[0myz");
}
END_TEST

START_TEST(bars)
{
    struct text text = {0};
    bar_draw(&text, &utf8, 0.5, 4);
    assert_text(&text, "██░░");
    bar_draw(&text, &utf8, 0.3125, 4);
    assert_text(&text, "█▎░░");
    bar_draw(&text, &utf8, 1, 4);
    assert_text(&text, "████");
    bar_draw(&text, &utf8, 7, 3);
    assert_text(&text, "███");
    bar_draw(&text, &utf8, NAN, 3);
    assert_text(&text, "░░░");
    bar_draw(&text, &ascii, 0.5, 10);
    assert_text(&text, "[####----]");
    bar_draw(&text, &ascii, -1, 4);
    assert_text(&text, "[--]");
}
END_TEST

START_TEST(tables)
{
    static const struct table_column columns[] = {
        {.title = "ID", .right = true}, {.title = "NAME", .shrink = true}, {.title = "STATE"}};
    struct table table;
    struct text text = {0};
    table_init(&table, &utf8, columns, 3);
    table_cell(&table, COLOR_NONE, "%d", 7);
    table_cell(&table, COLOR_NONE, "%s", "日本\033");
    table_cell(&table, COLOR_NONE, "%s", "queued");
    table_cell(&table, COLOR_NONE, "%d", 1234);
    table_cell(&table, COLOR_NONE, "%s", "x");
    table_cell(&table, COLOR_NONE, "%s", "failed");
    table_draw(&table, &text);
    assert_text(&text, "  ID  NAME      STATE\n"
                       "   7  日本\\x1b  queued\n"
                       "1234  x         failed\n");
    struct style narrow = ascii;
    narrow.columns = 18;
    table.style = &narrow;
    table_draw(&table, &text);
    assert_text(&text, "  ID  NAME  STATE\n"
                       "   7  \xe6\x97\xa5~   queued\n"
                       "1234  x     failed\n");
    table_done(&table);
}
END_TEST

START_TEST(plots)
{
    static const struct plot_point line[] = {{1, 2}, {2, NAN}, {3, 1}, {5, 0}};
    struct text text = {0};
    plot_draw(&text, &ascii, line, 4, 14, 5, PLOT_LINEAR);
    assert_text(&text, "2 | **\n"
                       "  |   **\n"
                       "  |     **\n"
                       "  |       **\n"
                       "0 |         **\n"
                       "    1        5\n");
    plot_draw(&text, &utf8, line, 4, 12, 2, PLOT_LINEAR);
    assert_text(&text, "2 │ ⠉⠒⠤⢄⡀\n"
                       "0 │     ⠈⠑⠢⢄\n"
                       "    1      5\n");
    plot_draw(&text, &ascii, line, 2, 14, 5, PLOT_LINEAR); /* one finite point is no curve */
    assert_text(&text, "");
    static const struct plot_point flat[] = {{1, 3}, {2, 3}};
    plot_draw(&text, &ascii, flat, 2, 12, 3, PLOT_LINEAR);
    ck_assert_ptr_nonnull(strstr(text_str(&text), "  | ********\n"));
    text_done(&text);
    static const struct plot_point steep[] = {{1, 100}, {2, 0}, {3, 10}, {4, NAN}, {5, 1}};
    plot_draw(&text, &ascii, steep, 5, 16, 5, PLOT_LOG);
    assert_text(&text, "100 | **\n"
                       "    |   **\n"
                       "    |     **\n"
                       "    |       **\n"
                       "  1 |         **\n"
                       "      1        5\n");
    static const struct plot_point huge[] = {{1, -1.7e308}, {2, 1.7e308}};
    plot_draw(&text, &ascii, huge, 2, 40, 3, PLOT_LINEAR);
    ck_assert(text.used > 0);
    text_done(&text);
}
END_TEST

static json_t *read(const char *text, struct record *record)
{
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(json);
    record_read(json, record);
    return json;
}

static const char running[] =
    "{\"id\": 7, \"name\": \"digits\\u001b[2J\", \"user\": 0, \"state\": \"running\", \"reason\": "
    "null,"
    " \"started\": 100, \"devices\": [\"cpu:0\", \"cpu:1\"], \"n_devices\": 2,"
    " \"progress\": {\"step\": 115, \"steps\": 230, \"epoch\": 3, \"epochs\": 5, \"loss\": 0.12345,"
    "  \"samples_per_second\": 1234.5, \"seconds_left\": 72, \"accuracy\": 0.9721,"
    "  \"validation_loss\": 0.25}}";

START_TEST(progress)
{
    struct record record;
    struct text text = {0};
    json_t *json = read(running, &record);
    progress_block(&text, &ascii, &record, 112);
    assert_text(&text, "job 7  digits\\x1b[2J  running on cpu:0 cpu:1  12s\n"
                       "  [#############-------------]  50%  epoch 3/5  step 115/230\n"
                       "  loss 0.1235  1.23 k samples/s  1m12s left  accuracy 0.9721\n");
    progress_state_line(&text, &ascii, &record);
    progress_step_line(&text, &record);
    progress_validation_line(&text, &record);
    assert_text(&text,
                "job 7: running on cpu:0 cpu:1\n"
                "job 7: step 115/230 (50%), epoch 3/5, loss 0.1235, 1.23 k samples/s, 1m12s left\n"
                "job 7: validation after epoch 3/5: accuracy 0.9721, loss 0.2500\n");
    json_decref(json);
}
END_TEST

START_TEST(queued)
{
    struct record record;
    struct text text = {0};
    json_t *json =
        read("{\"id\": 8, \"state\": \"queued\", \"reason\": \"waiting for 2 of 4 devices\","
             " \"devices\": [], \"progress\": null}",
             &record);
    progress_block(&text, &ascii, &record, 112);
    assert_text(&text, "job 8  queued: waiting for 2 of 4 devices\n");
    json_decref(json);
}
END_TEST

/* A record may lack or garble anything: it is another's word, or another version's. */
START_TEST(odd_records)
{
    static const char *const odd[] = {
        "{}",
        "[]",
        "{\"id\": \"x\", \"state\": 5, \"progress\": [], \"exit\": 3, \"devices\": {}}",
        "{\"state\": \"levitating\", \"progress\": {\"step\": 9, \"steps\": 0}}",
        "{\"state\": \"running\", \"devices\": [1, null], \"losses\": [[1, 2], [3, null]]}",
        "{\"state\": \"completed\", \"losses\": [1, [2], [\"x\", 3]], \"weights\": \"w\"}",
        "{\"state\": \"completed\", \"confusion\": [[1, \"x\"], 3], \"progress\": {\"step\": -9}}"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct record record;
        struct text text = {0};
        json_t *json = read(odd[i], &record);
        progress_block(&text, &utf8, &record, 1);
        progress_state_line(&text, &utf8, &record);
        progress_step_line(&text, &record);
        summary_draw(&text, &utf8, &record);
        ck_assert(!text.failed);
        ck_assert(record_fraction(&record) >= 0 && record_fraction(&record) <= 1);
        text_done(&text);
        json_decref(json);
    }
}
END_TEST

START_TEST(summary_of_success)
{
    struct record record;
    struct text text = {0};
    json_t *json =
        read("{\"id\": 7, \"state\": \"completed\", \"started\": 100, \"ended\": 112.6,"
             " \"devices\": [\"cpu:0\"], \"cwd\": \"/home/a\", \"weights\": \"runs/7/w\","
             " \"progress\": {\"accuracy\": 0.98, \"validation_loss\": 0.1},"
             " \"losses\": [[1, 2.5], [2, 1.0], [3, 0.5]], \"confusion\": [[9, 1], [0, 10]]}",
             &record);
    summary_draw(&text, &ascii, &record);
    const char *s = text_str(&text);
    ck_assert_ptr_eq(strstr(s, "job 7 completed after 13s on cpu:0\n"
                               "validation accuracy 0.9800, loss 0.1000\n"),
                     s);
    ck_assert_ptr_nonnull(strstr(s, "\nloss: 2.500 at step 1, 0.5000 at step 3\n2.5 | **"));
    ck_assert_ptr_nonnull(strstr(s, "   0   1\n0  9   1\n1  .  10\n"));
    ck_assert_ptr_nonnull(strstr(s, "\nweights: /home/a/runs/7/w\n"));
    text_done(&text);
    json_decref(json);
}
END_TEST

START_TEST(summary_of_failure)
{
    struct record record;
    struct text text = {0};
    json_t *json = read(
        "{\"id\": 7, \"state\": \"failed\", \"reason\": \"loss.nan\", \"exit\": {\"status\": 1,"
        " \"signal\": null, \"code\": \"loss.nan\", \"message\": \"not finite\\n\","
        " \"path\": \"/optimizer/lr\"}}",
        &record);
    summary_draw(&text, &ascii, &record);
    assert_text(&text, "job 7 failed\nloss.nan: /optimizer/lr: not finite\\n\n"
                       "its output: trainctl logs 7\n");
    json_decref(json);
    json = read("{\"id\": 7, \"state\": \"cancelled\","
                " \"exit\": {\"code\": \"cancelled\", \"message\": \"cancelled by uid 0\"}}",
                &record);
    summary_exit(&text, &ascii, &record);
    assert_text(&text, "cancelled by uid 0");
    json_decref(json);
    json = read("{\"id\": 7, \"state\": \"failed\", \"exit\": {\"signal\": 11}}", &record);
    summary_draw(&text, &ascii, &record);
    assert_text(&text, "job 7 failed\nkilled by signal 11\nits output: trainctl logs 7\n");
    json_decref(json);
}
END_TEST

START_TEST(summary_of_a_checkpoint)
{
    struct record record;
    struct text text = {0};
    json_t *json =
        read("{\"id\": 7, \"state\": \"failed\", \"exit\": {\"signal\": 9},"
             " \"output\": \"/home/a/runs/7\", \"progress\": {\"checkpoint_step\": 400}}",
             &record);
    summary_draw(&text, &ascii, &record);
    assert_text(&text, "job 7 failed\nkilled by signal 9\nits output: trainctl logs 7\n"
                       "its checkpoint: step 400; submit the job again with \"output\": "
                       "\"/home/a/runs/7\" to go on from there\n");
    record.checkpoint_step = 0;
    summary_checkpoint(&text, &ascii, &record);
    ck_assert_uint_eq(text.used, 0);
    record.checkpoint_step = 400;
    record.state = STATE_RUNNING;
    summary_checkpoint(&text, &ascii, &record);
    ck_assert_uint_eq(text.used, 0);
    json_decref(json);
}
END_TEST

START_TEST(summary_of_nothing_left)
{
    struct record record;
    struct text text = {0};
    json_t *json = read("{\"id\": 7, \"state\": \"completed\","
                        " \"progress\": {\"step\": 9, \"steps\": 9, \"resumed_step\": 9}}",
                        &record);
    summary_draw(&text, &ascii, &record);
    assert_text(&text, "job 7 completed, resumed after step 9\nits output was trained to this end "
                       "before: another \"output\" begins anew, more epochs go on\n");
    json_decref(json);
}
END_TEST

START_TEST(summary_of_an_evaluation)
{
    struct record record;
    struct text text = {0};
    json_t *json =
        read("{\"id\": 7, \"state\": \"completed\", \"weights\": \"/runs/7/evaluation.json\","
             " \"progress\": {\"accuracy\": 0.98, \"validation_loss\": 0.1},"
             " \"losses\": [[1, 0.2], [2, 0.1]]}",
             &record);
    summary_draw(&text, &ascii, &record);
    assert_text(&text, "job 7 completed\nvalidation accuracy 0.9800, loss 0.1000\n"
                       "\nresults: /runs/7/evaluation.json\n");
    json_decref(json);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/render");
    TCase *tcase = checks_case(suite, "render", 0);
    tcase_add_test(tcase, durations);
    tcase_add_test(tcase, sizes_and_counts);
    tcase_add_test(tcase, numbers);
    tcase_add_test(tcase, safe);
    tcase_add_test(tcase, widths_and_cuts);
    tcase_add_test(tcase, paint);
    tcase_add_test(tcase, bars);
    tcase_add_test(tcase, tables);
    tcase_add_test(tcase, plots);
    tcase_add_test(tcase, progress);
    tcase_add_test(tcase, queued);
    tcase_add_test(tcase, odd_records);
    tcase_add_test(tcase, summary_of_success);
    tcase_add_test(tcase, summary_of_failure);
    tcase_add_test(tcase, summary_of_a_checkpoint);
    tcase_add_test(tcase, summary_of_nothing_left);
    tcase_add_test(tcase, summary_of_an_evaluation);
    return checks_run(suite);
}
