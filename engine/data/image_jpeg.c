/* image_jpeg.c: JPEG files by libjpeg-turbo. Its errors end a decoder by a long jump, its warnings
 * are counted: a picture that is cut off is only a warning to it, and would be half grey. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

#include "engine/base/file.h"
#include "engine/data/image.h"

struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr manager;
    jmp_buf out;
    char message[JMSG_LENGTH_MAX];
    bool cut_off;
};

static void on_error(j_common_ptr jpeg)
{
    struct decoder *decoder = jpeg->client_data;
    decoder->manager.format_message(jpeg, decoder->message);
    longjmp(decoder->out, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    struct decoder *decoder = jpeg->client_data;
    int code = decoder->manager.msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
        decoder->cut_off = true;
}

static int read_header(struct decoder *decoder, const char *path, const struct file_map *file,
                       struct err *err)
{
    struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
    jpeg_mem_src(jpeg, file->at, (unsigned long)file->bytes);
    jpeg_read_header(jpeg, TRUE);
    if (jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK)
        return err_set(err, ERR_DATA_INVALID, "%s: a CMYK image, want RGB or grey", path);
    jpeg->out_color_space = jpeg->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    return 0;
}

static int read_pixels(struct decoder *decoder, const char *path, struct image *image,
                       struct err *err)
{
    struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
    jpeg_start_decompress(jpeg);
    int rc = image_alloc(path, jpeg->output_height, jpeg->output_width, jpeg->output_components,
                         image, err);
    if (rc != 0)
        return rc;
    while (jpeg->output_scanline < jpeg->output_height && !decoder->cut_off) {
        JSAMPROW row = image->pixels +
                       (size_t)jpeg->output_scanline * (size_t)(image->width * image->channels);
        jpeg_read_scanlines(jpeg, &row, 1);
    }
    if (!decoder->cut_off)
        jpeg_finish_decompress(jpeg);
    return 0;
}

/* All that a long jump may leave half done lies in memory that this function does not own. */
static int run(struct decoder *decoder, const char *path, const struct file_map *file,
               struct image *image, struct err *err)
{
    if (setjmp(decoder->out) != 0)
        return err_set(err, ERR_DATA_INVALID, "%s: %s", path, decoder->message);
    jpeg_create_decompress(&decoder->jpeg);
    int rc = read_header(decoder, path, file, err);
    return rc == 0 ? read_pixels(decoder, path, image, err) : rc;
}

int image_decode_jpeg(const char *path, const struct file_map *file, struct image *image,
                      struct err *err)
{
    struct decoder *decoder = calloc(1, sizeof *decoder);
    if (decoder == NULL)
        return err_set(err, ERR_NOMEM, "no memory to read %s", path);
    decoder->jpeg.err = jpeg_std_error(&decoder->manager);
    decoder->jpeg.client_data = decoder;
    decoder->manager.error_exit = on_error;
    decoder->manager.emit_message = on_message;
    int rc = run(decoder, path, file, image, err);
    if (decoder->cut_off)
        rc = err_set(err, ERR_DATA_INVALID, "%s: the JPEG image is cut off", path);
    jpeg_destroy_decompress(&decoder->jpeg);
    free(decoder);
    return rc;
}
