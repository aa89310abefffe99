/* record.c: see record.h. */
#include "engine/train/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "proto/json.h"

enum {
    ROW_BYTES = 6 * (LIMIT_NAME_BYTES + 16) + 512 /* a byte is at most six in JSON: \u0001 */
};
static const char file_name[] = "record.jsonl";

static int quote_names(const struct model *model, struct record *record, struct err *err)
{
    record->names = calloc((size_t)model->n_recorded + 1, sizeof *record->names);
    if (record->names == NULL)
        return err_set(err, ERR_NOMEM, "no memory for what is recorded");
    for (; record->n_names < model->n_recorded; record->n_names++) {
        json_t *name = json_string(model->recorded[record->n_names].name);
        record->names[record->n_names] = name != NULL ? json_line(name) : NULL;
        json_decref(name);
        if (record->names[record->n_names] == NULL)
            return err_set(err, ERR_NOMEM, "no memory for what is recorded");
    }
    return 0;
}

int record_open(const char *output, const struct strategy_config *config, int64_t step,
                struct record *ret_record, struct err *err)
{
    struct record record = {.rows = {.fd = -1}, .devices = config->devices};
    char path[LIMIT_PATH_BYTES];
    int rc = file_path(path, err, "%s/%s", output, file_name);
    if (rc == 0)
        rc = quote_names(config->model, &record, err);
    if (rc == 0 && (record.n_names > 0 || access(path, F_OK) == 0))
        rc = step_rows_open(output, file_name, step, NULL, NULL, &record.rows, err);
    if (rc == 0)
        *ret_record = record;
    else
        record_close(&record);
    return rc;
}

static int write_one(struct record *record, int64_t step, int64_t epoch,
                     const struct strategy_record *one, struct err *err)
{
    static const char *const keys[STATISTIC_COUNT] = {
        [STATISTIC_MEAN] = ", \"mean\": ",      [STATISTIC_STD] = ", \"std\": ",
        [STATISTIC_NORM] = ", \"norm\": ",      [STATISTIC_MAX] = ", \"max_abs\": ",
        [STATISTIC_NANS] = ", \"nan_count\": ",
    };
    char text[ROW_BYTES];
    int n =
        snprintf(text, sizeof text,
                 "{\"step\": %" PRId64 ", \"epoch\": %" PRId64 ", \"name\": %s, \"device\": \"%s\"",
                 step, epoch, record->names[one->recorded], record->devices[one->device].name);
    for (int i = 0; i < STATISTIC_COUNT; i++)
        n += step_rows_number(text + n, sizeof text - (size_t)n, keys[i], one->statistics[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, "}\n");
    return step_rows_write(&record->rows, text, (size_t)n, err);
}

int record_write(struct record *record, int64_t step, int64_t epoch,
                 const struct strategy_record *records, size_t n, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = write_one(record, step, epoch, &records[i], err);
    return rc;
}

int record_sync(struct record *record, struct err *err)
{
    return record->rows.fd >= 0 ? step_rows_sync(&record->rows, err) : 0;
}

void record_close(struct record *record)
{
    step_rows_close(&record->rows);
    for (int i = 0; i < record->n_names; i++)
        free(record->names[i]);
    free(record->names);
    record->names = NULL;
    record->n_names = 0;
}
