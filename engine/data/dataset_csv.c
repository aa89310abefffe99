/* dataset_csv.c: a table of numbers: one column is the target, the others in their order are the
 * input. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/data/csv.h"
#include "engine/data/dataset_format.h"

struct table {
    struct csv csv;
    int64_t target; /* the column; that behind the last: there is none */
};

static void table_close(void *state)
{
    struct table *table = state;
    csv_done(&table->csv);
    free(table);
}

static int find_target(struct table *table, const struct job_source *source, struct err *err)
{
    const struct csv *csv = &table->csv;
    const struct job_column *column = &source->target;
    if (column->name == NULL) {
        table->target = column->index < 0 ? csv->columns - 1 : column->index;
        if (table->target < csv->columns)
            return 0;
        return err_set(err, ERR_DATA_INVALID,
                       "%s: it has %lld columns, there is none of index %lld", source->path,
                       (long long)csv->columns, (long long)column->index);
    }
    table->target = csv_find(csv, column->name);
    if (table->target >= 0)
        return 0;
    return err_set(err, ERR_DATA_INVALID, "%s: %s has the name \"%.128s\"%s", source->path,
                   table->target == -1 ? "no column" : "more than one column", column->name,
                   csv->names == NULL ? ": its first line is numbers, no names" : "");
}

/* Predictions need no target: where the model takes all columns, none is one. */
static bool is_all_input(const struct table *table, const struct dataset_want *want)
{
    return want->predicting && want->inputs[0].shape.rank == 1 &&
           want->inputs[0].shape.dim[0] == table->csv.columns;
}

static int check_input(const struct table *table, const struct job_source *source,
                       const struct dataset_want *want, struct err *err)
{
    char found[SHAPE_TEXT], wanted[SHAPE_TEXT];
    const struct model_input *input = &want->inputs[0];
    const struct shape shape = SHAPE(table->csv.columns - 1);
    if (input->dtype != DTYPE_F32)
        return err_set(err, ERR_DATA_INVALID, "csv data is float32, the model's input is int64");
    if (shape_equal(&input->shape, &shape))
        return 0;
    return err_set(err, ERR_DATA_INVALID,
                   "%s: %lld columns beside the target make samples of shape %s, the model's input "
                   "is %s",
                   source->path, (long long)table->csv.columns - 1, shape_format(&shape, found),
                   shape_format(&input->shape, wanted));
}

static float target_of(const struct table *table, int64_t row)
{
    return table->csv.values[row * table->csv.columns + table->target];
}

static int check_labels(const struct table *table, const char *path,
                        const struct dataset_want *want, struct err *err)
{
    int rc = 0;
    for (int64_t i = 0; i < table->csv.rows && rc == 0; i++) {
        float target = target_of(table, i);
        int64_t label = target > -1e9f && target < 1e9f ? (int64_t)target : -1;
        if ((float)label != target)
            return err_set(err, ERR_DATA_INVALID, "%s: sample %lld has target %g, want a label",
                           path, (long long)i, (double)target);
        rc = dataset_check_labels(want, path, i, &label, 1, err);
    }
    return rc;
}

/* A label where the loss wants one, or a row of a class each; else the one value. */
static int check_target(const struct table *table, const struct job_source *source,
                        const struct dataset_want *want, bool *ret_labels, struct err *err)
{
    char text[SHAPE_TEXT];
    int64_t count = shape_count(&want->target);
    *ret_labels = want->target_dtype == DTYPE_I64 || (count > 1 && want->classes > 1);
    if (count > 1 && (want->target_dtype == DTYPE_I64 || !*ret_labels))
        return err_set(err, ERR_DATA_INVALID, "%s: one target a row, the loss wants %s",
                       source->path, shape_format(&want->target, text));
    return *ret_labels ? check_labels(table, source->path, want, err) : 0;
}

static int open_table(struct table *table, const struct job_source *source,
                      const struct dataset_want *want, const char *what, bool *ret_labels,
                      struct err *err)
{
    if (csv_read(source->path, source->header, &table->csv, err) != 0)
        return dataset_blame(err, what, "path");
    if (is_all_input(table, want)) {
        table->target = table->csv.columns;
        return 0;
    }
    if (find_target(table, source, err) != 0)
        return dataset_blame(err, what, "target");
    if (check_input(table, source, want, err) != 0)
        return dataset_blame(err, what, "path");
    return check_target(table, source, want, ret_labels, err) == 0
               ? 0
               : dataset_blame(err, what, "target");
}

static int open_csv(const struct job_source *source, const struct dataset_want *want,
                    const char *what, struct dataset_content *ret_content, struct err *err)
{
    struct table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return err_set(err, ERR_NOMEM, "no memory for a data set");
    bool labels = false;
    int rc = open_table(table, source, want, what, &labels, err);
    if (rc != 0) {
        table_close(table);
        return rc;
    }
    const int64_t identity[] = {table->csv.rows, table->csv.columns, table->target};
    uint64_t fingerprint = hash64(identity, sizeof identity, DATA_CSV);
    size_t bytes = (size_t)(table->csv.rows * table->csv.columns) * sizeof(float);
    *ret_content = (struct dataset_content){
        .state = table,
        .samples = table->csv.rows,
        .labels = labels,
        .untargeted = table->target == table->csv.columns,
        .fingerprint = hash64(table->csv.values, bytes, fingerprint),
    };
    return 0;
}

static int table_input(const void *state, int input, int64_t sample, void *ret_input,
                       struct err *err)
{
    (void)input;
    (void)err;
    const struct table *table = state;
    const float *row = table->csv.values + sample * table->csv.columns;
    size_t before = (size_t)table->target, all = (size_t)table->csv.columns;
    memcpy(ret_input, row, before * sizeof *row);
    if (before < all)
        memcpy((float *)ret_input + before, row + before + 1, (all - before - 1) * sizeof *row);
    return 0;
}

static int table_labels(const void *state, int64_t sample, int64_t *ret_labels, struct err *err)
{
    (void)err;
    *ret_labels = (int64_t)target_of(state, sample);
    return 0;
}

static int table_values(const void *state, int64_t sample, float *ret_target, struct err *err)
{
    (void)err;
    *ret_target = target_of(state, sample);
    return 0;
}

const struct dataset_format dataset_format_csv = {
    .open = open_csv,
    .close = table_close,
    .input = table_input,
    .labels = table_labels,
    .values = table_values,
};
