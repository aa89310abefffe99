/* csv.c: a file is read record by record, each at once turned into numbers. */
#include "engine/data/csv.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "engine/base/file.h"

enum { RECORD_MAX = 16 << 20, BUFFER_BYTES = 1 << 16 };

struct record { /* one line of the table, of more lines of the file where quotes say so */
    char *text; /* the cells, each with its NUL */
    size_t used, capacity;
    int64_t cells, line; /* line: where it begins, from 1 */
    bool empty;
};

struct reader {
    const char *path;
    gzFile gz;
    int64_t line; /* of the next byte */
    size_t at, end;
    struct record record;
    size_t capacity;    /* of the values, in elements */
    int64_t empty_line; /* the first of those just met; 0: none */
    uint8_t buffer[BUFFER_BYTES];
};

#define FAULT(reader, line, err, format, ...)                                                      \
    err_set(err, ERR_DATA_INVALID, "%s: line %" PRId64 format, (reader)->path, (line), __VA_ARGS__)

static int nomem(const struct reader *reader, struct err *err)
{
    return err_set(err, ERR_NOMEM, "no memory to read %s", reader->path);
}

static int refill(struct reader *reader, struct err *err)
{
    int n = gzread(reader->gz, reader->buffer, BUFFER_BYTES);
    int status;
    const char *reason = gzerror(reader->gz, &status);
    reader->at = 0;
    reader->end = n > 0 ? (size_t)n : 0;
    if (n >= 0 && status != Z_BUF_ERROR)
        return 0;
    if (status == Z_ERRNO)
        return err_errno(err, errno, "cannot read %s", reader->path);
    if (status == Z_MEM_ERROR)
        return nomem(reader, err);
    return err_set(err, ERR_DATA_INVALID, "%s: the gz data is %s", reader->path,
                   status == Z_BUF_ERROR ? "cut off" : reason);
}

/* The next byte, or EOF; it stays the next one. */
static int peek(struct reader *reader, int *ret_byte, struct err *err)
{
    int rc = reader->at == reader->end ? refill(reader, err) : 0;
    *ret_byte = rc == 0 && reader->at < reader->end ? reader->buffer[reader->at] : EOF;
    return rc;
}

static int keep(struct reader *reader, char byte, struct err *err)
{
    struct record *record = &reader->record;
    if (record->used == record->capacity) {
        size_t capacity = record->capacity == 0 ? 256 : 2 * record->capacity;
        if (capacity > RECORD_MAX)
            return FAULT(reader, record->line, err, " is longer than %d bytes", RECORD_MAX);
        char *text = realloc(record->text, capacity);
        if (text == NULL)
            return nomem(reader, err);
        record->text = text;
        record->capacity = capacity;
    }
    record->text[record->used++] = byte;
    return 0;
}

static int refuse_nul(const struct reader *reader, struct err *err)
{
    return FAULT(reader, reader->line, err, " has a %s byte", "NUL");
}

/* Up to the quote that ends the cell; the one that begins it has been taken. */
static int read_quoted(struct reader *reader, struct err *err)
{
    int64_t line = reader->line;
    for (;;) {
        int byte, rc = peek(reader, &byte, err);
        if (rc == 0 && byte == EOF)
            return FAULT(reader, line, err, " has a quote that never ends%s", "");
        if (rc != 0)
            return rc;
        reader->at++;
        reader->line += byte == '\n';
        if (byte == '"') {
            rc = peek(reader, &byte, err);
            if (rc != 0 || byte != '"')
                return rc;
            reader->at++;
        }
        rc = byte != '\0' ? keep(reader, (char)byte, err) : refuse_nul(reader, err);
        if (rc != 0)
            return rc;
    }
}

/* A cell without quotes: up to a comma, a line's end or the file's. */
static int read_plain(struct reader *reader, struct err *err)
{
    for (;;) {
        int byte, rc = peek(reader, &byte, err);
        if (rc != 0 || byte == EOF || byte == ',' || byte == '\n')
            return rc;
        reader->at++;
        rc = byte != '\0' ? keep(reader, (char)byte, err) : refuse_nul(reader, err);
        if (rc != 0)
            return rc;
    }
}

