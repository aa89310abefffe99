/* Charts: what an SVG says, and what the pixels of a PNG show. */
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "client/render/canvas.h"
#include "client/render/chart.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

static const struct chart_point falling[] = {{0, 4, 0}, {50, 2, 0.5}, {100, 1, 0}};
static const struct chart_point level[] = {{0, 3, 0}, {100, 3, 0}};
static const struct chart_series curves[] = {{"12 digits <cnn> & co", falling, 3},
                                             {"13 \x1b[31mmlp", level, 2}};
static const struct chart loss = {
    "Loss", CHART_CURVES, {"step", false}, {"loss (nats)", false}, curves, 2};

static const struct chart_point single[] = {{0, 8, 0.25}}, pipelined[] = {{0, 5, 0}};
static const struct chart_series bars[] = {{"single device", single, 1},
                                           {"pipelined", pipelined, 1}};
static const struct chart times = {"ResNet-50", CHART_BARS, {0}, {"seconds a batch (s)", false},
                                   bars,        2};

static void draw(const struct chart *charts, size_t n, struct text *text)
{
    struct err err = ERR_INIT;
    ck_assert_int_eq(chart_svg(charts, n, text, &err), 0);
}

static void says(const struct text *text, const char *wanted)
{
    ck_assert_msg(strstr(text_str(text), wanted) != NULL, "«%s» is not in «%s»", wanted,
                  text_str(text));
}

