/* check_images.c: pictures from files, and folders of them, to what a model gets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/data/image.h"
#include "tests/engine/data_test.h"
#include "tests/engine/idx_files.h"
#include "tests/engine/image_files.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

enum { H = 16, W = 24 };

static const char *path_of(const char *name)
{
    static char paths[8][600];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", checks_scratch(), name);
    return path;
}

/* A slope that JPEG keeps nearly as it is. */
static const uint8_t *slope(int channels)
{
    static uint8_t pixels[H * W * 4];
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < channels; c++)
                pixels[(y * W + x) * channels + c] = (uint8_t)(20 + 5 * x + 3 * y + 10 * c);
    return pixels;
}

static struct image read_well(const char *path, int channels)
{
    struct err err = ERR_INIT;
    struct image image;
    ck_assert_msg(image_read(path, channels, &image, &err) == 0, "%s", err.message);
    ck_assert(image.height == H && image.width == W && image.channels == channels);
    return image;
}

/* Every pixel within `off` of the slope of that many channels. */
static void ck_slope(const struct image *image, int channels, int off)
{
    const uint8_t *wanted = slope(channels);
    for (int i = 0; i < H * W * channels; i++)
        ck_assert_msg(abs(image->pixels[i] - wanted[i]) <= off, "pixel %d: %d, want %d", i,
                      image->pixels[i], wanted[i]);
}

START_TEST(png_is_exact)
{
    static const int channels[] = {1, 3};
    for (int i = 0; i < 2; i++) {
        const char *path = path_of("a.png");
        image_files_png(path, slope(channels[i]), H, W, channels[i]);
        struct image image = read_well(path, channels[i]);
        ck_slope(&image, channels[i], 0);
        image_done(&image);
    }
}
END_TEST

START_TEST(jpeg_is_near)
{
    static const int channels[] = {1, 3};
    for (int i = 0; i < 2; i++) {
        const char *path = path_of("a.jpg");
        image_files_jpeg(path, slope(channels[i]), H, W, channels[i]);
        struct image image = read_well(path, channels[i]);
        ck_slope(&image, channels[i], 4);
        image_done(&image);
    }
}
END_TEST

START_TEST(transparency_is_dropped)
{
    const char *path = path_of("a.png");
    uint8_t pixels[H * W * 4];
    const uint8_t *rgb = slope(3);
    for (int i = 0; i < H * W; i++) {
        memcpy(pixels + 4 * i, rgb + 3 * i, 3);
        pixels[4 * i + 3] = (uint8_t)(i % 255 + 1);
    }
    image_files_png(path, pixels, H, W, 4);
    struct image image = read_well(path, 3);
    ck_slope(&image, 3, 0);
    image_done(&image);
}
END_TEST

START_TEST(grey_and_colour_become_each_other)
{
    const char *path = path_of("a.png");
    image_files_png(path, slope(1), H, W, 1);
    struct image image = read_well(path, 3);
    const uint8_t *grey = slope(1);
    for (int i = 0; i < H * W; i++)
        ck_assert(image.pixels[3 * i] == grey[i] && image.pixels[3 * i + 2] == grey[i]);
    image_done(&image);

    /* PIL's Image.convert("L") of (200, 100, 50) is 124. */
    uint8_t colour[H * W * 3];
    for (int i = 0; i < H * W; i++)
        memcpy(colour + 3 * i, (const uint8_t[]){200, 100, 50}, 3);
    image_files_png(path, colour, H, W, 3);
    image = read_well(path, 1);
    ck_assert_int_eq(image.pixels[7], 124);
    image_done(&image);
}
END_TEST

static void ck_refused(const char *path, int code, const char *says)
{
    struct err err = ERR_INIT;
    struct image image;
    ck_assert_int_eq(image_read(path, 3, &image, &err), code);
    ck_assert_msg(strstr(err.message, path) != NULL, "no path in «%s»", err.message);
    ck_assert_msg(strstr(err.message, says) != NULL, "«%s» does not say «%s»", err.message, says);
}

START_TEST(what_is_no_picture_is_refused)
{
    const char *path = path_of("a.jpg");
    image_files_jpeg(path, slope(4), H, W, 4);
    ck_refused(path, ERR_DATA_INVALID, "a CMYK image, want RGB or grey");
    image_files_jpeg(path, slope(3), H, W, 3);
    image_files_cut(path, 0);
    ck_refused(path, ERR_DATA_INVALID, "the JPEG image is cut off");
    image_files_jpeg(path, slope(3), H, W, 3);
    image_files_cut(path, 30);
    ck_refused(path, ERR_DATA_INVALID, "");
    path = path_of("a.png");
    image_files_png(path, slope(3), H, W, 3);
    image_files_cut(path, 0);
    ck_refused(path, ERR_DATA_INVALID, "");
    ck_refused(idx_file("b.png", "GIF89a", 6), ERR_DATA_INVALID, "neither a JPEG nor a PNG");
    ck_refused(idx_file("c.png", "", 0), ERR_DATA_INVALID, "neither a JPEG nor a PNG");
    ck_refused("/nonexistent/a.jpg", ERR_IO, "No such file");
}
END_TEST

