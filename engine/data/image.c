/* image.c: see image.h. */
#include "engine/data/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"

int image_alloc(const char *path, int64_t height, int64_t width, int channels, struct image *image,
                struct err *err)
{
    if (height < 1 || width < 1 || height > IMAGE_SIDE_MAX || width > IMAGE_SIDE_MAX ||
        height * width > IMAGE_PIXELS_MAX)
        return err_set(err, ERR_DATA_INVALID, "%s: %lld x %lld pixels, at most 2^27 are read", path,
                       (long long)width, (long long)height);
    uint8_t *pixels = malloc((size_t)(height * width * channels));
    if (pixels == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the pixels of %s", path);
    *image = (struct image){height, width, channels, pixels};
    return 0;
}

void image_done(struct image *image)
{
    free(image->pixels);
    *image = (struct image){.pixels = NULL};
}

/* PIL's weights, so that images are as torchvision's. */
static uint8_t luma(const uint8_t *rgb)
{
    return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
}

static int convert(struct image *image, int channels, const char *path, struct err *err)
{
    struct image to = {.pixels = NULL};
    if (image->channels == channels)
        return 0;
    int rc = image_alloc(path, image->height, image->width, channels, &to, err);
    if (rc != 0)
        return rc;
    const uint8_t *from = image->pixels;
    for (int64_t i = 0; i < image->height * image->width; i++)
        if (channels == 1)
            to.pixels[i] = luma(from + 3 * i);
        else
            memset(to.pixels + 3 * i, from[i], 3);
    image_done(image);
    *image = to;
    return 0;
}

static int decode(const char *path, const struct file_map *file, struct image *image,
                  struct err *err)
{
    static const struct {
        const char *magic;
        size_t bytes;
        int (*decode)(const char *path, const struct file_map *file, struct image *image,
                      struct err *err);
    } decoders[] = {
        {"\xff\xd8\xff", 3, image_decode_jpeg},
        {"\x89PNG\r\n\x1a\n", 8, image_decode_png},
    };
    for (size_t i = 0; i < sizeof decoders / sizeof decoders[0]; i++)
        if (file->bytes >= decoders[i].bytes &&
            memcmp(file->at, decoders[i].magic, decoders[i].bytes) == 0)
            return decoders[i].decode(path, file, image, err);
    return err_set(err, ERR_DATA_INVALID, "%s: neither a JPEG nor a PNG image", path);
}

int image_read(const char *path, int channels, struct image *ret_image, struct err *err)
{
    struct file_map file;
    struct image image = {.pixels = NULL};
    int rc = file_map(path, &file, err);
    if (rc != 0)
        return rc;
    rc = decode(path, &file, &image, err);
    file_unmap(&file);
    if (rc == 0)
        rc = convert(&image, channels, path, err);
    if (rc == 0)
        *ret_image = image;
    else
        image_done(&image);
    return rc;
}

/* Of one output pixel: the input pixels that it is made of. */
struct taps {
    int64_t first, n;
    const float *weight; /* [n], their sum is 1 */
};

/* A triangle as wide as an output pixel, but never narrower than two input pixels. */
static struct taps taps_of(int64_t i, int64_t from, int64_t to, float *weights)
{
    double scale = (double)from / (double)to, reach = scale > 1 ? scale : 1, sum = 0;
    double center = ((double)i + 0.5) * scale;
    int64_t first = (int64_t)(center - reach + 0.5), end = (int64_t)(center + reach + 0.5);
    first = first > 0 ? first : 0;
    end = end < from ? end : from;
    for (int64_t k = first; k < end; k++) {
        double distance = fabs((double)k + 0.5 - center) / reach;
        weights[k - first] = distance < 1 ? (float)(1 - distance) : 0;
        sum += weights[k - first];
    }
    for (int64_t k = 0; k < end - first; k++)
        weights[k] = (float)(weights[k] / sum);
    return (struct taps){first, end - first, weights};
}

static uint8_t weigh(const struct taps *taps, const uint8_t *from, int64_t step)
{
    float sum = 0;
    for (int64_t k = 0; k < taps->n; k++)
        sum += taps->weight[k] * from[k * step];
    return (uint8_t)(sum + 0.5f);
}

static void resize_rows(const struct image *from, float *weights, struct image *to)
{
    for (int64_t x = 0; x < to->width; x++) {
        struct taps taps = taps_of(x, from->width, to->width, weights);
        for (int64_t y = 0; y < from->height; y++)
            for (int c = 0; c < from->channels; c++) {
                const uint8_t *row = from->pixels + y * from->width * from->channels;
                to->pixels[(y * to->width + x) * from->channels + c] =
                    weigh(&taps, row + taps.first * from->channels + c, from->channels);
            }
    }
}

static void resize_columns(const struct image *from, float *weights, struct image *to)
{
    int64_t row = from->width * from->channels;
    for (int64_t y = 0; y < to->height; y++) {
        struct taps taps = taps_of(y, from->height, to->height, weights);
        for (int64_t x = 0; x < row; x++)
            to->pixels[y * row + x] = weigh(&taps, from->pixels + taps.first * row + x, row);
    }
}

int image_resize(struct image *image, int64_t height, int64_t width, struct err *err)
{
    int64_t longest = image->height > image->width ? image->height : image->width;
    struct image wide = {.pixels = NULL}, done = {.pixels = NULL};
    float *weights = malloc((size_t)(2 * longest + 4) * sizeof *weights);
    int rc = weights == NULL ? err_set(err, ERR_NOMEM, "no memory to resize an image") : 0;
    if (rc == 0)
        rc = image_alloc("an image", image->height, width, image->channels, &wide, err);
    if (rc == 0)
        rc = image_alloc("an image", height, width, image->channels, &done, err);
    if (rc == 0) {
        resize_rows(image, weights, &wide);
        resize_columns(&wide, weights, &done);
        image_done(image);
        *image = done;
    }
    image_done(&wide);
    free(weights);
    return rc;
}
