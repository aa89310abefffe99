/* checkpoint.c: directories of whole checkpoints.
 *
 *     checkpoints/step-00000500.tmp   being written or being removed; left by a killed run: removed
 *     checkpoints/step-00000500       whole
 */
#include "engine/train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/base/safetensors.h"
#include "engine/train/choices.h"
#include "engine/train/identity.h"
#include "engine/train/snapshot.h"
#include "engine/train/weights.h"
#include "proto/json.h"

enum { WARNING_BYTES = 512 };

struct place { /* of one checkpoint */
    char dir[LIMIT_PATH_BYTES], fresh[LIMIT_PATH_BYTES], path[LIMIT_PATH_BYTES];
};

static int place_of(const char *output, int64_t step, struct place *place, struct err *err)
{
    int rc = file_path(place->dir, err, "%s/checkpoints", output);
    if (rc == 0)
        rc = file_path(place->path, err, "%s/step-%08" PRId64, place->dir, step);
    return rc != 0 ? rc : file_path(place->fresh, err, "%s.tmp", place->path);
}

/* The step of a name, -1 where it is no checkpoint's. *ret_stale: a temporary directory. */
static int64_t parse_name(const char *name, bool *ret_stale)
{
    char *end;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9')
        return -1;
    errno = 0;
    long long step = strtoll(name + 5, &end, 10);
    *ret_stale = strcmp(end, ".tmp") == 0;
    return errno == 0 && (*end == '\0' || *ret_stale) ? step : -1;
}

struct steps { /* of the checkpoints that are there, newest first */
    int64_t *step;
    size_t n;
};

static int newest_first(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left < right) - (left > right);
}

static int add_entry(const char *output, const char *name, bool clean, struct steps *steps,
                     struct err *err)
{
    bool stale;
    struct place place;
    int64_t step = parse_name(name, &stale);
    if (step < 0)
        return 0;
    if (stale && !clean)
        return 0;
    if (stale) {
        int rc = place_of(output, step, &place, err);
        return rc != 0 ? rc : file_remove_tree(place.fresh, err);
    }
    int64_t *grown = realloc(steps->step, (steps->n + 1) * sizeof *grown);
    if (grown == NULL)
        return err_set(err, ERR_NOMEM, "no memory to list checkpoints");
    steps->step = grown;
    steps->step[steps->n++] = step;
    return 0;
}

/* Lists what is there, and removes what a killed run left (`clean`: the directory is ours). No
 * directory: no checkpoints. */
static int list_steps(const char *output, bool clean, struct steps *ret_steps, struct err *err)
{
    struct place place;
    struct steps steps = {NULL, 0};
    int rc = place_of(output, 0, &place, err);
    if (rc != 0)
        return rc;
    DIR *dir = opendir(place.dir);
    if (dir == NULL && errno != ENOENT)
        return err_errno(err, errno, "cannot list %s", place.dir);
    for (struct dirent *entry; rc == 0 && dir != NULL && (entry = readdir(dir)) != NULL;)
        rc = add_entry(output, entry->d_name, clean, &steps, err);
    if (dir != NULL)
        closedir(dir);
    if (rc != 0) {
        free(steps.step);
        return rc;
    }
    if (steps.n > 0)
        qsort(steps.step, steps.n, sizeof *steps.step, newest_first);
    *ret_steps = steps;
    return 0;
}

/* Out of sight at once, then away: a kill in between leaves no half checkpoint. */
static int remove_step(const char *output, int64_t step, struct err *err)
{
    struct place place;
    int rc = place_of(output, step, &place, err);
    if (rc != 0)
        return rc;
    if (rename(place.path, place.fresh) < 0 && errno != ENOENT)
        return err_errno(err, errno, "cannot remove %s", place.path);
    return file_remove_tree(place.fresh, err);
}

/* Newer ones than `step` are damaged (a resume would have begun there): they stay until the run
 * gets there. */
static int prune(const char *output, int64_t step, int64_t keep, struct err *err)
{
    struct steps steps;
    int64_t kept = 0;
    int rc = list_steps(output, true, &steps, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < steps.n && rc == 0; i++)
        if (steps.step[i] <= step && ++kept > keep)
            rc = remove_step(output, steps.step[i], err);
    free(steps.step);
    return rc;
}

int checkpoint_clear(const char *output, struct err *err)
{
    return prune(output, INT64_MAX, 0, err);
}

static const char choices_key[] = "choices";

static int write_choices(const struct job *job, json_t *metadata, struct err *err)
{
    json_t *choices = choices_dump(job);
    char *text = choices != NULL ? json_line(choices) : NULL;
    int rc = text != NULL ? json_object_set_new(metadata, choices_key, json_string(text)) : -1;
    json_decref(choices);
    free(text);
    return rc == 0 ? 0 : err_set(err, ERR_NOMEM, "no memory for a checkpoint's metadata");
}

