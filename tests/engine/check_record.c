/* check_record.c: record.jsonl: which rows, when, and what they cost. (The numbers themselves:
 * tests/golden/check_observe.c.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

static char *place(const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", checks_scratch(), name);
    return path;
}

#define RECORD "'record': ['a.output', 'b.weight.grad', 'bn.output.grad', 'b.bias']"
#define ALL "{'train': {" RECORD "}}"

/* "3 a.output cpu:1", a line a row. */
static const char *rows(const char *output)
{
    static char list[8192];
    char *text = run_job_contents(output, "record.jsonl", NULL), *rest = text, *line;
    size_t used = 0;
    list[0] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        json_t *row = json_loads(line, 0, NULL);
        ck_assert_msg(row != NULL, "%s", line);
        used += (size_t)snprintf(list + used, sizeof list - used, "%lld %s %s\n",
                                 (long long)json_integer_value(json_object_get(row, "step")),
                                 json_string_value(json_object_get(row, "name")),
                                 json_string_value(json_object_get(row, "device")));
        json_decref(row);
    }
    free(text);
    return list;
}

START_TEST(a_row_a_name_and_device_at_each_logged_step)
{
    static struct run_job run;
    run_job_well("{'train': {'epochs': 1, 'log_every': 2, 'record': ['b.weight', 'a.output']}}",
                 place("some"), 2, &run);
    ck_assert_str_eq(rows(place("some")), "2 b.weight cpu:0\n2 b.weight cpu:1\n"
                                          "2 a.output cpu:0\n2 a.output cpu:1\n"
                                          "3 b.weight cpu:0\n3 b.weight cpu:1\n"
                                          "3 a.output cpu:0\n3 a.output cpu:1\n");
}
END_TEST

/* The last batch of an epoch of 7 samples in batches of 6: one chunk. */
START_TEST(a_device_that_rests_has_no_row)
{
    static struct run_job run;
    run_job_well("{'model': {'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 3}]},"
                 " 'data': {'train': {'samples': 7}},"
                 " 'train': {'epochs': 1, 'batch_size': 6, 'record': ['a.weight.grad']}}",
                 place("rests"), 2, &run);
    ck_assert_str_eq(rows(place("rests")),
                     "1 a.weight.grad cpu:0\n1 a.weight.grad cpu:1\n2 a.weight.grad cpu:0\n");
}
END_TEST

START_TEST(recording_changes_no_bit)
{
    static struct run_job run;
    run_job_well("{}", place("without"), 2, &run);
    run_job_well(ALL, place("with"), 2, &run);
    run_job_same_file(place("without"), place("with"), "weights.safetensors");
    char *text = run_job_contents(place("without"), "record.jsonl", NULL);
    ck_assert_str_eq(text, "");
    free(text);
}
END_TEST

START_TEST(recomputed_layers_are_recorded_once)
{
    static struct run_job run;
    run_job_well(ALL, place("kept"), 2, &run);
    run_job_well("{'train': {'checkpoint_activations': ['bn', '2'], " RECORD "}}",
                 place("recomputed"), 2, &run);
    run_job_same_file(place("kept"), place("recomputed"), "record.jsonl");
    run_job_same_file(place("kept"), place("recomputed"), "weights.safetensors");
}
END_TEST

/* The checkpoint is of step 4: rows of step 5 go and come again. */
START_TEST(a_resume_cuts_what_came_later)
{
    static struct run_job run;
    run_job_well(ALL, place("whole"), 2, &run);
    run_job(ALL, place("parts"), 2, 3, &run);
    ck_assert_int_eq(run.rc, ERR_CANCELLED);
    char path[600];
    snprintf(path, sizeof path, "%s/record.jsonl", place("parts"));
    FILE *file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    fputs("{\"step\": 4, \"epoch\": 2, \"name\": \"a.output\"}\n{\"step\": 5, \"ep", file);
    fclose(file);
    run_job_well(ALL, place("parts"), 2, &run);
    run_job_same_file(place("whole"), place("parts"), "record.jsonl");
}
END_TEST

/* What an earlier run left is not this one's. */
START_TEST(a_new_run_clears_old_rows)
{
    static struct run_job run;
    run_job_well(ALL, place("again"), 1, &run);
    run_job_well("{'checkpoint': {'resume': 'never'}}", place("again"), 1, &run);
    ck_assert_str_eq(rows(place("again")), "");
}
END_TEST

/* The row that shows where it came from is there though the job fails. */
START_TEST(a_loss_that_is_no_number_is_recorded)
{
    static struct run_job run;
    run_job("{'optimizer': {'lr': 1e38}, 'train': {'record': ['b.output']}}", place("nan"), 1, 0,
            &run);
    ck_assert_int_eq(run.rc, ERR_LOSS_NAN);
    char *text = run_job_contents(place("nan"), "record.jsonl", NULL);
    ck_assert_msg(strstr(text, "\"max_abs\": null, \"nan_count\": ") != NULL, "%s", text);
    ck_assert_ptr_null(strstr(text, ": nan"));
    ck_assert_ptr_null(strstr(text, ": inf"));
    free(text);
}
END_TEST

static const struct {
    const char *patch, *path, *message;
} refused[] = {
    {"{'train': {'record': ['a.output', 'a.weights']}}", "/train/record/1",
     "\"a.weights\" cannot be recorded: nothing has this name; did you mean \"a.weight\"?"},
    {"{'train': {'record': ['b.ouput.grad']}}", "/train/record/0",
     "did you mean \"b.output.grad\"?"},
    {"{'train': {'record': ['a.something']}}", "/train/record/0",
     "allowed are \"LAYER.output\", parameters such as \"LAYER.weight\""},
    {"{'train': {'record': ['bn.running_mean']}}", "/train/record/0", "nothing has this name"},
    {"{'model': {'freeze': ['a', 'bn']}, 'train': {'record': ['a.weight.grad']}}",
     "/train/record/0", "no gradient flows there"},
    {"{'model': {'freeze': ['a', 'bn']}, 'train': {'record': ['2.output.grad']}}",
     "/train/record/0", "\"2.output.grad\" cannot be recorded: no gradient flows there"},
};

START_TEST(what_cannot_be_recorded_is_named)
{
    static struct run_job run;
    run_job(refused[_i].patch, place("refused"), 1, 0, &run);
    ck_assert_int_eq(run.rc, ERR_JOB_INVALID);
    ck_assert_str_eq(run.err.path, refused[_i].path);
    ck_assert_msg(strstr(run.err.message, refused[_i].message) != NULL, "%s", run.err.message);
}
END_TEST

int main(void)
{
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("record");
    TCase *tcase = checks_case(suite, "rows", 60);
    tcase_add_test(tcase, a_row_a_name_and_device_at_each_logged_step);
    tcase_add_test(tcase, a_device_that_rests_has_no_row);
    tcase_add_test(tcase, recording_changes_no_bit);
    tcase_add_test(tcase, recomputed_layers_are_recorded_once);
    tcase_add_test(tcase, a_resume_cuts_what_came_later);
    tcase_add_test(tcase, a_new_run_clears_old_rows);
    tcase_add_test(tcase, a_loss_that_is_no_number_is_recorded);
    tcase_add_loop_test(tcase, what_cannot_be_recorded_is_named, 0,
                        (int)(sizeof refused / sizeof refused[0]));
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
