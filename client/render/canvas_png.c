/* canvas_png.c: a canvas as PNG. cairo keeps an error that happens while drawing, and saving
 * reports it. */
#include <cairo.h>
#include <errno.h>
#include <fontconfig/fontconfig.h>
#include <math.h>
#include <stdlib.h>

#include "client/render/canvas.h"

const int canvas_png_scale = 2;

struct png {
    struct canvas canvas;
    cairo_surface_t *surface;
    cairo_t *cairo;
};

static cairo_t *cairo_of(struct canvas *canvas)
{
    return ((struct png *)canvas)->cairo;
}

static void set_color(cairo_t *cairo, unsigned color)
{
    cairo_set_source_rgb(cairo, (color >> 16 & 255) / 255.0, (color >> 8 & 255) / 255.0,
                         (color & 255) / 255.0);
}

static void png_line(struct canvas *canvas, const struct canvas_point *points, size_t n,
                     const struct canvas_pen *pen)
{
    cairo_t *cairo = cairo_of(canvas);
    for (size_t i = 0; i < n; i++)
        cairo_line_to(cairo, points[i].x, points[i].y); /* the first one moves there */
    set_color(cairo, pen->color);
    cairo_set_line_width(cairo, pen->width);
    cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
    cairo_set_dash(cairo, pen->dash, pen->dash[0] > 0 ? 2 : 0, 0);
    cairo_stroke(cairo);
}

static void png_box(struct canvas *canvas, struct canvas_point at, double width, double height,
                    unsigned color)
{
    cairo_t *cairo = cairo_of(canvas);
    cairo_rectangle(cairo, at.x, at.y, width, height);
    set_color(cairo, color);
    cairo_fill(cairo);
}

static void png_disc(struct canvas *canvas, struct canvas_point at, double radius, unsigned color)
{
    cairo_t *cairo = cairo_of(canvas);
    cairo_new_sub_path(cairo);
    cairo_arc(cairo, at.x, at.y, radius, 0, 2 * M_PI);
    set_color(cairo, color);
    cairo_fill(cairo);
}

static void png_write(struct canvas *canvas, const struct canvas_label *label)
{
    static const double before[] = {0, 0.5, 1}; /* how much of it is left of its place */
    cairo_t *cairo = cairo_of(canvas);
    cairo_text_extents_t extents;
    cairo_save(cairo);
    cairo_select_font_face(cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           label->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cairo, label->size);
    cairo_text_extents(cairo, label->words, &extents);
    cairo_translate(cairo, label->at.x, label->at.y);
    if (label->upright)
        cairo_rotate(cairo, -M_PI / 2);
    cairo_move_to(cairo, -before[label->anchor] * extents.x_advance, 0);
    set_color(cairo, 0);
    cairo_show_text(cairo, label->words);
    cairo_restore(cairo);
    cairo_new_path(cairo);
}

static const struct canvas_def png_def = {png_line, png_box, png_disc, png_write};

int canvas_png_new(double width, double height, struct canvas **ret_canvas, struct err *err)
{
    struct png *png = calloc(1, sizeof *png);
    if (png == NULL)
        return err_set(err, ERR_NOMEM, "out of memory for the picture");
    png->canvas.def = &png_def;
    png->surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(width * canvas_png_scale),
                                   (int)ceil(height * canvas_png_scale));
    png->cairo = cairo_create(png->surface);
    if (cairo_status(png->cairo) != CAIRO_STATUS_SUCCESS) {
        canvas_png_free(&png->canvas);
        return err_set(err, ERR_NOMEM, "out of memory for the picture");
    }
    cairo_scale(png->cairo, canvas_png_scale, canvas_png_scale);
    png_box(&png->canvas, (struct canvas_point){0, 0}, width, height, 0xffffff);
    *ret_canvas = &png->canvas;
    return 0;
}

static cairo_status_t write_bytes(void *closure, const unsigned char *data, unsigned int n)
{
    return fwrite(data, 1, n, closure) == n ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

int canvas_png_save(struct canvas *canvas, FILE *out, struct err *err)
{
    struct png *png = (struct png *)canvas;
    cairo_status_t status = cairo_status(png->cairo);
    errno = 0;
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_write_to_png_stream(png->surface, write_bytes, out);
    if (status == CAIRO_STATUS_SUCCESS)
        return 0;
    if (status == CAIRO_STATUS_WRITE_ERROR && errno != 0)
        return err_errno(err, errno, "cannot write the picture");
    return err_set(err, status == CAIRO_STATUS_NO_MEMORY ? ERR_NOMEM : ERR_IO,
                   "cannot make the picture: %s", cairo_status_to_string(status));
}

void canvas_png_free(struct canvas *canvas)
{
    struct png *png = (struct png *)canvas;
    if (png == NULL)
        return;
    cairo_destroy(png->cairo);
    cairo_surface_destroy(png->surface);
    /* Both keep fonts, which nobody draws with any more. */
    cairo_debug_reset_static_data();
    FcFini();
    free(png);
}