static json_t *state_metadata(const struct model *model, const struct checkpoint_position *position,
                              uint64_t hash, struct err *err)
{
    json_t *metadata = json_pack("{s:s, s:o, s:o}", "format", "traind checkpoint 1", "step",
                                 json_sprintf("%" PRId64, position->step), "hash",
                                 json_sprintf("%016" PRIx64, hash));
    if (metadata == NULL) {
        err_set(err, ERR_NOMEM, "no memory for a checkpoint's metadata");
        return NULL;
    }
    if (identity_write(model->job, position->data, metadata, err) != 0 ||
        write_choices(model->job, metadata, err) != 0) {
        json_decref(metadata);
        return NULL;
    }
    return metadata;
}

static int write_state(struct strategy *strategy, const struct model *model, const char *path,
                       const struct checkpoint_position *position, uint64_t hash, struct err *err)
{
    struct snapshot snapshot;
    int rc = snapshot_read(strategy, model, SNAPSHOT_STATE, &snapshot, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < snapshot.n; i++)
        hash += snapshot_hash(&snapshot.tensors[i]);
    json_t *metadata = state_metadata(model, position, hash, err);
    rc = metadata != NULL ? safetensors_write(path, snapshot.tensors, snapshot.n, metadata, err)
                          : err->code;
    json_decref(metadata);
    snapshot_done(&snapshot);
    return rc;
}

static int write_files(struct strategy *strategy, const struct model *model, const char *dir,
                       const struct checkpoint_position *position, struct err *err)
{
    char path[LIMIT_PATH_BYTES];
    uint64_t hash = 0;
    int rc = file_path(path, err, "%s/weights.safetensors", dir);
    if (rc == 0)
        rc = weights_write(strategy, model, path, &hash, err);
    if (rc == 0)
        rc = file_path(path, err, "%s/state.safetensors", dir);
    if (rc == 0)
        rc = write_state(strategy, model, path, position, hash, err);
    return rc != 0 ? rc : file_sync_dir(dir, err);
}

static int make_fresh(const char *output, const struct place *place, struct err *err)
{
    if (mkdir(place->dir, 0777) == 0) {
        int rc = file_sync_dir(output, err);
        if (rc != 0)
            return rc;
    } else if (errno != EEXIST) {
        return err_errno(err, errno, "cannot make %s", place->dir);
    }
    int rc = file_remove_tree(place->fresh, err);
    if (rc == 0 && mkdir(place->fresh, 0777) < 0)
        rc = err_errno(err, errno, "cannot make %s", place->fresh);
    return rc;
}

int checkpoint_save(struct strategy *strategy, const struct model *model, const char *output,
                    const struct checkpoint_position *position, int64_t keep, char *ret_path,
                    struct err *err)
{
    struct place place;
    int rc = place_of(output, position->step, &place, err);
    if (rc == 0)
        rc = remove_step(output, position->step, err); /* one that was passed over as damaged */
    if (rc == 0)
        rc = make_fresh(output, &place, err);
    if (rc != 0)
        return rc;
    rc = write_files(strategy, model, place.fresh, position, err);
    if (rc == 0)
        rc = file_rename(place.fresh, place.path, place.dir, err);
    if (rc != 0) {
        file_remove_tree(place.fresh, &(struct err)ERR_INIT);
        return rc;
    }
    strcpy(ret_path, place.path);
    return prune(output, position->step, keep, err);
}

struct opened { /* the files of one checkpoint */
    struct safetensors *weights, *state;
    int64_t step;
};

static void close_files(struct opened *opened)
{
    safetensors_close(opened->weights);
    safetensors_close(opened->state);
    *opened = (struct opened){NULL, NULL, 0};
}

static uint64_t hash_file(const struct safetensors *file)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < safetensors_count(file); i++)
        hash += snapshot_hash(safetensors_at(file, i));
    return hash;
}

static int check_whole(const struct opened *opened, const char *path, struct err *err)
{
    char hash[17], step[24];
    const char *said_hash = safetensors_metadata(opened->state, "hash");
    const char *said_step = safetensors_metadata(opened->state, "step");
    snprintf(hash, sizeof hash, "%016" PRIx64,
             hash_file(opened->weights) + hash_file(opened->state));
    snprintf(step, sizeof step, "%" PRId64, opened->step);
    if (said_step == NULL || strcmp(said_step, step) != 0)
        return err_set(err, ERR_WEIGHTS_INVALID, "%s: its state is of step %.20s", path,
                       said_step != NULL ? said_step : "(none)");
    if (said_hash == NULL || strcmp(said_hash, hash) != 0)
        return err_set(err, ERR_WEIGHTS_INVALID, "%s: its tensors' hash is %s, want %.16s", path,
                       hash, said_hash != NULL ? said_hash : "(none)");
    return 0;
}