static size_t count(const struct text *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text_str(text); (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

START_TEST(curves_have_axes_and_a_legend)
{
    struct text text = {0};
    draw(&loss, 1, &text);
    says(&text, "width=\"640\" height=\"400\"");
    says(&text, "font-weight=\"bold\">Loss</text>");
    says(&text, ">step</text>");
    says(&text, ">loss (nats)</text>");
    says(&text, ">12 digits &lt;cnn&gt; &amp; co</text>");
    says(&text, ">13 \\x1b[31mmlp</text>");
    for (int tick = 1; tick <= 4; tick++) {
        char label[32];
        snprintf(label, sizeof label, "text-anchor=\"end\">%d</text>", tick);
        says(&text, label);
    }
    says(&text, "text-anchor=\"middle\">20</text>");
    says(&text, "text-anchor=\"middle\">100</text>");
    text_done(&text);
}
END_TEST

/* The axes end at 1 and 4, 0 and 100: the middle point lies in the middle, a third up. */
START_TEST(points_lie_where_the_axes_say)
{
    struct text text = {0};
    double x[3], y[3];
    draw(&loss, 1, &text);
    const char *at = strstr(text_str(&text), "stroke=\"#0072b2\"");
    ck_assert_ptr_nonnull(at);
    at = strstr(at + 1, "stroke=\"#0072b2\""); /* the first is the legend's */
    if (at == NULL || strstr(at, "points=") == NULL)
        ck_abort_msg("no curve");
    at = strstr(at, "points=\"");
    ck_assert_int_eq(
        sscanf(at, "points=\"%lf,%lf %lf,%lf %lf,%lf\"", &x[0], &y[0], &x[1], &y[1], &x[2], &y[2]),
        6);
    ck_assert_double_eq_tol(x[1] - x[0], x[2] - x[1], 0.011);
    ck_assert_double_eq_tol((y[2] - y[1]) * 3, y[2] - y[0], 0.05);
    ck_assert_double_gt(x[0], 20);
    ck_assert_double_lt(x[2], 640);
    ck_assert_double_gt(y[0], 30);
    ck_assert_double_lt(y[2], 400);
    text_done(&text);
}
END_TEST

START_TEST(bars_stand_on_zero_with_their_deviation)
{
    struct text text = {0};
    draw(&times, 1, &text);
    says(&text, ">single device</text>");
    says(&text, ">pipelined</text>");
    says(&text, ">seconds a batch (s)</text>");
    says(&text, "text-anchor=\"end\">0</text>");
    double y[2], height[2], unused;
    const char *at = text_str(&text);
    for (int i = 0; i < 2; i++) {
        at = strstr(at, "<rect x=");
        at = i == 0 ? strstr(at + 1, "<rect x=") : at; /* the first is the paper */
        ck_assert_int_eq(sscanf(at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"",
                                &unused, &y[i], &unused, &height[i]),
                         4);
        at++;
    }
    ck_assert_double_eq_tol(y[0] + height[0], y[1] + height[1], 0.011);
    ck_assert_double_eq_tol(height[0] / 8, height[1] / 5, 0.01);
    text_done(&text);
}
END_TEST

START_TEST(dots_and_log_axes)
{
    static const struct chart_point points[] = {
        {1, 100, 0}, {10, 1, 0}, {100, 0, 0}, {1000, 10, 0}};
    static const struct chart_series series = {"", points, 4};
    static const struct chart chart = {"", CHART_DOTTED, {"split", true}, {"ms", true}, &series, 1};
    struct text text = {0};
    draw(&chart, 1, &text);
    ck_assert_uint_eq(count(&text, "r=\"3\""), 3); /* 0 has no logarithm */
    says(&text, "text-anchor=\"end\">100</text>");
    says(&text, "text-anchor=\"end\">5</text>");
    says(&text, "text-anchor=\"middle\">1000</text>");
    text_done(&text);
}
END_TEST

START_TEST(what_cannot_be_drawn_is_left_out)
{
    static const struct chart_point points[] = {{1, NAN, 0}, {2, INFINITY, 0}};
    static const struct chart_series series = {"nan", points, 2};
    static const struct chart nothing = {"t", CHART_CURVES, {"x", 0}, {"y", 0}, &series, 1};
    static const struct chart none = {"t", CHART_CURVES, {"x", 0}, {"y", 0}, NULL, 0};
    const struct chart *const charts[] = {&nothing, &none};
    for (size_t i = 0; i < 2; i++) {
        struct text text = {0};
        draw(charts[i], 1, &text);
        says(&text, ">nothing to draw</text>");
        text_done(&text);
    }
}
END_TEST

START_TEST(one_value_has_room)
{
    static const struct chart_point point = {7, 1e300, 0};
    static const struct chart_series series = {"one", &point, 1};
    static const struct chart chart = {"t", CHART_CURVES, {"x", 0}, {"y", 0}, &series, 1};
    struct text text = {0};
    draw(&chart, 1, &text);
    ck_assert_uint_eq(count(&text, "<circle"), 1);
    ck_assert_uint_eq(count(&text, "nan"), 0);
    text_done(&text);
}
END_TEST

/* A curve of a million points is no larger than its paper, and keeps its peak. */
START_TEST(many_points_are_thinned)
{
    enum { N = 1000000 };
    struct chart_point *points = calloc(N, sizeof *points);
    for (int i = 0; i < N; i++)
        points[i] = (struct chart_point){i, i % 2 == 0 ? 1 : 2, 0};
    points[N / 2].y = 9.5;
    struct chart_series series = {"long", points, N};
    struct chart chart = {"t", CHART_CURVES, {"x", 0}, {"y", 0}, &series, 1};
    struct text text = {0};
    draw(&chart, 1, &text);
    ck_assert_uint_lt(text.used, 120000);
    const char *at = strstr(text_str(&text), "stroke=\"#0072b2\"");
    double top = 1000;
    at = strstr(at, "points=\"") + strlen("points=\"");
    for (double x, y; sscanf(at, "%lf,%lf", &x, &y) == 2;) {
        top = fmin(top, y);
        at += strcspn(at, " \"") + 1;
    }
    ck_assert_double_lt(top, 60);
    text_done(&text);
    free(points);
}
END_TEST

/* A PNG in memory, decoded. */
static unsigned char *decode(const char *data, size_t size, png_image *image)
{
    *image = (png_image){.version = PNG_IMAGE_VERSION};
    ck_assert_int_eq(png_image_begin_read_from_memory(image, data, size), 1);
    image->format = PNG_FORMAT_RGB;
    unsigned char *pixels = malloc(PNG_IMAGE_SIZE(*image));
    ck_assert_int_eq(png_image_finish_read(image, NULL, pixels, 0, NULL), 1);
    return pixels;
}

static size_t count_color(const unsigned char *pixels, size_t n, unsigned color)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found +=
            (unsigned)(pixels[3 * i] << 16 | pixels[3 * i + 1] << 8 | pixels[3 * i + 2]) == color;
    return found;
}

START_TEST(png_shows_both_charts)
{
    const struct chart charts[] = {loss, times};
    char *data = NULL;
    size_t size = 0;
    struct err err = ERR_INIT;
    FILE *out = open_memstream(&data, &size);
    ck_assert_int_eq(chart_png(charts, 2, out, &err), 0);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_uint_gt(size, 8);
    ck_assert_mem_eq(data, "\x89PNG\r\n\x1a\n", 8);
    png_image image;
    unsigned char *pixels = decode(data, size, &image);
    size_t all = (size_t)image.width * image.height;
    ck_assert_uint_eq(image.width, 2u * CHART_WIDTH * (unsigned)canvas_png_scale);
    ck_assert_uint_eq(image.height, (unsigned)(CHART_HEIGHT * canvas_png_scale));
    ck_assert_uint_gt(count_color(pixels, all, 0xffffff), all / 2);
    /* Two bars of 0.3 of the plot's width each; the first is 8/5 of the second. */
    size_t first = count_color(pixels, all, 0x0072b2), second = count_color(pixels, all, 0xd55e00);
    ck_assert_uint_gt(second, all / 40);
    ck_assert_double_eq_tol((double)first / (double)second, 1.6, 0.1);
    free(pixels);
    free(data);
}
END_TEST

START_TEST(a_full_disk_is_reported)
{
    FILE *out = fopen("/dev/full", "w");
    struct err err = ERR_INIT;
    ck_assert_ptr_nonnull(out);
    setvbuf(out, NULL, _IONBF, 0);
    ck_assert_int_eq(chart_png(&loss, 1, out, &err), ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "No space left"));
    fclose(out);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    const struct chart charts[] = {loss, times};
    long n = 0;
    bool failed = true;
    while (failed) {
        struct text text = {0};
        struct err err = ERR_INIT;
        oom_arm(++n);
        int rc = chart_svg(charts, 2, &text, &err);
        failed = oom_disarm();
        ck_assert_int_eq(rc, failed ? ERR_NOMEM : 0);
        text_done(&text);
    }
    ck_assert_int_gt(n, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chart");
    TCase *tcase = checks_case(suite, "chart", 0);
    tcase_add_test(tcase, curves_have_axes_and_a_legend);
    tcase_add_test(tcase, points_lie_where_the_axes_say);
    tcase_add_test(tcase, bars_stand_on_zero_with_their_deviation);
    tcase_add_test(tcase, dots_and_log_axes);
    tcase_add_test(tcase, what_cannot_be_drawn_is_left_out);
    tcase_add_test(tcase, one_value_has_room);
    tcase_add_test(tcase, many_points_are_thinned);
    tcase_add_test(tcase, png_shows_both_charts);
    tcase_add_test(tcase, a_full_disk_is_reported);
    tcase_add_test(tcase, every_allocation_may_fail);
    return checks_run(suite);
}
