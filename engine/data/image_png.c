/* image_png.c: PNG files by libpng's simplified reader. */
#include <png.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/data/image.h"

static int refuse(const char *path, png_image *png, struct err *err)
{
    int rc = err_set(err, ERR_DATA_INVALID, "%s: %s", path, png->message);
    png_image_free(png);
    return rc;
}

/* Pixels with the channel of transparency, which is behind the others, dropped. */
static void drop_alpha(const uint8_t *from, struct image *image)
{
    size_t channels = (size_t)image->channels;
    for (size_t i = 0; i < (size_t)(image->height * image->width); i++)
        memcpy(image->pixels + i * channels, from + i * (channels + 1), channels);
}

int image_decode_png(const char *path, const struct file_map *file, struct image *image,
                     struct err *err)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (png_image_begin_read_from_memory(&png, file->at, file->bytes) == 0)
        return refuse(path, &png, err);
    bool color = (png.format & PNG_FORMAT_FLAG_COLOR) != 0;
    png.format = color ? PNG_FORMAT_RGBA : PNG_FORMAT_GA;
    struct image with_alpha = {.pixels = NULL};
    int rc = image_alloc(path, png.height, png.width, color ? 4 : 2, &with_alpha, err);
    if (rc == 0)
        rc = image_alloc(path, png.height, png.width, color ? 3 : 1, image, err);
    if (rc != 0)
        png_image_free(&png);
    else if (png_image_finish_read(&png, NULL, with_alpha.pixels, 0, NULL) == 0)
        rc = refuse(path, &png, err);
    else
        drop_alpha(with_alpha.pixels, image);
    image_done(&with_alpha);
    return rc;
}
