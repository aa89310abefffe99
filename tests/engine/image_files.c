#include "tests/engine/image_files.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jpeglib.h>

#include "tests/lib/checks.h"

void image_files_jpeg(const char *path, const uint8_t *pixels, int height, int width, int channels)
{
    static const J_COLOR_SPACE spaces[] = {[1] = JCS_GRAYSCALE, [3] = JCS_RGB, [4] = JCS_CMYK};
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr manager;
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    jpeg.err = jpeg_std_error(&manager);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_height = (JDIMENSION)height;
    jpeg.image_width = (JDIMENSION)width;
    jpeg.input_components = channels;
    jpeg.in_color_space = spaces[channels];
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 95, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW row = (JSAMPROW)pixels + jpeg.next_scanline * (size_t)(width * channels);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    ck_assert_int_eq(fclose(file), 0);
}

void image_files_png(const char *path, const uint8_t *pixels, int height, int width, int channels)
{
    static const png_uint_32 formats[] = {
        [1] = PNG_FORMAT_GRAY, [2] = PNG_FORMAT_GA, [3] = PNG_FORMAT_RGB, [4] = PNG_FORMAT_RGBA};
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)width,
                     .height = (png_uint_32)height,
                     .format = formats[channels]};
    ck_assert_int_ne(png_image_write_to_file(&png, path, 0, pixels, 0, NULL), 0);
}

void image_files_cut(const char *path, long bytes)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    fclose(file);
    ck_assert_int_eq(truncate(path, bytes > 0 ? bytes : size / 2), 0);
}
