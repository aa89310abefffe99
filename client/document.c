/* document.c: see document.h. */
#include "client/document.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/locate.h"
#include "proto/json.h"
#include "proto/limits.h"

/* Everything up to one byte more than a document may have. */
static int read_all(FILE *file, struct document *document, struct err *err)
{
    size_t size = 0;
    do {
        size = size == 0 ? 65536 : size * 4;
        char *grown = realloc(document->text, size);
        if (grown == NULL)
            return err_set(err, ERR_NOMEM, "out of memory");
        document->text = grown;
        document->size += fread(grown + document->size, 1, size - document->size, file);
    } while (document->size == size && size <= LIMIT_DOCUMENT_BYTES);
    if (ferror(file))
        return err_errno(err, errno, "cannot read %s", document->name);
    if (document->size > LIMIT_DOCUMENT_BYTES)
        return err_set(err, ERR_JOB_INVALID, "a job document has at most %d bytes",
                       LIMIT_DOCUMENT_BYTES);
    return 0;
}

int document_read(const char *file, struct document *ret, struct err *err)
{
    bool standard = strcmp(file, "-") == 0;
    *ret = (struct document){.name = standard ? "<stdin>" : file};
    FILE *stream = standard ? stdin : fopen(file, "re");
    if (stream == NULL)
        return err_errno(err, errno, "cannot open %s", file);
    int rc = read_all(stream, ret, err);
    if (!standard)
        fclose(stream);
    if (rc == 0)
        rc = json_load(ret->text, ret->size, ERR_JOB_INVALID, &ret->root, err);
    return rc < 0 ? rc : job_from_json(ret->root, &ret->job, err);
}

void document_done(struct document *document)
{
    free(document->text);
    json_decref(document->root);
    job_free(document->job);
    *document = (struct document){0};
}

static bool about_document(const struct document *document, const struct err *err)
{
    return document->text != NULL && (err->path[0] != '\0' || err->code == ERR_JOB_INVALID ||
                                      err->code == ERR_JOB_UNSUPPORTED);
}

const char *document_where(const struct document *document, const struct err *err, char *buf,
                           size_t size)
{
    struct position at;
    buf[0] = '\0';
    if (!about_document(document, err))
        return err->message;
    const char *rest = err->path[0] == '\0' ? locate_in_message(err->message, &at) : NULL;
    if (rest != NULL ||
        (err->path[0] != '\0' && locate_pointer(document->text, document->size, err->path, &at)))
        snprintf(buf, size, "%s:%zu:%zu: ", document->name, at.line, at.column);
    else
        snprintf(buf, size, "%s: ", document->name);
    return rest != NULL ? rest : err->message;
}