/* A file that is not there is damage; one that cannot be opened now (no descriptor, no right, no
 * memory) is not. */
static int open_file(const struct place *place, const char *name, struct safetensors **ret_file,
                     struct err *err)
{
    char path[LIMIT_PATH_BYTES];
    int rc = file_path(path, err, "%s/%s", place->path, name);
    if (rc == 0 && access(path, F_OK) < 0 && errno == ENOENT)
        return err_set(err, ERR_WEIGHTS_INVALID, "%s is missing", path);
    return rc != 0 ? rc : safetensors_open(path, ret_file, err);
}

static int open_files(const struct place *place, int64_t step, struct opened *ret_opened,
                      struct err *err)
{
    struct opened opened = {NULL, NULL, step};
    int rc = open_file(place, "weights.safetensors", &opened.weights, err);
    if (rc == 0)
        rc = open_file(place, "state.safetensors", &opened.state, err);
    if (rc == 0)
        rc = check_whole(&opened, place->path, err);
    if (rc == 0)
        *ret_opened = opened;
    else
        close_files(&opened);
    return rc;
}

static void warn(char *warning, const char *reason)
{
    size_t used = strlen(warning);
    snprintf(warning + used, WARNING_BYTES - used, "%sa damaged checkpoint is passed over: %s",
             used > 0 ? "; " : "", reason);
}

/* Opens the newest checkpoint that is whole; none: both files stay NULL. Only damage is passed
 * over: a run that cannot read a good checkpoint must not begin anew and remove it. */
static int open_newest(const char *output, bool clean, struct place *place,
                       struct opened *ret_opened, char *warning, struct err *err)
{
    struct steps steps;
    int rc = list_steps(output, clean, &steps, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < steps.n; i++) {
        rc = place_of(output, steps.step[i], place, err);
        if (rc == 0)
            rc = open_files(place, steps.step[i], ret_opened, err);
        if (rc != ERR_WEIGHTS_INVALID)
            break;
        warn(warning, err->message);
        *err = (struct err)ERR_INIT;
        rc = 0;
    }
    free(steps.step);
    return rc;
}

static const struct safetensor *find_variable(const struct opened *opened,
                                              const struct variable *variable)
{
    bool weight = (SNAPSHOT_WEIGHTS >> variable->kind & 1) != 0;
    return safetensors_find(weight ? opened->weights : opened->state, variable->name);
}

static bool is_kept(const struct variable *variable)
{
    return ((SNAPSHOT_WEIGHTS | SNAPSHOT_STATE) >> variable->kind & 1) != 0;
}

static int restore(struct strategy *strategy, const struct model *model,
                   const struct opened *opened, const char *path, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < model->n_variables && rc == 0; i++) {
        const struct variable *variable = &model->variables[i];
        if (is_kept(variable))
            rc =
                weights_check(find_variable(opened, variable), variable, path, ERR_CHECKPOINT, err);
    }
    for (size_t i = 0; i < model->n_variables && rc == 0; i++) {
        const struct variable *variable = &model->variables[i];
        if (is_kept(variable))
            rc = strategy_write(strategy, (int)i, find_variable(opened, variable)->data, err);
    }
    return rc;
}

int checkpoint_resume(struct strategy *strategy, const struct model *model, const char *output,
                      struct identity_data data, struct checkpoint_position *ret_position,
                      char *warning, struct err *err)
{
    struct place place;
    struct opened opened = {NULL, NULL, 0};
    warning[0] = '\0';
    int rc = open_newest(output, true, &place, &opened, warning, err);
    if (rc == 0 && opened.state != NULL)
        rc = identity_check(model->job, data, opened.state, place.path, err);
    if (rc == 0 && opened.state != NULL)
        rc = restore(strategy, model, &opened, place.path, err);
    if (rc == 0 && opened.state != NULL) /* a kill may have come before it */
        rc = prune(output, opened.step, model->job->checkpoint.keep, err);
    if (rc == 0)
        *ret_position = (struct checkpoint_position){opened.step, data};
    close_files(&opened);
    return rc;
}

int checkpoint_choices(const char *output, json_t **ret_choices, struct err *err)
{
    struct place place;
    struct opened opened = {NULL, NULL, 0};
    char warning[WARNING_BYTES] = "";
    int rc = open_newest(output, false, &place, &opened, warning, err);
    const char *text =
        opened.state != NULL ? safetensors_metadata(opened.state, choices_key) : NULL;
    if (rc == 0)
        *ret_choices = text != NULL ? json_loads(text, 0, NULL) : NULL;
    close_files(&opened);
    return rc;
}
