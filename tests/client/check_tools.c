/* trainctl model and trainctl weights: no daemon, the built worker. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client/run.h"
#include "tests/lib/checks.h"

static struct run run;

static int command(const char *text, const char *input)
{
    return run_command(&run, "/nowhere", text, input);
}

static json_t *result(void)
{
    json_t *value = json_loads(run.text, 0, NULL);
    ck_assert_msg(value != NULL, "no JSON: %s%s", run.text, run.errors);
    return value;
}

static void says(const char *text, const char *wanted)
{
    ck_assert_msg(strstr(text, wanted) != NULL, "«%s» is not in «%s»", wanted, text);
}

START_TEST(show_prints_a_model_that_a_job_can_have)
{
    ck_assert_int_eq(command("model show lenet --set num_classes=3", ""), 0);
    json_t *model = result();
    const json_t *layers = json_object_get(model, "layers");
    const json_t *last = json_array_get(layers, json_array_size(layers) - 1);
    ck_assert_int_eq(json_integer_value(json_object_get(last, "out_features")), 3);
    ck_assert_uint_eq(json_object_size(json_object_get(model, "input")), 2);
    json_decref(model);
    ck_assert_int_eq(
        command("model show --json resnet18 --set width=8,zero_init_residual=true", ""), 0);
    ck_assert_ptr_eq(strchr(run.text, '\n'), run.text + run.used - 1);
}
END_TEST

static const struct {
    const char *command;
    int status;
    const char *errors;
} refusals[] = {
    {"model show renset18", 1, "/preset: preset must be \"mlp\""},
    {"model show lenet --set width=3", 1, "/args/width: unknown key \"width\""},
    {"model show lenet --set num_classes=many", 1, "found the string \"many\""},
    {"model show lenet --set num_classes=[1,2]", 1, "found a list"},
    {"model show lenet --set num_classes", 2, "--set takes NAME=VALUE"},
    {"model show lenet --set =3", 2, "--set takes NAME=VALUE"},
    {"model shw lenet", 2, "did you mean 'show'?"},
    {"model show", 2, "model needs show NAME"},
    {"weights inspect", 2, "weights needs inspect FILE"},
    {"weights inspect a b", 2, "weights inspect takes 1 word, found 2"},
    {"weights inspect /nowhere/w", 1, "/nowhere/w"},
    {"weights convert a b", 2, "--to parallel or --to single"},
    {"weights convert a b --to both", 2, "--to parallel or --to single"},
    {"weights inspect a --set b=c", 2, "weights takes no --set"},
};

START_TEST(mistakes_are_named)
{
    ck_assert_int_eq(command(refusals[_i].command, ""), refusals[_i].status);
    says(run.errors, refusals[_i].errors);
    ck_assert_str_eq(run.text, "");
}
END_TEST

#define JOB(layers)                                                                                \
    "{\"version\": 1, \"model\": {\"input\": {\"shape\": [2, 4, 4]}, \"layers\": [" layers "]},"   \
    "\"data\": {\"train\": {\"format\": \"random\", \"samples\": 10, \"classes\": 3}},"            \
    "\"loss\": {\"type\": \"CrossEntropyLoss\"}, \"optimizer\": {\"type\": \"SGD\", \"lr\": 0.1}," \
    "\"train\": {\"epochs\": 1, \"batch_size\": 5}, \"parallel\": {\"mode\": \"replicate\", "      \
    "\"devices\": 2}}"

#define LAYERS                                                                                     \
    "{\"type\": \"Conv2d\", \"name\": \"conv\", \"out_channels\": 3, \"kernel_size\": 3},"         \
    "{\"type\": \"BatchNorm2d\", \"name\": \"bn\"}, {\"type\": \"Flatten\", \"name\": \"flat\"},"  \
    "{\"type\": \"Linear\", \"name\": \"fc\", \"out_features\": 3}"

/* Of one sample: [3, 2, 2] floats; twelve products of 18 elements; a view; three of twelve. */
static const struct {
    const char *name;
    int parameters;
    double flops;
    int bytes;
} rows[] = {{"conv", 57, 432, 48}, {"bn", 6, 0, 48}, {"flat", 0, 0, 0}, {"fc", 39, 72, 12}};