/* A CR before the line's end belongs to it. */
static void drop_return(struct record *record, size_t begin)
{
    if (record->used > begin && record->text[record->used - 1] == '\r')
        record->used--;
}

/* One cell and what ends it. *ret_last: it was the record's last. */
static int read_cell(struct reader *reader, bool *ret_last, struct err *err)
{
    struct record *record = &reader->record;
    size_t begin = record->used;
    int byte, rc = peek(reader, &byte, err);
    bool quoted = rc == 0 && byte == '"';
    if (quoted) {
        reader->at++;
        rc = read_quoted(reader, err);
        begin = record->used;
    }
    if (rc == 0)
        rc = read_plain(reader, err);
    if (rc == 0)
        rc = peek(reader, &byte, err);
    if (rc != 0)
        return rc;
    *ret_last = byte != ',';
    if (*ret_last)
        drop_return(record, begin);
    if (quoted && record->used > begin)
        return FAULT(reader, reader->line, err, " goes on behind a closing quote%s", "");
    reader->at += byte != EOF;
    reader->line += byte == '\n';
    record->empty = record->cells == 0 && *ret_last && !quoted && record->used == 0;
    record->cells++;
    return keep(reader, '\0', err);
}

/* *ret_more false: the file has ended. */
static int read_record(struct reader *reader, bool *ret_more, struct err *err)
{
    struct record *record = &reader->record;
    int byte, rc = peek(reader, &byte, err);
    *ret_more = byte != EOF;
    if (rc != 0 || byte == EOF)
        return rc;
    record->used = 0;
    record->cells = 0;
    record->line = reader->line;
    for (bool last = false; rc == 0 && !last;)
        rc = read_cell(reader, &last, err);
    return rc;
}

/* A finite decimal number, blanks around it allowed. */
static bool read_number(const char *cell, float *ret_number)
{
    char *end;
    cell += strspn(cell, " \t");
    size_t n = strspn(cell, "0123456789+-.eE");
    if (n == 0 || cell[n + strspn(cell + n, " \t")] != '\0')
        return false;
    double number = strtod(cell, &end);
    *ret_number = (float)number;
    return end == cell + n && isfinite(*ret_number);
}

static const char *name_at(const struct csv *csv, int64_t column)
{
    const char *name = csv->names;
    while (column-- > 0)
        name += strlen(name) + 1;
    return name;
}

static int refuse_number(const struct reader *reader, const struct csv *csv, int64_t column,
                         const char *cell, struct err *err)
{
    char name[96] = "";
    if (csv->names != NULL)
        snprintf(name, sizeof name, " (\"%.64s\")", name_at(csv, column));
    return FAULT(reader, reader->record.line, err, ", column %lld%s: \"%.64s\" is not a number%s",
                 (long long)column + 1, name, cell,
                 isalpha((unsigned char)cell[0]) ? "; classes are numbers too, from 0" : "");
}

/* Room for one more row. */
static int grow(struct reader *reader, struct csv *csv, struct err *err)
{
    size_t used = (size_t)(csv->rows * csv->columns), wanted = used + (size_t)csv->columns;
    if (wanted <= reader->capacity)
        return 0;
    size_t capacity = wanted < 1024 ? 1024 : 2 * wanted;
    float *values = realloc(csv->values, capacity * sizeof *values);
    if (values == NULL)
        return nomem(reader, err);
    csv->values = values;
    reader->capacity = capacity;
    return 0;
}

