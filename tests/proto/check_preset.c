/* Presets: which layers they stand for, whatever else the model says. */
#include <string.h>

#include "proto/job.h"
#include "tests/lib/checks.h"

static json_t *expand(const char *name, const char *args)
{
    struct err err = ERR_INIT;
    json_t *model, *parsed = json_loads(args, 0, NULL);
    ck_assert_msg(job_preset(name, parsed, &model, &err) == 0, "%s: %s", err.path, err.message);
    json_decref(parsed);
    return model;
}

static struct job *parse(const char *model)
{
    static const char rest[] =
        ", \"data\": {\"train\": {\"format\": \"random\", \"samples\": 9, \"classes\": 5}},"
        "\"loss\": {\"type\": \"CrossEntropyLoss\"}, \"optimizer\": {\"type\": \"SGD\", \"lr\": 1},"
        "\"train\": {\"epochs\": 1, \"batch_size\": 1}}";
    char text[4096];
    struct err err = ERR_INIT;
    struct job *job;
    int n = snprintf(text, sizeof text, "{\"version\": 1, \"model\": %s%s", model, rest);
    ck_assert_msg(job_parse(text, (size_t)n, &job, &err) == 0, "%s: %s", err.path, err.message);
    return job;
}

static const struct {
    const char *name;
    size_t layers, convs, norms;
} sizes[] = {
    {"mlp", 6, 0, 0},          {"gpt", 4 + 4 * 8, 0, 0},     {"lstm_lm", 3, 0, 0},
    {"lenet", 12, 2, 0},       {"resnet18", 69, 20, 20},     {"resnet34", 125, 36, 36},
    {"resnet50", 175, 53, 53}, {"resnet101", 345, 104, 104}, {"resnet152", 515, 155, 155},
};

static size_t count(const struct job *job, enum layer_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < job->model.n_layers; i++)
        n += job->model.layers[i].type == type;
    return n;
}

START_TEST(every_preset_is_a_list_of_layers)
{
    char model[64];
    snprintf(model, sizeof model, "{\"preset\": \"%s\"}", sizes[_i].name);
    struct job *job = parse(model);
    ck_assert_uint_eq(job->model.n_layers, sizes[_i].layers);
    ck_assert_uint_eq(count(job, LAYER_CONV2D), sizes[_i].convs);
    ck_assert_uint_eq(count(job, LAYER_BATCHNORM2D), sizes[_i].norms);
    job_free(job);
}
END_TEST

START_TEST(dump_has_the_layers_and_no_preset)
{
    struct job *job = parse("{\"preset\": \"lenet\", \"args\": {\"num_classes\": 5}}");
    json_t *dump = job_dump(job), *model = json_object_get(dump, "model");
    ck_assert_ptr_null(json_object_get(model, "preset"));
    ck_assert_ptr_null(json_object_get(model, "args"));
    const json_t *fc3 = json_array_get(json_object_get(model, "layers"), 11);
    ck_assert_str_eq(json_string_value(json_object_get(fc3, "name")), "fc3");
    ck_assert_int_eq(json_integer_value(json_object_get(fc3, "out_features")), 5);
    struct job *again;
    struct err err = ERR_INIT;
    ck_assert_int_eq(job_from_json(dump, &again, &err), 0);
    json_t *second = job_dump(again);
    ck_assert(json_equal(dump, second));
    json_decref(second);
    json_decref(dump);
    job_free(again);
    job_free(job);
}
END_TEST

START_TEST(a_given_input_wins)
{
    struct job *job = parse("{\"preset\": \"resnet18\", \"input\": {\"shape\": [3, 32, 32]},"
                            "\"init\": {\"weights\": \"w\"}}");
    json_t *dump = job_dump(job);
    const json_t *model = json_object_get(dump, "model");
    json_t *shape = json_object_get(json_object_get(model, "input"), "shape");
    ck_assert_int_eq(json_integer_value(json_array_get(shape, 2)), 32);
    ck_assert_str_eq(job->model.init.weights, "w");
    json_decref(dump);
    job_free(job);
}
END_TEST