START_TEST(summary_counts_what_a_sample_costs)
{
    ck_assert_int_eq(command("model summary --json --cpu-devices 2 -", JOB(LAYERS)), 0);
    json_t *layers = result();
    ck_assert_uint_eq(json_array_size(layers), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *layer = json_array_get(layers, i);
        ck_assert_str_eq(json_string_value(json_object_get(layer, "name")), rows[i].name);
        ck_assert_int_eq(json_integer_value(json_object_get(layer, "parameters")),
                         rows[i].parameters);
        ck_assert_double_eq(json_number_value(json_object_get(layer, "flops")), rows[i].flops);
        ck_assert_int_eq(json_integer_value(json_object_get(layer, "activation_bytes")),
                         rows[i].bytes);
        ck_assert_uint_eq(json_array_size(json_object_get(layer, "devices")), 2);
    }
    json_decref(layers);
    ck_assert_int_eq(command("model summary --cpu-devices 2 -", JOB(LAYERS)), 0);
    says(run.text, "LAYER  TYPE         OUTPUT     PARAMETERS  FLOP  BYTES  DEVICE\n");
    says(run.text, "conv   Conv2d       [3, 2, 2]          57   432   48 B  cpu:0,cpu:1\n");
    says(run.text, "parameters  102\nforward     504 FLOP and 108 B of activations a sample\n");
}
END_TEST

START_TEST(summary_says_where_a_job_is_wrong)
{
    ck_assert_int_eq(command("model summary -", JOB("{\"type\": \"Linar\"}")), 1);
    says(run.errors, "<stdin>:1:");
    says(run.errors, "did you mean \"Linear\"?");
}
END_TEST

static const char stages[] =
    "{\"version\": 1, \"model\": {\"input\": {\"shape\": [2, 4, 4]}, \"layers\": [" LAYERS "]},"
    "\"data\": {\"train\": {\"format\": \"random\", \"samples\": 10, \"classes\": 3}},"
    "\"loss\": {\"type\": \"CrossEntropyLoss\"}, \"optimizer\": {\"type\": \"SGD\", \"lr\": 0.1},"
    "\"train\": {\"epochs\": 1, \"batch_size\": 5}, \"parallel\": {\"mode\": \"stages\", "
    "\"devices\": 2, \"split\": [\"flat\"], \"split_size\": 2, \"schedule\": \"1f1b\"}}";

START_TEST(plan_shows_the_timetable_of_stages)
{
    static const char grid[] = "step stage 0 stage 1\n"
                               "   0      F0       .\n"
                               "   1      F1      F0\n"
                               "   2       .      B0\n"
                               "   3       .      B0\n"
                               "   4      B0      F1\n"
                               "   5      B0      B1\n"
                               "   6      F2      B1\n"
                               "   7      B1      F2\n"
                               "   8      B1      B2\n"
                               "   9       .      B2\n"
                               "  10      B2       .\n"
                               "  11      B2       .\n";
    ck_assert_int_eq(command("plan --json --cpu-devices 2 -", stages), 0);
    json_t *plan = result();
    const json_t *pipeline = json_object_get(plan, "pipeline"), *stage;
    ck_assert_str_eq(json_string_value(json_object_get(pipeline, "grid")), grid);
    ck_assert_int_eq(json_integer_value(json_object_get(pipeline, "microbatches")), 3);
    ck_assert_double_gt(json_number_value(json_object_get(pipeline, "step_seconds")), 0);
    stage = json_array_get(json_object_get(pipeline, "stages"), 1);
    ck_assert_str_eq(json_string_value(json_object_get(stage, "begin")), "flat");
    ck_assert_int_eq(json_integer_value(json_object_get(stage, "slots")), 1);
    const json_t *layer = json_array_get(json_object_get(plan, "layers"), 2);
    const json_t *devices = json_object_get(layer, "devices");
    ck_assert_uint_eq(json_array_size(devices), 1);
    ck_assert_str_eq(json_string_value(json_array_get(devices, 0)), "cpu:1");
    json_decref(plan);
    ck_assert_int_eq(command("plan --cpu-devices 2 -", stages), 0);
    says(run.text, grid);
    says(run.text, "schedule    1f1b, 3 micro-batches\n");
    says(run.text, "IN FLIGHT\n");
    says(run.text, "\n    1  flat         cpu:1        1  ");
}
END_TEST

/* A step of the whole model is measured: the rows of a micro-batch, every node, updates too. */
START_TEST(plan_profiles_a_step)
{
    char words[1200], trace[1024];
    json_t *events;
    snprintf(trace, sizeof trace, "%s/trace.json", checks_scratch());
    snprintf(words, sizeof words, "plan --json --cpu-devices 2 --profile --trace %s -", trace);
    ck_assert_int_eq(command(words, stages), 0);
    json_t *plan = result();
    const json_t *profile = json_object_get(plan, "profile");
    const json_t *nodes = json_object_get(profile, "nodes");
    ck_assert_int_eq(json_integer_value(json_object_get(profile, "samples")), 2);
    ck_assert_double_gt(json_number_value(json_object_get(profile, "floor_seconds")), 0);
    ck_assert_uint_gt(json_array_size(nodes), 5);
    FILE *file = fopen(trace, "r");
    ck_assert_ptr_nonnull(file);
    events = json_loadf(file, 0, NULL);
    fclose(file);
    ck_assert_uint_eq(json_array_size(json_object_get(events, "traceEvents")),
                      json_array_size(nodes) + 1); /* and the thread's name */
    json_decref(events);
    json_decref(plan);
    ck_assert_int_eq(command("plan --profile -", stages), 0);
    says(run.text, "OF FLOOR\n");
    says(run.text, "\na step of ");
    ck_assert_int_eq(command("plan --trace x -", stages), 2);
    says(run.errors, "--trace needs --profile");
}
END_TEST

