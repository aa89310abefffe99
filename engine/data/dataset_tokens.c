/* dataset_tokens.c: a long run of ids, cut into samples of `context`: files of uint16 or uint32,
 * and texts, whose bytes are the ids.
 *
 * Sample i holds the ids from i * context on; its targets are the ids one further on, or, for a
 * model that gives one answer a sample, the id behind the last. The samples do not overlap; ids
 * that are left over at the end are not used.
 */
#include <stdlib.h>

#include "engine/data/array.h"
#include "engine/data/dataset_format.h"

struct tokens {
    struct array ids;
    int64_t context;
    bool last; /* one target a sample */
};

static void tokens_close(void *state)
{
    struct tokens *tokens = state;
    array_done(&tokens->ids);
    free(tokens);
}

static int check_want(const struct job_source *source, const struct dataset_want *want,
                      struct err *err)
{
    char found[SHAPE_TEXT], wanted[SHAPE_TEXT];
    const struct model_input *input = &want->inputs[0];
    const struct shape shape = SHAPE(source->context);
    if (input->dtype != DTYPE_I64)
        return err_set(err, ERR_DATA_INVALID, "ids are int64, the model's input is float32");
    if (!shape_equal(&input->shape, &shape))
        return err_set(err, ERR_DATA_INVALID, "samples of shape %s, the model's input is %s",
                       shape_format(&shape, found), shape_format(&input->shape, wanted));
    if (want->target_dtype != DTYPE_I64 ||
        (want->target.rank > 0 && !shape_equal(&want->target, &shape)))
        return err_set(err, ERR_DATA_INVALID,
                       "the targets are ids, one a step or one a sample: the loss wants %s %s",
                       want->target_dtype == DTYPE_I64 ? "labels" : "values",
                       shape_format(&want->target, wanted));
    return 0;
}

static int map_ids(struct tokens *tokens, const char *path, struct err *err)
{
    struct array *ids = &tokens->ids;
    int rc = file_map(path, &ids->map, err);
    if (rc != 0)
        return rc;
    ids->data = ids->map.at;
    ids->bytes = ids->map.bytes;
    if (ids->bytes % ids->type->size != 0)
        return err_set(err, ERR_DATA_INVALID, "%s: %zu bytes are no whole number of %s", path,
                       ids->bytes, ids->type->name);
    int64_t n = (int64_t)(ids->bytes / ids->type->size);
    if (n <= tokens->context)
        return err_set(err, ERR_DATA_INVALID, "%s: %lld ids, want %lld or more: context and one",
                       path, (long long)n, (long long)tokens->context + 1);
    ids->shape = SHAPE(n);
    return 0;
}

static int open_ids(const struct array_type *type, const struct job_source *source,
                    const struct dataset_want *want, const char *what,
                    struct dataset_content *ret_content, struct err *err)
{
    if (check_want(source, want, err) != 0)
        return dataset_blame(err, what, "context");
    struct tokens *tokens = calloc(1, sizeof *tokens);
    if (tokens == NULL)
        return err_set(err, ERR_NOMEM, "no memory for a data set");
    tokens->context = source->context;
    tokens->last = want->target.rank == 0;
    tokens->ids.type = type;
    if (map_ids(tokens, source->path, err) != 0) {
        tokens_close(tokens);
        return dataset_blame(err, what, "path");
    }
    *ret_content = (struct dataset_content){
        .state = tokens,
        .samples = (tokens->ids.shape.dim[0] - 1) / source->context,
        .labels = true,
        .fingerprint = array_fingerprint(&tokens->ids, (uint64_t)source->context),
    };
    return 0;
}

static int open_tokens(const struct job_source *source, const struct dataset_want *want,
                       const char *what, struct dataset_content *ret_content, struct err *err)
{
    static const enum array_kind kinds[] = {
        [TOKEN_UINT16] = ARRAY_UINT16,
        [TOKEN_UINT32] = ARRAY_UINT32,
    };
    return open_ids(&array_little[kinds[source->dtype]], source, want, what, ret_content, err);
}

static int open_text(const struct job_source *source, const struct dataset_want *want,
                     const char *what, struct dataset_content *ret_content, struct err *err)
{
    return open_ids(&array_little[ARRAY_UINT8], source, want, what, ret_content, err);
}

static void read_ids(const struct tokens *tokens, int64_t first, int64_t n, int64_t *ret_ids)
{
    const struct array_type *type = tokens->ids.type;
    type->wholes(tokens->ids.data + (size_t)first * type->size, n, ret_ids);
}

static int tokens_input(const void *state, int input, int64_t sample, void *ret_input,
                        struct err *err)
{
    (void)input;
    (void)err;
    const struct tokens *tokens = state;
    read_ids(tokens, sample * tokens->context, tokens->context, ret_input);
    return 0;
}

static int tokens_labels(const void *state, int64_t sample, int64_t *ret_labels, struct err *err)
{
    (void)err;
    const struct tokens *tokens = state;
    if (tokens->last)
        read_ids(tokens, (sample + 1) * tokens->context, 1, ret_labels);
    else
        read_ids(tokens, sample * tokens->context + 1, tokens->context, ret_labels);
    return 0;
}

const struct dataset_format dataset_format_tokens = {
    .open = open_tokens,
    .close = tokens_close,
    .input = tokens_input,
    .labels = tokens_labels,
};
const struct dataset_format dataset_format_text = {
    .open = open_text,
    .close = tokens_close,
    .input = tokens_input,
    .labels = tokens_labels,
};