static const json_t *find(const json_t *model, const char *name)
{
    size_t i;
    json_t *layer;
    json_array_foreach(json_object_get(model, "layers"), i, layer)
    {
        if (strcmp(json_string_value(json_object_get(layer, "name")), name) == 0)
            return layer;
    }
    return NULL;
}

static json_int_t number(const json_t *model, const char *layer, const char *key)
{
    return json_integer_value(json_object_get(find(model, layer), key));
}

/* What torchvision's resnext50_32x4d and wide_resnet50_2 are. */
START_TEST(bottlenecks_have_groups_and_widths)
{
    json_t *next = expand("resnet50", "{\"groups\": 32, \"width_per_group\": 4}");
    json_t *wide = expand("resnet50", "{\"width_per_group\": 128}");
    ck_assert_int_eq(number(next, "layer1.0.conv2", "out_channels"), 128);
    ck_assert_int_eq(number(next, "layer1.0.conv2", "groups"), 32);
    ck_assert_int_eq(number(next, "layer4.2.conv2", "out_channels"), 1024);
    ck_assert_int_eq(number(next, "layer4.2.conv3", "out_channels"), 2048);
    ck_assert_int_eq(number(wide, "layer1.0.conv1", "out_channels"), 128);
    ck_assert_int_eq(number(wide, "layer1.0.conv3", "out_channels"), 256);
    json_decref(next);
    json_decref(wide);
}
END_TEST

START_TEST(blocks_may_begin_as_the_identity)
{
    json_t *model = expand("resnet18", "{\"zero_init_residual\": true}");
    ck_assert_ptr_null(json_object_get(find(model, "layer2.0.bn1"), "weight_init"));
    ck_assert_ptr_null(json_object_get(find(model, "layer2.0.downsample.1"), "weight_init"));
    json_t *init = json_object_get(find(model, "layer2.0.bn2"), "weight_init");
    ck_assert_str_eq(json_string_value(json_object_get(init, "type")), "constant");
    ck_assert_int_eq(json_integer_value(json_object_get(init, "val")), 0);
    json_decref(model);
}
END_TEST

static const char *layer_type(const json_t *model, const char *name)
{
    return json_string_value(json_object_get(find(model, name), "type"));
}

static const char *nth_input(const json_t *model, const char *name, size_t i)
{
    return json_string_value(json_array_get(json_object_get(find(model, name), "inputs"), i));
}

START_TEST(a_gpt_normalises_before_it_adds)
{
    json_t *model = expand("gpt", "{\"n_layer\": 2, \"context\": 32, \"n_embd\": 24}");
    ck_assert_str_eq(nth_input(model, "h.0.ln_1", 0), "wpe");
    ck_assert_str_eq(nth_input(model, "h.0.add_1", 0), "h.0.attn");
    ck_assert_str_eq(nth_input(model, "h.0.add_1", 1), "wpe");
    ck_assert_str_eq(nth_input(model, "h.0.add_2", 0), "h.0.mlp.c_proj");
    ck_assert_str_eq(nth_input(model, "h.0.add_2", 1), "h.0.add_1");
    ck_assert_str_eq(nth_input(model, "h.1.ln_1", 0), "h.0.add_2");
    ck_assert_int_eq(number(model, "h.1.mlp.c_fc", "out_features"), 96);
    ck_assert_int_eq(number(model, "wpe", "num_embeddings"), 32);
    const json_t *input = json_object_get(model, "input");
    ck_assert_str_eq(json_string_value(json_object_get(input, "dtype")), "int64");
    ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(input, "shape"), 0)), 32);
    json_decref(model);
}
END_TEST

