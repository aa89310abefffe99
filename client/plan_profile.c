/* plan_profile.c: see plan_profile.h. A table is a list of rows, each the sum of some nodes. */
#include "client/plan_profile.h"

#include <stdlib.h>
#include <string.h>

#include "client/render/table.h"
#include "client/render/units.h"

enum { ROWS_SHOWN = 25 };

struct row {
    const char *name, *detail; /* borrowed from the JSON */
    size_t nodes;
    double seconds, flops, bytes, floor;
};

struct rows {
    struct row *list; /* room for a row a node */
    size_t n;
};

static const char *string(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* A row's name and detail: what nodes have to share to be in one. */
static void by_op(const json_t *node, struct row *row)
{
    row->name = string(node, "op");
    row->detail = "";
}

/* What is no layer's by its name (the loss), but updates and reductions as one each. */
static void by_layer(const json_t *node, struct row *row)
{
    const char *phase = string(node, "phase");
    bool one = strcmp(phase, "update") == 0 || strcmp(phase, "reduce") == 0;
    row->name = one ? "" : string(node, "name");
    row->detail = one ? phase : "";
}

static void by_node(const json_t *node, struct row *row)
{
    row->name = string(node, "op");
    row->detail = string(node, "name");
}

static struct row *find(const struct rows *rows, const struct row *wanted)
{
    for (size_t i = 0; i < rows->n; i++)
        if (strcmp(rows->list[i].name, wanted->name) == 0 &&
            strcmp(rows->list[i].detail, wanted->detail) == 0)
            return &rows->list[i];
    return NULL;
}

static void add_node(struct rows *rows, void (*name)(const json_t *, struct row *),
                     const json_t *node)
{
    struct row wanted = {0};
    name(node, &wanted);
    struct row *row = find(rows, &wanted);
    if (row == NULL) {
        row = &rows->list[rows->n++];
        *row = wanted;
    }
    row->nodes++;
    row->seconds += number(node, "seconds");
    row->flops += number(node, "flops");
    row->bytes += number(node, "bytes");
    row->floor += number(node, "floor_seconds");
}

static int slower_first(const void *a, const void *b)
{
    double x = ((const struct row *)a)->seconds, y = ((const struct row *)b)->seconds;
    return (x < y) - (x > y);
}

/* "-" of a node that takes no time, or computes nothing. */
static void add_rate(struct table *table, double amount, double seconds)
{
    char buf[UNITS_SIZE];
    if (amount > 0 && seconds > 0)
        table_cell(table, COLOR_NONE, "%s", units_si(amount / seconds, buf));
    else
        table_cell(table, COLOR_NONE, "-");
}

static void add_row(struct table *table, const struct row *row, double all)
{
    table_cell(table, COLOR_BOLD, "%s", row->name[0] != '\0' ? row->name : "-");
    table_cell(table, COLOR_NONE, "%s", row->detail);
    table_cell(table, COLOR_NONE, "%zu", row->nodes);
    table_cell(table, COLOR_NONE, "%.3f", row->seconds * 1e3);
    table_cell(table, COLOR_NONE, "%.1f %%", all > 0 ? 100 * row->seconds / all : 0);
    add_rate(table, row->flops, row->seconds);
    add_rate(table, row->bytes, row->seconds);
    if (row->floor > 0 && row->seconds > 0)
        table_cell(table, COLOR_NONE, "%.2f", row->floor / row->seconds);
    else
        table_cell(table, COLOR_NONE, "-");
}

static void add_table(struct text *text, const struct style *style, const json_t *profile,
                      const char *title, const char *detail,
                      void (*name)(const json_t *, struct row *))
{
    const struct table_column columns[] = {
        {.title = title, .shrink = true},    {.title = detail, .shrink = true},
        {.title = "NODES", .right = true},   {.title = "MS", .right = true},
        {.title = "SHARE", .right = true},   {.title = "FLOP/S", .right = true},
        {.title = "BYTES/S", .right = true}, {.title = "OF FLOOR", .right = true},
    };
    const json_t *nodes = json_object_get(profile, "nodes");
    struct rows rows = {.list = calloc(json_array_size(nodes) + 1, sizeof *rows.list)};
    struct table table;
    size_t i;
    json_t *node;
    if (rows.list == NULL) {
        text->failed = true;
        return;
    }
    json_array_foreach((json_t *)nodes, i, node) add_node(&rows, name, node);
    qsort(rows.list, rows.n, sizeof *rows.list, slower_first);
    table_init(&table, style, columns, sizeof columns / sizeof *columns);
    for (i = 0; i < rows.n && i < ROWS_SHOWN; i++)
        add_row(&table, &rows.list[i], number(profile, "seconds"));
    text_add(text, "\n");
    table_draw(&table, text);
    table_done(&table);
    if (rows.n > ROWS_SHOWN)
        text_fmt(text, "and %zu quicker ones (--json has them)\n", rows.n - ROWS_SHOWN);
    free(rows.list);
}

void plan_add_profile(struct text *text, const struct style *style, const json_t *profile)
{
    char flops[UNITS_SIZE], bytes[UNITS_SIZE];
    double seconds = number(profile, "seconds"), floor = number(profile, "floor_seconds");
    if (profile == NULL)
        return;
    add_table(text, style, profile, "OP", "", by_op);
    add_table(text, style, profile, "LAYER", "", by_layer);
    add_table(text, style, profile, "OP", "LAYER", by_node);
    text_fmt(text, "\na step of %.4g ms on %s: %.2f of the floor", seconds * 1e3,
             string(profile, "device"), seconds > 0 ? floor / seconds : 0);
    text_fmt(text, " (%sFLOP/s and %sB/s, measured)\n",
             units_si(number(profile, "flops_per_second"), flops),
             units_si(number(profile, "bytes_per_second"), bytes));
}
