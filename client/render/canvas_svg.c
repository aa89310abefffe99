/* canvas_svg.c: a canvas as SVG: words stay words, that a reader can search and a program can read.
 */
#include "client/render/canvas.h"

/* Our own words too: a job's name is somebody else's. */
static void add_escaped(struct text *text, const char *words)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
    for (const char *at = words; *at != '\0'; at++) {
        size_t i = 0;
        while (i < sizeof entities / sizeof *entities && entities[i].c != *at)
            i++;
        if (i < sizeof entities / sizeof *entities)
            text_add(text, entities[i].entity);
        else
            text_addn(text, at, 1);
    }
}

static struct text *text_of(struct canvas *canvas)
{
    return ((struct canvas_svg *)canvas)->text;
}

static void svg_line(struct canvas *canvas, const struct canvas_point *points, size_t n,
                     const struct canvas_pen *pen)
{
    struct text *text = text_of(canvas);
    text_fmt(text, "<polyline fill=\"none\" stroke=\"#%06x\" stroke-width=\"%g\"", pen->color,
             pen->width);
    text_add(text, " stroke-linejoin=\"round\"");
    if (pen->dash[0] > 0)
        text_fmt(text, " stroke-dasharray=\"%g %g\"", pen->dash[0], pen->dash[1]);
    text_add(text, " points=\"");
    for (size_t i = 0; i < n; i++)
        text_fmt(text, "%s%.2f,%.2f", i > 0 ? " " : "", points[i].x, points[i].y);
    text_add(text, "\"/>\n");
}

static void svg_box(struct canvas *canvas, struct canvas_point at, double width, double height,
                    unsigned color)
{
    text_fmt(text_of(canvas),
             "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%06x\"/>\n", at.x,
             at.y, width, height, color);
}

static void svg_disc(struct canvas *canvas, struct canvas_point at, double radius, unsigned color)
{
    text_fmt(text_of(canvas), "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%g\" fill=\"#%06x\"/>\n", at.x,
             at.y, radius, color);
}

static void svg_write(struct canvas *canvas, const struct canvas_label *label)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    struct text *text = text_of(canvas);
    text_fmt(text, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%g\" text-anchor=\"%s\"", label->at.x,
             label->at.y, label->size, anchors[label->anchor]);
    if (label->bold)
        text_add(text, " font-weight=\"bold\"");
    if (label->upright)
        text_fmt(text, " transform=\"rotate(-90 %.2f %.2f)\"", label->at.x, label->at.y);
    text_add(text, ">");
    add_escaped(text, label->words);
    text_add(text, "</text>\n");
}

static const struct canvas_def svg_def = {svg_line, svg_box, svg_disc, svg_write};

void canvas_svg_begin(struct canvas_svg *svg, struct text *text, double width, double height)
{
    *svg = (struct canvas_svg){{&svg_def}, text};
    text_fmt(text,
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
             "viewBox=\"0 0 %g %g\" font-family=\"sans-serif\">\n",
             width, height, width, height);
    svg_box(&svg->canvas, (struct canvas_point){0, 0}, width, height, 0xffffff);
}

void canvas_svg_end(struct canvas_svg *svg)
{
    text_add(svg->text, "</svg>\n");
}