START_TEST(dropouts_stand_where_they_are_wanted)
{
    json_t *gpt = expand("gpt", "{\"n_layer\": 1, \"dropout\": 0.1}");
    json_t *mlp = expand("mlp", "{\"hidden\": [5, 4, 3], \"dropout\": 0.5}");
    ck_assert_str_eq(nth_input(gpt, "h.0.ln_1", 0), "drop");
    ck_assert_str_eq(nth_input(gpt, "h.0.add_1", 0), "h.0.drop_1");
    ck_assert_str_eq(nth_input(gpt, "h.0.add_2", 0), "h.0.drop_2");
    ck_assert_str_eq(layer_type(mlp, "dropout3"), "Dropout");
    ck_assert_ptr_null(find(mlp, "dropout4"));
    ck_assert_int_eq(number(mlp, "fc3", "out_features"), 3);
    ck_assert_int_eq(number(mlp, "fc4", "out_features"), 10);
    json_decref(gpt);
    json_decref(mlp);
}
END_TEST

START_TEST(one_lstm_has_no_dropout_between)
{
    json_t *one = expand("lstm_lm", "{\"num_layers\": 1, \"dropout\": 0.5}");
    json_t *two = expand("lstm_lm", "{\"dropout\": 0.5}");
    ck_assert_double_eq(json_number_value(json_object_get(find(one, "rnn"), "dropout")), 0);
    ck_assert_double_eq(json_number_value(json_object_get(find(two, "rnn"), "dropout")), 0.5);
    ck_assert_str_eq(layer_type(one, "drop"), "Dropout");
    ck_assert_str_eq(layer_type(one, "drop_out"), "Dropout");
    json_decref(one);
    json_decref(two);
}
END_TEST

START_TEST(heads_divide_the_channels)
{
    struct err err = ERR_INIT;
    json_t *model, *args = json_pack("{s:i, s:i}", "n_head", 3, "n_embd", 8);
    ck_assert_int_eq(job_preset("gpt", args, &model, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.path, "/args/n_head");
    json_decref(args);
}
END_TEST

/* The least and the largest of all arguments give layers that the parser takes. */
static const char *const extremes[] = {
    "{\"width\": 1, \"width_per_group\": 1, \"num_classes\": 1}",
    "{\"width\": 4096, \"groups\": 256, \"width_per_group\": 1024, \"num_classes\": 2147483647}",
};

START_TEST(extremes_are_layers_too)
{
    char model[256];
    snprintf(model, sizeof model, "{\"preset\": \"resnet152\", \"args\": %s}", extremes[_i]);
    job_free(parse(model));
}
END_TEST

START_TEST(errors_point_at_the_argument)
{
    struct err err = ERR_INIT;
    json_t *model, *args = json_pack("{s:i}", "width", 0);
    ck_assert_int_eq(job_preset("resnet18", args, &model, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.path, "/args/width");
    ck_assert_int_eq(job_preset("resnet", NULL, &model, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.path, "/preset");
    json_decref(args);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("preset");
    TCase *tcase = checks_case(suite, "preset", 10);
    tcase_add_loop_test(tcase, every_preset_is_a_list_of_layers, 0, sizeof sizes / sizeof sizes[0]);
    tcase_add_test(tcase, dump_has_the_layers_and_no_preset);
    tcase_add_test(tcase, a_given_input_wins);
    tcase_add_test(tcase, bottlenecks_have_groups_and_widths);
    tcase_add_test(tcase, blocks_may_begin_as_the_identity);
    tcase_add_loop_test(tcase, extremes_are_layers_too, 0, sizeof extremes / sizeof extremes[0]);
    tcase_add_test(tcase, a_gpt_normalises_before_it_adds);
    tcase_add_test(tcase, dropouts_stand_where_they_are_wanted);
    tcase_add_test(tcase, one_lstm_has_no_dropout_between);
    tcase_add_test(tcase, heads_divide_the_channels);
    tcase_add_test(tcase, errors_point_at_the_argument);
    return checks_run(suite);
}
