/* table.c: see table.h. */
#define _GNU_SOURCE /* vasprintf */
#include "client/render/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 32, SHRUNK_LEAST = 4 };

struct table_cell {
    char *s;
    enum color color;
};

void table_init(struct table *table, const struct style *style, const struct table_column *columns,
                size_t n_columns)
{
    *table = (struct table){.style = style,
                            .columns = columns,
                            .n_columns = n_columns < COLUMNS_MAX ? n_columns : COLUMNS_MAX,
                            .gap = 2};
}

void table_done(struct table *table)
{
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i].s);
    free(table->cells);
    table->cells = NULL;
    table->n_cells = 0;
}

static bool reserve_cell(struct table *table)
{
    if (table->n_cells < table->size)
        return true;
    size_t size = table->size * 2 + 64;
    struct table_cell *grown = realloc(table->cells, size * sizeof *grown);
    if (grown == NULL)
        return false;
    table->cells = grown;
    table->size = size;
    return true;
}

void table_cell(struct table *table, enum color color, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *raw = NULL;
    struct text safe = {0};
    if (vasprintf(&raw, format, args) < 0)
        raw = NULL;
    va_end(args);
    text_add(&safe, "");
    text_safe(&safe, table->style, raw);
    free(raw);
    if (raw == NULL || safe.failed || !reserve_cell(table)) {
        table->failed = true;
        text_done(&safe);
        return;
    }
    table->cells[table->n_cells++] = (struct table_cell){safe.s, color};
}

static size_t cell_columns(const char *s)
{
    return text_columns(s, strlen(s));
}

static void measure(const struct table *table, size_t *width)
{
    for (size_t c = 0; c < table->n_columns; c++)
        width[c] = cell_columns(table->columns[c].title);
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t w = cell_columns(table->cells[i].s);
        size_t *widest = &width[i % table->n_columns];
        *widest = w > *widest ? w : *widest;
    }
}

static void shrink(const struct table *table, size_t *width)
{
    size_t total = (table->n_columns - 1) * table->gap;
    for (size_t c = 0; c < table->n_columns; c++)
        total += width[c];
    while (total > table->style->columns) {
        size_t widest = table->n_columns;
        for (size_t c = 0; c < table->n_columns; c++)
            if (table->columns[c].shrink && width[c] > SHRUNK_LEAST &&
                (widest == table->n_columns || width[c] > width[widest]))
                widest = c;
        if (widest == table->n_columns)
            return;
        width[widest]--;
        total--;
    }
}

static void draw_cell(const struct table *table, struct text *text, size_t column, size_t width,
                      const struct table_cell *cell)
{
    bool last = column + 1 == table->n_columns;
    struct text cut = {0};
    text_clip(&cut, table->style, cell->s, width);
    size_t used = cell_columns(text_str(&cut));
    size_t blanks = used < width ? width - used : 0;
    if (table->columns[column].right)
        text_repeat(text, " ", blanks);
    text_paint(text, table->style, cell->color, text_str(&cut));
    if (!table->columns[column].right && !last)
        text_repeat(text, " ", blanks);
    if (!last)
        text_repeat(text, " ", table->gap);
    text->failed |= cut.failed;
    text_done(&cut);
}

void table_draw(const struct table *table, struct text *text)
{
    size_t width[COLUMNS_MAX];
    measure(table, width);
    shrink(table, width);
    for (size_t c = 0; c < table->n_columns; c++) {
        /* draw_cell only reads it */
        struct table_cell title = {(char *)table->columns[c].title, COLOR_DIM};
        draw_cell(table, text, c, width[c], &title);
    }
    text_add(text, "\n");
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t c = i % table->n_columns;
        draw_cell(table, text, c, width[c], &table->cells[i]);
        if (c + 1 == table->n_columns)
            text_add(text, "\n");
    }
    text->failed |= table->failed;
}
