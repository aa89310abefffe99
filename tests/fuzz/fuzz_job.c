/* fuzz_job.c: job documents. What parses is written out and parses again, to the same text. */
#include <stdlib.h>
#include <string.h>

#include "proto/job.h"
#include "proto/json.h"
#include "tests/fuzz/fuzz.h"

static char *dumped(const struct job *job)
{
    json_t *root = job_dump(job);
    char *text = root != NULL ? json_line(root) : NULL;
    json_decref(root);
    fuzz_expect(text != NULL);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct job *job, *again;
    int rc = job_parse((const char *)data, size, &job, &err);
    if (rc != 0) {
        fuzz_expect_error(rc, &err);
        return 0;
    }
    char *text = dumped(job);
    fuzz_expect(job_parse(text, strlen(text), &again, &err) == 0);
    char *same = dumped(again);
    fuzz_expect(strcmp(text, same) == 0);
    free(text);
    free(same);
    job_free(job);
    job_free(again);
    return 0;
}
