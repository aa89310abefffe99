/* npy.c: a magic number, a version, the header's size, a Python literal, the elements:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
 *
 * Only what numpy.save writes of plain arrays is read; what else NumPy could mean is refused by its
 * name.
 */
#include "engine/data/npy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/file.h"

enum { MAGIC_BYTES = 8, HEADER_MAX_BYTES = 1 << 20 };

static const struct {
    const char *code; /* behind the byte order */
    enum array_kind kind;
} types[] = {
    {"u1", ARRAY_UINT8},   {"b1", ARRAY_UINT8},   {"i1", ARRAY_INT8},  {"u2", ARRAY_UINT16},
    {"i2", ARRAY_INT16},   {"u4", ARRAY_UINT32},  {"i4", ARRAY_INT32}, {"i8", ARRAY_INT64},
    {"f4", ARRAY_FLOAT32}, {"f8", ARRAY_FLOAT64},
};

struct header {
    const char *path;
    const char *at, *end;             /* what is still to be read of it */
    bool descr, fortran_order, shape; /* given */
    struct array *array;
};

#define FAULT(header, err, ...) fault((header)->path, err, __VA_ARGS__)

static int __attribute__((format(printf, 3, 4)))
fault(const char *path, struct err *err, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return err_set(err, ERR_DATA_INVALID, "%s: %s", path, message);
}

static void skip_space(struct header *header)
{
    while (header->at < header->end && (*header->at == ' ' || *header->at == '\n'))
        header->at++;
}

/* Takes a word, if it is next. */
static bool take(struct header *header, const char *word)
{
    size_t n = strlen(word);
    skip_space(header);
    if ((size_t)(header->end - header->at) < n || memcmp(header->at, word, n) != 0)
        return false;
    header->at += n;
    return true;
}

static int expect(struct header *header, const char *word, struct err *err)
{
    if (take(header, word))
        return 0;
    int left = (int)(header->end - header->at);
    return FAULT(header, err, "the header has \"%.*s\" where \"%s\" should be",
                 left < 24 ? left : 24, header->at, word);
}

/* A string between single quotes. */
static int read_string(struct header *header, char *ret_text, size_t size, struct err *err)
{
    int rc = expect(header, "'", err);
    if (rc != 0)
        return rc;
    const char *begin = header->at;
    const char *quote = memchr(begin, '\'', (size_t)(header->end - begin));
    if (quote == NULL || (size_t)(quote - begin) >= size)
        return FAULT(header, err, "the header has a string without an end");
    memcpy(ret_text, begin, (size_t)(quote - begin));
    ret_text[quote - begin] = '\0';
    header->at = quote + 1;
    return 0;
}

static int find_type(struct header *header, const char *descr, struct err *err)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(descr + 1, types[i].code) != 0)
            continue;
        const struct array_type *type = &array_little[types[i].kind];
        if (descr[0] == '>' && type->size > 1)
            return FAULT(header, err, "its elements '%s' are big-endian; save it as '<%s'", descr,
                         types[i].code);
        header->array->type = type;
        return 0;
    }
    return FAULT(header, err,
                 "elements of '%s', want integers of 1 to 8 bytes (not uint64), float32 or float64",
                 descr);
}

static int read_descr(struct header *header, struct err *err)
{
    char descr[64];
    skip_space(header);
    if (header->at < header->end && *header->at == '[')
        return FAULT(header, err, "its elements are records, want plain numbers");
    int rc = read_string(header, descr, sizeof descr, err);
    if (rc != 0)
        return rc;
    if (descr[0] != '\0' && descr[1] == 'O')
        return FAULT(header, err, "its elements are Python objects ('%s'), want numbers", descr);
    if (descr[0] == '\0' || strchr("<>|=", descr[0]) == NULL)
        return FAULT(header, err, "elements of '%s' have no byte order", descr);
    return find_type(header, descr, err);
}

static int read_order(struct header *header, struct err *err)
{
    if (take(header, "False"))
        return 0;
    if (take(header, "True"))
        return FAULT(header, err,
                     "its elements are in Fortran order; save numpy.ascontiguousarray(a)");
    return FAULT(header, err, "fortran_order is neither True nor False");
}

static int read_dim(struct header *header, int64_t *ret_dim, struct err *err)
{
    int64_t dim = 0;
    skip_space(header);
    const char *begin = header->at;
    for (; header->at < header->end && *header->at >= '0' && *header->at <= '9'; header->at++)
        if (__builtin_mul_overflow(dim, 10, &dim) ||
            __builtin_add_overflow(dim, *header->at - '0', &dim))
            return FAULT(header, err, "a dimension of its shape is beyond any memory");
    if (header->at == begin)
        return FAULT(header, err, "its shape is not a tuple of integers");
    *ret_dim = dim;
    return 0;
}

