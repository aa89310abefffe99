/* csv.h: tables of numbers as text: RFC 4180, plain or gz.
 *
 * Cells are separated by commas, lines end in LF or CRLF, a cell may stand in quotes. Every line
 * has as many cells as the first; the first may name the columns. Blanks around a number and empty
 * lines at the end are forgiven, nothing else is.
 */
#ifndef ENGINE_DATA_CSV_H
#define ENGINE_DATA_CSV_H

#include <stdint.h>

#include "proto/err.h"
#include "proto/job.h"

struct csv {
    int64_t rows, columns; /* >= 1 */
    float *values;         /* [rows, columns] */
    char *names;           /* of the columns, each with its NUL; NULL: the file has none */
};

/* Reads a file whole. Errors: ERR_IO; ERR_NOMEM; ERR_DATA_INVALID naming path, line and column. */
int csv_read(const char *path, enum job_tristate header, struct csv *ret_csv, struct err *err);
void csv_done(struct csv *csv);
/* The index of the column of this name; -1: there is none; -2: there are several. */
int64_t csv_find(const struct csv *csv, const char *name);

#endif