/* What PIL's Image.resize(size, Image.BILINEAR) gives for the row. */
static const struct {
    int from, to;
    uint8_t row[8], wanted[8];
} resized[] = {
    {4, 2, {0, 100, 200, 100}, {71, 143}}, {2, 4, {0, 100}, {0, 25, 75, 100}},
    {3, 3, {1, 2, 3}, {1, 2, 3}},          {6, 2, {0, 60, 120, 180, 240, 30}, {75, 158}},
    {5, 1, {10, 20, 30, 40, 50}, {30}},    {6, 3, {9, 250, 0, 13, 77, 77}, {111, 46, 68}},
};

START_TEST(images_are_resized_as_by_pil)
{
    for (int turned = 0; turned <= 1; turned++) {
        int from = resized[_i].from, to = resized[_i].to;
        struct err err = ERR_INIT;
        struct image image = {turned ? from : 1, turned ? 1 : from, 1, malloc((size_t)from)};
        memcpy(image.pixels, resized[_i].row, (size_t)from);
        ck_assert_int_eq(image_resize(&image, turned ? to : 1, turned ? 1 : to, &err), 0);
        for (int i = 0; i < to; i++)
            ck_assert_msg(abs(image.pixels[i] - resized[_i].wanted[i]) <= 1, "%d: %d, want %d", i,
                          image.pixels[i], resized[_i].wanted[i]);
        image_done(&image);
    }
}
END_TEST

/* Two classes of three pictures, in a folder of its own. */
static struct job_source folder(void)
{
    static char root[600];
    snprintf(root, sizeof root, "%s", path_of("photos"));
    mkdir(root, 0700);
    mkdir(path_of("photos/cat"), 0700);
    mkdir(path_of("photos/ant"), 0700);
    image_files_png(path_of("photos/cat/1.png"), slope(3), H, W, 3);
    image_files_jpeg(path_of("photos/ant/b.JPG"), slope(1), H, W, 1);
    image_files_png(path_of("photos/ant/a.png"), slope(1), H, W, 1);
    idx_file("photos/ant/notes.txt", "x", 1);
    idx_file("photos/.hidden", "x", 1);
    return (struct job_source){.format = DATA_IMAGE_FOLDER, .path = root};
}

START_TEST(classes_and_files_are_sorted_by_name)
{
    static float input[3 * H * W];
    static const int64_t wanted[] = {0, 0, 1};
    struct dataset *dataset =
        data_test_open(folder(), data_test_plain(), data_test_labels(SHAPE(3, H, W), 2));
    ck_assert_int_eq(dataset_samples(dataset), 3);
    for (int64_t i = 0; i < 3; i++) {
        int64_t label;
        data_test_gather(dataset, &i, 1, input, &label);
        ck_assert_int_eq(label, wanted[i]);
    }
    /* The last is the colour picture: channel, row, column. */
    ck_assert_float_eq(input[(2 * H + 3) * W + 4], 20 + 5 * 4 + 3 * 3 + 10 * 2);
    dataset_close(dataset);
}
END_TEST

START_TEST(pictures_are_resized_and_cropped)
{
    static float input[8 * 8];
    int64_t label, index[] = {0};
    struct job_data data = data_test_plain();
    struct dataset_want want = data_test_labels(SHAPE(1, 8, 8), 2);
    data.resize[0] = data.resize[1] = 8;
    struct dataset *dataset = data_test_open(folder(), data, want);
    data_test_gather(dataset, index, 1, input, &label);
    dataset_close(dataset);

    /* The middle 8 x 8 of 16 x 24 where nothing is trained: from row 4 and column 8 on. */
    data.resize[0] = data.resize[1] = 0;
    data.has_random_crop = true;
    dataset = data_test_open(folder(), data, want);
    data_test_gather(dataset, index, 1, input, &label);
    ck_assert_float_eq(input[0], 20 + 5 * 8 + 3 * 4);
    ck_assert_float_eq(input[8 * 2 + 1], 20 + 5 * 9 + 3 * 6);
    dataset_close(dataset);

    want.training = true;
    dataset = data_test_open(folder(), data, want);
    data_test_gather(dataset, index, 1, input, &label);
    int slope_at = (int)input[0] - 20;
    ck_assert_int_ge(slope_at, 0);
    ck_assert_float_eq(input[8 * 2 + 1] - input[0], 5 + 3 * 2);
    dataset_close(dataset);
}
END_TEST