/* A file of two float32 elements per key, each key's first element `first`. */
static void write_weights(const char *name, const char *key, float first)
{
    char path[600], header[256];
    float data[2] = {first, 2};
    snprintf(path, sizeof path, "%s/%s", checks_scratch(), name);
    int n = snprintf(header, sizeof header,
                     "{\"__metadata__\":{\"format\":\"pt\\u001b[2J\"},\"%s\":{\"dtype\":\"F32\","
                     "\"shape\":[2,1],\"data_offsets\":[0,8]}}",
                     key);
    uint64_t size = (uint64_t)n;
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(&size, sizeof size, 1, file), 1);
    ck_assert_uint_eq(fwrite(header, (size_t)n, 1, file), 1);
    ck_assert_uint_eq(fwrite(data, sizeof data, 1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
}

/* The command with DIR/ before each of its files. */
static int on_files(const char *verb, const char *a, const char *b, const char *more)
{
    char text[2048];
    const char *dir = checks_scratch();
    if (b == NULL)
        snprintf(text, sizeof text, "weights %s %s/%s %s", verb, dir, a, more);
    else
        snprintf(text, sizeof text, "weights %s %s/%s %s/%s %s", verb, dir, a, dir, b, more);
    return command(text, "");
}

START_TEST(inspect_lists_tensors_and_metadata)
{
    write_weights("a", "fc.weight", 1);
    ck_assert_int_eq(on_files("inspect", "a", NULL, ""), 0);
    says(run.text, "fc.weight  F32    [2, 1]    8 B\n");
    says(run.text, "1 tensor, 2 elements, 8 B\n");
    says(run.text, "format: pt\\x1b[2J\n");
    ck_assert_int_eq(on_files("inspect", "a", NULL, "--json"), 0);
    json_t *value = result();
    ck_assert_int_eq(json_integer_value(json_object_get(value, "elements")), 2);
    json_decref(value);
}
END_TEST

START_TEST(diff_tells_what_differs)
{
    write_weights("a", "w", 1);
    write_weights("b", "w", 1.5f);
    write_weights("c", "v", 1);
    ck_assert_int_eq(on_files("diff", "a", "a", ""), 0);
    says(run.text, "equal in all tensors: 1\n");
    ck_assert_int_eq(on_files("diff", "a", "b", ""), 1);
    says(run.text, "w     value      0.5000   0.2500\n");
    ck_assert_str_eq(run.errors, "");
    ck_assert_int_eq(on_files("diff", "a", "c", ""), 1);
    says(run.text, "v     extra           -        -\n");
    says(run.text, "w     missing         -        -\n");
    ck_assert_int_eq(on_files("diff", "a", "b", "--json"), 1);
    says(run.text, "\"max_abs\":0.5");
}
END_TEST

START_TEST(convert_goes_there_and_back)
{
    write_weights("a", "w", 1);
    ck_assert_int_eq(on_files("convert", "a", "p", "--to parallel"), 0);
    says(run.text, "/p: 1 keys, parallel\n");
    ck_assert_int_eq(on_files("convert", "p", "s", "--to single"), 0);
    ck_assert_int_eq(on_files("diff", "a", "s", ""), 0);
    ck_assert_int_eq(on_files("convert", "a", "x", "--to single"), 1);
    says(run.errors, "no key begins with");
}
END_TEST

int main(void)
{
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("tools");
    TCase *tcase = checks_case(suite, "tools", 20);
    tcase_add_test(tcase, show_prints_a_model_that_a_job_can_have);
    tcase_add_loop_test(tcase, mistakes_are_named, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(tcase, summary_counts_what_a_sample_costs);
    tcase_add_test(tcase, summary_says_where_a_job_is_wrong);
    tcase_add_test(tcase, plan_shows_the_timetable_of_stages);
    tcase_add_test(tcase, plan_profiles_a_step);
    tcase_add_test(tcase, inspect_lists_tensors_and_metadata);
    tcase_add_test(tcase, diff_tells_what_differs);
    tcase_add_test(tcase, convert_goes_there_and_back);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