static int read_shape(struct header *header, struct err *err)
{
    struct shape *shape = &header->array->shape;
    int rc = expect(header, "(", err);
    while (rc == 0 && !take(header, ")")) {
        if (shape->rank == LIMIT_RANK)
            return FAULT(header, err, "more than %d dimensions", LIMIT_RANK);
        rc = read_dim(header, &shape->dim[shape->rank++], err);
        if (rc == 0 && !take(header, ",")) {
            rc = expect(header, ")", err);
            break;
        }
    }
    return rc;
}

static int read_member(struct header *header, struct err *err)
{
    static const struct {
        const char *name;
        size_t given; /* in struct header */
        int (*read)(struct header *header, struct err *err);
    } members[] = {
        {"descr", offsetof(struct header, descr), read_descr},
        {"fortran_order", offsetof(struct header, fortran_order), read_order},
        {"shape", offsetof(struct header, shape), read_shape},
    };
    char name[32];
    int rc = read_string(header, name, sizeof name, err);
    if (rc == 0)
        rc = expect(header, ":", err);
    for (size_t i = 0; rc == 0 && i < sizeof members / sizeof members[0]; i++) {
        if (strcmp(members[i].name, name) != 0)
            continue;
        bool *given = (bool *)((char *)header + members[i].given);
        if (*given)
            return FAULT(header, err, "the header has '%s' twice", name);
        *given = true;
        return members[i].read(header, err);
    }
    return rc != 0 ? rc : FAULT(header, err, "the header has an unknown '%s'", name);
}

static int read_literal(struct header *header, struct err *err)
{
    int rc = expect(header, "{", err);
    while (rc == 0 && !take(header, "}")) {
        rc = read_member(header, err);
        if (rc == 0 && !take(header, ",")) {
            rc = expect(header, "}", err);
            break;
        }
    }
    if (rc != 0)
        return rc;
    skip_space(header);
    if (header->at != header->end)
        return FAULT(header, err, "the header goes on behind its end");
    if (!header->descr || !header->fortran_order || !header->shape)
        return FAULT(header, err, "the header does not say %s",
                     !header->descr   ? "descr"
                     : !header->shape ? "shape"
                                      : "fortran_order");
    return 0;
}

/* Where the header's text lies: behind the magic number and its size, of 2 or 4 bytes. */
static int find_header(const struct file_map *map, struct header *header, struct err *err)
{
    const uint8_t *bytes = map->at;
    if (map->bytes < MAGIC_BYTES + 2 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return FAULT(header, err, "not a .npy file: it does not begin with \\x93NUMPY");
    if (bytes[6] < 1 || bytes[6] > 3)
        return FAULT(header, err, "version %d.%d, want 1, 2 or 3", bytes[6], bytes[7]);
    size_t prefix = bytes[6] == 1 ? 2 : 4, size = 0;
    if (map->bytes < MAGIC_BYTES + prefix)
        return FAULT(header, err, "%zu bytes are too few for a .npy file", map->bytes);
    for (size_t i = 0; i < prefix; i++)
        size |= (size_t)bytes[MAGIC_BYTES + i] << 8 * i;
    if (size > HEADER_MAX_BYTES)
        return FAULT(header, err, "its header would be %zu bytes, at most %d are allowed", size,
                     HEADER_MAX_BYTES);
    if (size > map->bytes - MAGIC_BYTES - prefix)
        return FAULT(header, err, "its header of %zu bytes is cut off: the file has %zu", size,
                     map->bytes);
    header->at = (const char *)bytes + MAGIC_BYTES + prefix;
    header->end = header->at + size;
    return 0;
}

/* The elements are all that is behind the header. */
static int check_size(const struct header *header, size_t found, struct err *err)
{
    char text[SHAPE_TEXT];
    struct array *array = header->array;
    int64_t count = shape_count(&array->shape);
    if (array->shape.rank == 0 || count == 0)
        return FAULT(header, err, "its shape %s holds no samples",
                     shape_format(&array->shape, text));
    if (count < 0 || count > INT64_MAX / (int64_t)array->type->size)
        return FAULT(header, err, "its shape %s of %s is beyond any memory",
                     shape_format(&array->shape, text), array->type->name);
    array->bytes = (size_t)count * array->type->size;
    if (array->bytes != found)
        return FAULT(header, err, "its shape %s of %s needs %zu bytes, %zu are there",
                     shape_format(&array->shape, text), array->type->name, array->bytes, found);
    return 0;
}

static int read_array(const char *path, struct array *array, struct err *err)
{
    struct header header = {.path = path, .array = array};
    int rc = find_header(&array->map, &header, err);
    const uint8_t *elements = (const uint8_t *)header.end;
    if (rc == 0)
        rc = read_literal(&header, err);
    if (rc == 0)
        rc = check_size(&header, array->map.bytes - (size_t)(elements - array->map.at), err);
    array->data = elements;
    return rc;
}

int npy_open(const char *path, struct array *ret_array, struct err *err)
{
    struct array array = {.data = NULL};
    int rc = file_map(path, &array.map, err);
    if (rc == 0)
        rc = read_array(path, &array, err);
    if (rc == 0)
        *ret_array = array;
    else
        array_done(&array);
    return rc;
}
