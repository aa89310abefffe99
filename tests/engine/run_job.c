#include "tests/engine/run_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"
#include "tests/lib/checks.h"

static const char base[] =
    "{'version': 1, 'name': 'small',"
    " 'model': {'input': {'shape': [5]}, 'layers': ["
    "   {'type': 'Linear', 'name': 'a', 'out_features': 8},"
    "   {'type': 'BatchNorm1d', 'name': 'bn'}, {'type': 'ReLU'},"
    "   {'type': 'Dropout', 'p': 0.1}, {'type': 'Linear', 'name': 'b', 'out_features': 3}]},"
    " 'data': {'train': {'format': 'random', 'samples': 40, 'seed': 1, 'classes': 3},"
    "          'validation': {'format': 'random', 'samples': 20, 'seed': 2, 'classes': 3}},"
    " 'loss': {'type': 'CrossEntropyLoss'},"
    " 'optimizer': {'type': 'SGD', 'lr': 0.1, 'momentum': 0.9},"
    " 'train': {'epochs': 2, 'batch_size': 16, 'seed': 1},"
    " 'checkpoint': {'every': '2 steps'}}";

static json_t *load(const char *text)
{
    char quoted[4096];
    struct err err = ERR_INIT;
    json_t *root = NULL;
    size_t n = strlen(text);
    ck_assert_uint_lt(n, sizeof quoted);
    for (size_t i = 0; i <= n; i++)
        quoted[i] = text[i] == '\'' ? '"' : text[i];
    int rc = json_load(quoted, n, ERR_PARSE, &root, &err);
    ck_assert_msg(rc == 0, "%s: %s", text, err.message);
    return root;
}

/* As RFC 7396 has it. */
static void merge(json_t *to, json_t *patch)
{
    const char *key;
    json_t *value;
    json_object_foreach(patch, key, value)
    {
        json_t *old = json_object_get(to, key);
        if (json_is_null(value))
            json_object_del(to, key);
        else if (json_is_object(value) && json_is_object(old))
            merge(old, value);
        else
            ck_assert_int_eq(json_object_set(to, key, value), 0);
    }
}

struct job *run_job_parse(const char *patch)
{
    struct err err = ERR_INIT;
    struct job *job = NULL;
    json_t *root = load(base), *over = load(patch);
    merge(root, over);
    int rc = job_from_json(root, &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    json_decref(over);
    json_decref(root);
    return job;
}

struct listener {
    struct run_job *run;
    int64_t stop_after;
    volatile sig_atomic_t stop;
};

static void hear(void *context, const struct report *report)
{
    struct listener *listener = context;
    struct run_job *run = listener->run;
    run->reports[report->type]++;
    run->last = *report;
    if (report->type == REPORT_STARTED)
        run->started = *report;
    if (report->type == REPORT_PROGRESS)
        run->progress = *report;
    if (report->type == REPORT_DONE) {
        run->done = *report;
        run->confusion = report->confusion != NULL;
    }
    if (report->type == REPORT_PROGRESS && report->step == listener->stop_after)
        listener->stop = 1;
}

static void hear_line(void *context, const char *line)
{
    struct run_job *run = ((struct listener *)context)->run;
    size_t used = strlen(run->said);
    snprintf(run->said + used, sizeof run->said - used, "%s\n", line);
}

struct trainer_config run_job_config(const struct job *job, int n_devices, const char *output)
{
    static char names[LIMIT_DEVICES][32];
    static struct device_config devices[LIMIT_DEVICES];
    for (int i = 0; i < n_devices; i++) {
        snprintf(names[i], sizeof names[i], "cpu:%d", i);
        devices[i] = (struct device_config){.name = names[i], .n_threads = 1};
    }
    return (struct trainer_config){
        .job = job,
        .backend = &backend_cpu,
        .devices = devices,
        .n_devices = n_devices,
        .output = output,
    };
}

void run_job_with(const struct trainer_config *config, int64_t stop_after, struct run_job *ret_run)
{
    struct listener listener = {ret_run, stop_after, 0};
    struct trainer_config heard = *config;
    memset(ret_run, 0, sizeof *ret_run);
    heard.stop = &listener.stop;
    heard.sink = (struct trainer_sink){.report = hear, .say = hear_line, .context = &listener};
    ret_run->rc = trainer_run(&heard, &ret_run->err);
}

void run_job_parsed(const struct job *job, const char *output, int n_devices, int64_t stop_after,
                    struct run_job *ret_run)
{
    struct trainer_config config = run_job_config(job, n_devices, output);
    run_job_with(&config, stop_after, ret_run);
}

void run_job(const char *patch, const char *output, int n_devices, int64_t stop_after,
             struct run_job *ret_run)
{
    struct job *job = run_job_parse(patch);
    run_job_parsed(job, output, n_devices, stop_after, ret_run);
    job_free(job);
}

void run_job_well(const char *patch, const char *output, int n_devices, struct run_job *ret_run)
{
    run_job(patch, output, n_devices, 0, ret_run);
    ck_assert_msg(ret_run->rc == 0, "%s: %s", ret_run->err.path, ret_run->err.message);
}

/* The file's bytes with a NUL after them; "" where there is none. The caller frees. */
char *run_job_contents(const char *dir, const char *name, size_t *ret_size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    ck_assert_ptr_nonnull(text);
    size_t size = file != NULL ? fread(text, 1, (1 << 20) - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    if (ret_size != NULL)
        *ret_size = size;
    return text;
}

void run_job_same_file(const char *a, const char *b, const char *name)
{
    size_t size_a, size_b;
    char *of_a = run_job_contents(a, name, &size_a), *of_b = run_job_contents(b, name, &size_b);
    ck_assert_uint_gt(size_a, 0);
    ck_assert_msg(size_a == size_b && memcmp(of_a, of_b, size_a) == 0, "%s differs", name);
    free(of_a);
    free(of_b);
}
