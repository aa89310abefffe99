/* job_schema_main.c: prints job.schema.json ("make schema" writes it into the source tree). */
#include <stdio.h>
#include <stdlib.h>

#include "proto/job_schema.h"
#include "proto/json.h"

int main(void)
{
    json_t *schema = job_schema();
    char *text = schema != NULL ? json_pretty(schema) : NULL;
    json_decref(schema);
    int status = text != NULL && fputs(text, stdout) >= 0 && fflush(stdout) == 0 ? EXIT_SUCCESS
                                                                                 : EXIT_FAILURE;
    free(text);
    return status;
}