START_TEST(folders_that_are_refused)
{
    struct job_source source = folder();
    struct job_data plain = data_test_plain();
    data_test_refused(source, plain, data_test_labels(SHAPE(3, H, W), 1), ERR_DATA_INVALID,
                      "/data/train/path", "2 classes, the model has 1");
    data_test_refused(source, plain, data_test_labels(SHAPE(2, H, W), 2), ERR_DATA_INVALID,
                      "/data/train/format", "[1, H, W] or [3, H, W], the model's input is [2");
    mkdir(path_of("photos/dog"), 0700);
    data_test_refused(source, plain, data_test_labels(SHAPE(3, H, W), 3), ERR_DATA_INVALID,
                      "/data/train/path", "photos/dog: a class without images");
    source.path = (char *)path_of("photos/dog");
    data_test_refused(source, plain, data_test_labels(SHAPE(3, H, W), 3), ERR_DATA_INVALID,
                      "/data/train/path", "there is no folder in it");
    source.path = (char *)"/nonexistent/photos";
    data_test_refused(source, plain, data_test_labels(SHAPE(3, H, W), 3), ERR_IO,
                      "/data/train/path", "cannot list /nonexistent/photos: No such file");
}
END_TEST

static void ck_gather_refused(struct job_source source, struct shape shape, const char *says)
{
    static float input[3 * 64 * 64];
    int64_t label, index[] = {0};
    struct err err = ERR_INIT;
    const struct dataset_rows rows = {.index = index, .n = 1};
    struct dataset *dataset = data_test_open(source, data_test_plain(), data_test_labels(shape, 2));
    ck_assert_int_eq(dataset_gather(dataset, &rows, (void *[]){input}, &label, &err),
                     ERR_DATA_INVALID);
    ck_assert_msg(strstr(err.message, says) != NULL, "«%s» does not say «%s»", err.message, says);
    dataset_close(dataset);
}

START_TEST(a_broken_picture_is_named)
{
    struct job_source source = folder();
    ck_gather_refused(source, SHAPE(3, H, 9),
                      "ant/a.png: 24 x 16 pixels, the model's input is 9 x 16 (\"resize\"");
    image_files_cut(path_of("photos/ant/a.png"), 20);
    ck_gather_refused(source, SHAPE(3, H, W), "photos/ant/a.png: ");
}
END_TEST

START_TEST(every_allocation_is_checked)
{
    static float input[8 * 8];
    struct job_source source = folder();
    struct job_data data = data_test_plain();
    struct dataset_want want = data_test_labels(SHAPE(1, 8, 8), 2);
    data.resize[0] = data.resize[1] = 8;
    long n = 1;
    for (;; n++) {
        int64_t label, index[] = {2};
        struct err err = ERR_INIT;
        const struct dataset_rows rows = {.index = index, .n = 1};
        struct dataset *dataset = NULL;
        oom_arm(n);
        int rc = dataset_open(&source, &data, &want, "/data/train", &dataset, &err);
        if (rc == 0)
            rc = dataset_gather(dataset, &rows, (void *[]){input}, &label, &err);
        bool failed = oom_disarm();
        dataset_close(dataset);
        if (!failed)
            break;
        ck_assert_msg(rc == ERR_NOMEM, "allocation %ld: %d %s", n, rc, err.message);
    }
    ck_assert_int_gt(n, 8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("images");
    TCase *tcase = checks_case(suite, "images", 20);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, png_is_exact);
    tcase_add_test(tcase, jpeg_is_near);
    tcase_add_test(tcase, transparency_is_dropped);
    tcase_add_test(tcase, grey_and_colour_become_each_other);
    tcase_add_test(tcase, what_is_no_picture_is_refused);
    tcase_add_loop_test(tcase, images_are_resized_as_by_pil, 0, sizeof resized / sizeof resized[0]);
    tcase_add_test(tcase, classes_and_files_are_sorted_by_name);
    tcase_add_test(tcase, pictures_are_resized_and_cropped);
    tcase_add_test(tcase, folders_that_are_refused);
    tcase_add_test(tcase, a_broken_picture_is_named);
    tcase_add_test(tcase, every_allocation_is_checked);
    return checks_run(suite);
}