static int add_row(struct reader *reader, struct csv *csv, struct err *err)
{
    const struct record *record = &reader->record;
    if (record->cells != csv->columns)
        return FAULT(reader, record->line, err, " has %lld cells, the first has %lld",
                     (long long)record->cells, (long long)csv->columns);
    int rc = grow(reader, csv, err);
    const char *cell = record->text;
    for (int64_t i = 0; i < csv->columns && rc == 0; i++, cell += strlen(cell) + 1)
        if (!read_number(cell, &csv->values[csv->rows * csv->columns + i]))
            rc = refuse_number(reader, csv, i, cell, err);
    csv->rows += rc == 0;
    return rc;
}

static bool all_numbers(const struct record *record)
{
    const char *cell = record->text;
    float number;
    for (int64_t i = 0; i < record->cells; i++, cell += strlen(cell) + 1)
        if (!read_number(cell, &number))
            return false;
    return true;
}

static int take_first(struct reader *reader, enum job_tristate header, struct csv *csv,
                      struct err *err)
{
    struct record *record = &reader->record;
    csv->columns = record->cells;
    if (header == JOB_FALSE || (header == JOB_AUTO && all_numbers(record)))
        return add_row(reader, csv, err);
    csv->names = record->text;
    *record = (struct record){.text = NULL};
    return 0;
}

static int take_record(struct reader *reader, enum job_tristate header, struct csv *csv,
                       struct err *err)
{
    const struct record *record = &reader->record;
    if (record->empty) {
        if (reader->empty_line == 0)
            reader->empty_line = record->line;
        return 0;
    }
    if (reader->empty_line != 0)
        return FAULT(reader, reader->empty_line, err, " is empty%s", "");
    return csv->columns == 0 ? take_first(reader, header, csv, err) : add_row(reader, csv, err);
}

/* A byte order mark, as spreadsheets write it. */
static void skip_mark(struct reader *reader)
{
    if (reader->end >= 3 && memcmp(reader->buffer, "\xef\xbb\xbf", 3) == 0)
        reader->at = 3;
}

static int read_all(struct reader *reader, enum job_tristate header, struct csv *csv,
                    struct err *err)
{
    bool more = true;
    int rc = refill(reader, err);
    skip_mark(reader);
    while (rc == 0 && more) {
        rc = read_record(reader, &more, err);
        if (rc == 0 && more)
            rc = take_record(reader, header, csv, err);
    }
    if (rc == 0 && csv->rows == 0)
        rc = err_set(err, ERR_DATA_INVALID, "%s: there are no rows", reader->path);
    return rc;
}

static int read_gz(struct reader *reader, int fd, enum job_tristate header, struct csv *csv,
                   struct err *err)
{
    reader->gz = gzdopen(fd, "rb");
    if (reader->gz == NULL) {
        close(fd);
        return nomem(reader, err);
    }
    gzbuffer(reader->gz, BUFFER_BYTES);
    int rc = read_all(reader, header, csv, err);
    gzclose_r(reader->gz);
    free(reader->record.text);
    return rc;
}

int csv_read(const char *path, enum job_tristate header, struct csv *ret_csv, struct err *err)
{
    int fd;
    int64_t bytes;
    int rc = file_open(path, &fd, &bytes, err);
    if (rc != 0)
        return rc;
    struct csv csv = {.rows = 0};
    struct reader *reader = malloc(sizeof *reader);
    if (reader == NULL) {
        close(fd);
        return err_set(err, ERR_NOMEM, "no memory to read %s", path);
    }
    *reader = (struct reader){.path = path, .line = 1};
    rc = read_gz(reader, fd, header, &csv, err);
    free(reader);
    if (rc == 0)
        *ret_csv = csv;
    else
        csv_done(&csv);
    return rc;
}

void csv_done(struct csv *csv)
{
    free(csv->values);
    free(csv->names);
    *csv = (struct csv){.rows = 0};
}

int64_t csv_find(const struct csv *csv, const char *name)
{
    int64_t found = -1;
    for (int64_t i = 0; csv->names != NULL && i < csv->columns; i++) {
        if (strcmp(name_at(csv, i), name) != 0)
            continue;
        if (found >= 0)
            return -2;
        found = i;
    }
    return found;
}
