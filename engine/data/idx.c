/* idx.c: header first, then the question whether a file of this size can hold what it says, only
 * then memory. zlib reads plain and gz files alike. */
#include "engine/data/idx.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "engine/base/file.h"

/* Deflate's best: 258 bytes from two bits. No gz file holds more than this many times its size. */
enum { DEFLATE_RATIO = 1032 };

static const struct {
    int code;
    enum array_kind kind;
} types[] = {
    {0x08, ARRAY_UINT8}, {0x09, ARRAY_INT8},    {0x0b, ARRAY_INT16},
    {0x0c, ARRAY_INT32}, {0x0d, ARRAY_FLOAT32}, {0x0e, ARRAY_FLOAT64},
};

struct reader {
    const char *path;
    gzFile gz;
    int64_t file_bytes;
};

/* zlib's sentence without its name of the file, "<fd:3>: ". */
static const char *reason_of(const char *reason)
{
    const char *end = strstr(reason, ">: ");
    return reason[0] == '<' && end != NULL ? end + strlen(">: ") : reason;
}

/* Exactly `bytes`, or an error: `part` is what they are. */
static int read_exactly(struct reader *reader, void *to, size_t bytes, const char *part,
                        struct err *err)
{
    for (size_t done = 0; done < bytes;) {
        size_t want = bytes - done < 1 << 20 ? bytes - done : 1 << 20;
        int n = gzread(reader->gz, (uint8_t *)to + done, (unsigned)want);
        if (n == (int)want) {
            done += want;
            continue;
        }
        int status;
        const char *reason = gzerror(reader->gz, &status);
        if (status == Z_ERRNO)
            return err_errno(err, errno, "cannot read %s", reader->path);
        if (status == Z_MEM_ERROR)
            return err_set(err, ERR_NOMEM, "no memory to unpack %s", reader->path);
        if (status == Z_BUF_ERROR)
            return err_set(err, ERR_DATA_INVALID,
                           "%s: the gz data is cut off: the file ends in the %s", reader->path,
                           part);
        if (n < 0)
            return err_set(err, ERR_DATA_INVALID, "%s: the gz data is broken: %s", reader->path,
                           reason_of(reason));
        if (n == 0)
            return err_set(err, ERR_DATA_INVALID, "%s: ends in the %s: %zu of %zu bytes are there",
                           reader->path, part, done, bytes);
        done += (size_t)n;
    }
    return 0;
}

static int read_magic(struct reader *reader, struct array *idx, struct err *err)
{
    uint8_t magic[4];
    int rc = read_exactly(reader, magic, sizeof magic, "magic number", err);
    if (rc != 0)
        return rc;
    if (magic[0] != 0 || magic[1] != 0)
        return err_set(err, ERR_DATA_INVALID,
                       "%s: not an IDX file: it begins with %02x %02x %02x %02x, want 00 00, an "
                       "element type and a rank",
                       reader->path, magic[0], magic[1], magic[2], magic[3]);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].code == magic[2])
            idx->type = &array_big[types[i].kind];
    if (idx->type == NULL)
        return err_set(err, ERR_DATA_INVALID,
                       "%s: element type 0x%02x, want 08 (uint8), 09 (int8), 0b (int16), 0c "
                       "(int32), 0d (float32) or 0e (float64)",
                       reader->path, magic[2]);
    if (magic[3] < 1 || magic[3] > LIMIT_RANK)
        return err_set(err, ERR_DATA_INVALID, "%s: %d dimensions, want 1 to %d", reader->path,
                       magic[3], LIMIT_RANK);
    idx->shape.rank = magic[3];
    return 0;
}

static int read_shape(struct reader *reader, struct array *idx, struct err *err)
{
    char text[SHAPE_TEXT];
    uint8_t raw[4 * LIMIT_RANK];
    int rc = read_exactly(reader, raw, 4 * (size_t)idx->shape.rank, "dimensions", err);
    if (rc != 0)
        return rc;
    for (int i = 0; i < idx->shape.rank; i++) {
        uint32_t dim;
        memcpy(&dim, raw + 4 * i, sizeof dim);
        idx->shape.dim[i] = be32toh(dim);
    }
    int64_t count = shape_count(&idx->shape);
    if (count == 0)
        return err_set(err, ERR_DATA_INVALID, "%s: its shape %s holds nothing", reader->path,
                       shape_format(&idx->shape, text));
    if (count < 0 || count > INT64_MAX / (int64_t)idx->type->size)
        return err_set(err, ERR_DATA_INVALID, "%s: its shape %s of %s is beyond any memory",
                       reader->path, shape_format(&idx->shape, text), idx->type->name);
    idx->bytes = (size_t)count * idx->type->size;
    return 0;
}

