/* image_files.h: JPEG and PNG files, made for the checks of images. */
#ifndef TESTS_ENGINE_IMAGE_FILES_H
#define TESTS_ENGINE_IMAGE_FILES_H

#include <stddef.h>
#include <stdint.h>

/* Writes pixels [height, width, channels] to `path`. JPEG: 1 channel grey, 3 RGB, 4 CMYK, quality
 * 95; PNG: 1 grey, 2 with alpha, 3 RGB, 4 RGBA. */
void image_files_jpeg(const char *path, const uint8_t *pixels, int height, int width, int channels);
void image_files_png(const char *path, const uint8_t *pixels, int height, int width, int channels);
/* Leaves only the first `bytes` of a file; 0: half of it. */
void image_files_cut(const char *path, long bytes);

#endif
