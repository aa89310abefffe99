/* table.h: columns of text, sized by what they hold.
 *
 *     struct table table;
 *     table_init(&table, &style, columns, n_columns);
 *     table_cell(&table, "%s", name); …          // row by row; untrusted words are made safe
 *     table_draw(&table, &text);
 *     table_done(&table);
 *
 * Pure. An allocation that fails shows as text->failed after table_draw.
 */
#ifndef CLIENT_RENDER_TABLE_H
#define CLIENT_RENDER_TABLE_H

#include "client/render/style.h"
#include "client/render/text.h"

struct table_column {
    const char *title;
    bool right;  /* aligned right: numbers */
    bool shrink; /* may be cut when the line gets too long */
};

struct table_cell; /* a string and its colour */

struct table {
    const struct style *style;
    const struct table_column *columns;
    size_t n_columns;
    size_t gap; /* blanks between columns: 2 */
    struct table_cell *cells;
    size_t n_cells, size;
    bool failed;
};

void table_init(struct table *table, const struct style *style, const struct table_column *columns,
                size_t n_columns);
void table_done(struct table *table);

/* Adds the next cell, filling rows from the left. Everything in it is made safe (text_safe). */
void table_cell(struct table *table, enum color color, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds title and rows to `text`, a line each. Where they are wider than the style's columns the
 * columns that may shrink do so, the widest first, down to 4. */
void table_draw(const struct table *table, struct text *text);

#endif
