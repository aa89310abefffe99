#include "tests/engine/data_test.h"

#include <string.h>

#include "tests/lib/checks.h"

struct job_data data_test_plain(void)
{
    static double one = 1, zero = 0;
    return (struct job_data){.scale = {1, &one}, .mean = {1, &zero}, .std = {1, &one}};
}

struct job_texts data_test_text(const char *text)
{
    static char *texts[16];
    static int next;
    char **at = &texts[next++ % 16];
    *at = (char *)text;
    return (struct job_texts){.n = 1, .texts = at};
}

static struct dataset_want want_of(struct shape input, enum dtype dtype)
{
    static struct model_input inputs[16];
    static int next;
    struct model_input *at = &inputs[next++ % 16];
    *at = (struct model_input){
        .name = "input", .shape = input, .dtype = dtype, .lengths = -1, .of = -1};
    return (struct dataset_want){.inputs = at, .n_inputs = 1, .target_dtype = DTYPE_I64};
}

struct dataset_want data_test_labels(struct shape input, int64_t classes)
{
    struct dataset_want want = want_of(input, DTYPE_F32);
    want.classes = classes;
    return want;
}

struct dataset_want data_test_values(struct shape input, struct shape target, int64_t classes)
{
    struct dataset_want want = want_of(input, DTYPE_F32);
    want.target = target;
    want.target_dtype = DTYPE_F32;
    want.classes = classes;
    return want;
}

struct dataset_want data_test_ids(int64_t context, int64_t classes)
{
    struct dataset_want want = want_of(SHAPE(context), DTYPE_I64);
    want.target = SHAPE(context);
    want.classes = classes;
    return want;
}

struct dataset *data_test_open(struct job_source source, struct job_data data,
                               struct dataset_want want)
{
    struct err err = ERR_INIT;
    struct dataset *dataset = NULL;
    int rc = dataset_open(&source, &data, &want, "/data/train", &dataset, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    return dataset;
}

void data_test_refused(struct job_source source, struct job_data data, struct dataset_want want,
                       int code, const char *path, const char *says)
{
    struct err err = ERR_INIT;
    struct dataset *dataset = NULL;
    int rc = dataset_open(&source, &data, &want, "/data/train", &dataset, &err);
    dataset_close(dataset);
    ck_assert_msg(rc == code && dataset == NULL, "%d: %s", rc, err.message);
    ck_assert_str_eq(err.path, path);
    ck_assert_msg(strstr(err.message, says) != NULL, "«%s» does not say «%s»", err.message, says);
}

void data_test_gather(const struct dataset *dataset, const int64_t *index, int64_t n, void *input,
                      void *targets)
{
    struct err err = ERR_INIT;
    const struct dataset_rows rows = {.index = index, .n = n};
    ck_assert_msg(dataset_gather(dataset, &rows, &input, targets, &err) == 0, "%s", err.message);
}
