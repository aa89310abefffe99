/* image.h: pictures as 8-bit pixels, from JPEG (libjpeg) and PNG (libpng) files. */
#ifndef ENGINE_DATA_IMAGE_H
#define ENGINE_DATA_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"

enum { IMAGE_SIDE_MAX = 65500, IMAGE_PIXELS_MAX = 1 << 27 };

struct image {
    int64_t height, width;
    int channels;    /* 1: grey; 3: RGB */
    uint8_t *pixels; /* [height, width, channels] */
};

/* Reads a file whole; what it is its first bytes say. Grey becomes RGB and RGB grey (luma, ITU-R
 * BT.601) where `channels` wants it; transparency is dropped. Errors: ERR_IO; ERR_DATA_INVALID
 * naming path (neither format, cut off, broken, CMYK, too large); ERR_NOMEM. */
int image_read(const char *path, int channels, struct image *ret_image, struct err *err);
void image_done(struct image *image);
/* Brings an image to another size: bilinear, and averaging where it shrinks, as PIL's. Errors:
 * ERR_NOMEM. */
int image_resize(struct image *image, int64_t height, int64_t width, struct err *err);

/* What image_read is made of. Each fills in an image of 1 or 3 channels. */
struct file_map;
int image_decode_jpeg(const char *path, const struct file_map *file, struct image *image,
                      struct err *err);
int image_decode_png(const char *path, const struct file_map *file, struct image *image,
                     struct err *err);
/* Memory for an image of these sides, which are checked; all is the image's. */
int image_alloc(const char *path, int64_t height, int64_t width, int channels, struct image *image,
                struct err *err);

#endif
