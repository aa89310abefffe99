/* document.c: see document.h. */
#include "engine/worker/document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* At most one byte more than a document may have: the parser says what is too long. */
static int read_all(FILE *file, char **ret_text, size_t *ret_size, struct err *err)
{
    size_t limit = LIMIT_DOCUMENT_BYTES + 1, size = 0, room = 64 << 10;
    char *text = NULL;
    for (;;) {
        char *grown = realloc(text, room);
        if (grown == NULL) {
            free(text);
            return err_set(err, ERR_NOMEM, "out of memory");
        }
        text = grown;
        size += fread(text + size, 1, room - size, file);
        if (size < room || size >= limit)
            break;
        room = 2 * room < limit ? 2 * room : limit;
    }
    if (ferror(file)) {
        free(text);
        return err_errno(err, errno, "cannot read the document");
    }
    *ret_text = text;
    *ret_size = size;
    return 0;
}

static int read_document(const char *path, char **ret_text, size_t *ret_size, struct err *err)
{
    if (strcmp(path, "-") == 0)
        return read_all(stdin, ret_text, ret_size, err);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return err_errno(err, errno, "cannot open the document");
    int rc = read_all(file, ret_text, ret_size, err);
    fclose(file);
    return rc;
}

static void free_list(char **list, size_t n)
{
    for (size_t i = 0; list != NULL && i < n; i++)
        free(list[i]);
    free(list);
}

static int split_list(const char *text, char **list, size_t *n, struct err *err)
{
    for (const char *at = text; at != NULL;) {
        size_t size = strcspn(at, ",");
        if (size == 0 || *n == LIMIT_DEVICES)
            return err_set(err, ERR_USAGE, "--devices %.128s: %s", text,
                           size == 0 ? "a name is empty" : "too many devices");
        list[*n] = strndup(at, size);
        if (list[(*n)++] == NULL)
            return err_set(err, ERR_NOMEM, "out of memory");
        at = at[size] == ',' ? at + size + 1 : NULL;
    }
    return 0;
}

/* As if the document named these devices. */
static int override_devices(struct job *job, const char *text, struct err *err)
{
    size_t n = 0;
    char **list = calloc(LIMIT_DEVICES, sizeof *list);
    if (list == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    int rc = split_list(text, list, &n, err);
    if (rc == 0)
        rc = job_set_devices(job, list, n, err);
    if (rc != 0)
        free_list(list, n);
    return rc;
}

int document_load(const char *path, const char *devices, struct job **ret_job, struct err *err)
{
    char *text;
    size_t size;
    struct job *job = NULL;
    int rc = read_document(path, &text, &size, err);
    if (rc != 0)
        return rc;
    rc = job_parse(text, size, &job, err);
    free(text);
    if (rc == 0 && devices != NULL)
        rc = override_devices(job, devices, err);
    if (rc != 0)
        job_free(job);
    else
        *ret_job = job;
    return rc;
}