static size_t header_bytes(const struct array *idx)
{
    return 4 + 4 * (size_t)idx->shape.rank;
}

/* Before memory is taken: can a file of this size hold what its header says? */
static int check_size(const struct reader *reader, const struct array *idx, struct err *err)
{
    char text[SHAPE_TEXT];
    int64_t held = reader->file_bytes - (int64_t)header_bytes(idx);
    if (!gzdirect(reader->gz))
        held = reader->file_bytes <= INT64_MAX / DEFLATE_RATIO ? reader->file_bytes * DEFLATE_RATIO
                                                               : INT64_MAX;
    if ((int64_t)idx->bytes <= held)
        return 0;
    return err_set(err, ERR_DATA_INVALID,
                   "%s: its shape %s of %s needs %zu bytes, a %s file of %lld bytes has at most "
                   "%lld",
                   reader->path, shape_format(&idx->shape, text), idx->type->name, idx->bytes,
                   gzdirect(reader->gz) ? "plain" : "gz", (long long)reader->file_bytes,
                   (long long)held);
}

/* The end of the elements must be the end of the file; reading on also checks a gz file's sum. */
static int check_end(struct reader *reader, const struct array *idx, struct err *err)
{
    uint8_t byte;
    char text[SHAPE_TEXT];
    int n = gzread(reader->gz, &byte, 1);
    int status;
    const char *reason = gzerror(reader->gz, &status);
    if (n > 0)
        return err_set(err, ERR_DATA_INVALID, "%s: bytes are left over after its %zu of shape %s",
                       reader->path, idx->bytes, shape_format(&idx->shape, text));
    if (status == Z_BUF_ERROR)
        return err_set(err, ERR_DATA_INVALID,
                       "%s: the gz data is cut off: the file ends in its check sum", reader->path);
    if (n < 0)
        return err_set(err, ERR_DATA_INVALID, "%s: the gz data is broken: %s", reader->path,
                       reason_of(reason));
    return 0;
}

static int map_elements(const struct reader *reader, struct array *idx, struct err *err)
{
    char text[SHAPE_TEXT];
    size_t header = header_bytes(idx);
    int rc = file_map(reader->path, &idx->map, err);
    if (rc != 0)
        return rc;
    if (idx->map.bytes != header + idx->bytes)
        return err_set(err, ERR_DATA_INVALID, "%s: bytes are left over after its %zu of shape %s",
                       reader->path, idx->bytes, shape_format(&idx->shape, text));
    idx->data = idx->map.at + header;
    return 0;
}

static int read_all(struct reader *reader, struct array *idx, struct err *err)
{
    int rc = read_magic(reader, idx, err);
    if (rc == 0)
        rc = read_shape(reader, idx, err);
    if (rc == 0)
        rc = check_size(reader, idx, err);
    if (rc != 0)
        return rc;
    if (gzdirect(reader->gz))
        return map_elements(reader, idx, err);
    idx->data = idx->heap = malloc(idx->bytes);
    if (idx->heap == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the %zu bytes of %s", idx->bytes,
                       reader->path);
    rc = read_exactly(reader, idx->heap, idx->bytes, "elements", err);
    return rc != 0 ? rc : check_end(reader, idx, err);
}

int idx_read(const char *path, struct array *ret_array, struct err *err)
{
    int fd;
    struct reader reader = {.path = path};
    int rc = file_open(path, &fd, &reader.file_bytes, err);
    if (rc != 0)
        return rc;
    reader.gz = gzdopen(fd, "rb");
    if (reader.gz == NULL) {
        close(fd);
        return err_set(err, ERR_NOMEM, "no memory to read %s", path);
    }
    gzbuffer(reader.gz, 1 << 17);
    struct array idx = {.data = NULL};
    rc = read_all(&reader, &idx, err);
    gzclose_r(reader.gz);
    if (rc == 0)
        *ret_array = idx;
    else
        array_done(&idx);
    return rc;
}
