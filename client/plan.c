/* plan.c: see plan.h. */
#include "client/plan.h"

#include "client/worker.h"

int plan_make(struct ctl *ctl, const char *file, json_t **ret_plan, struct err *err)
{
    static const struct {
        enum option_id id;
        const char *word;
    } options[] = {{OPT_DEVICES, "--devices"},
                   {OPT_CPU_DEVICES, "--cpu-devices"},
                   {OPT_PROFILE, "--profile"},
                   {OPT_TRACE, "--trace"}};
    const char *words[9] = {"plan", "-"};
    size_t n = 2;
    struct document *document = &ctl->document;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (args_has(&ctl->args, options[i].id)) {
            words[n++] = options[i].word;
            if (ctl->args.values[options[i].id] != NULL)
                words[n++] = ctl->args.values[options[i].id];
        }
    int rc = document_read(file, document, err);
    return rc < 0 ? rc : worker_call(words, n, document->text, document->size, ret_plan, err);
}

void plan_add_shape(struct text *text, const json_t *shape)
{
    size_t i;
    json_t *dim;
    text_add(text, "[");
    json_array_foreach((json_t *)shape, i, dim)
        text_fmt(text, "%s%" JSON_INTEGER_FORMAT, i == 0 ? "" : ", ", json_integer_value(dim));
    text_add(text, "]");
}
