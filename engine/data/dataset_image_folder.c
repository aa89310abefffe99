/* dataset_image_folder.c: a folder of a folder a class, sorted by their names, with JPEG and PNG
 * files: torchvision's ImageFolder, one folder deep. Files are only listed when the data is opened.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "engine/base/file.h"
#include "engine/base/hash.h"
#include "engine/data/dataset_format.h"

struct picture {
    char *name; /* below the root: "cat/1.jpg" */
    int64_t label;
};

struct folder {
    char *root;
    struct picture *pictures;
    size_t n, capacity;
    int64_t classes;
    uint64_t fingerprint; /* of names and sizes */
};

static void folder_close(void *state)
{
    struct folder *folder = state;
    for (size_t i = 0; i < folder->n; i++)
        free(folder->pictures[i].name);
    free(folder->pictures);
    free(folder->root);
    free(folder);
}

static int nomem(const struct folder *folder, struct err *err)
{
    return err_set(err, ERR_NOMEM, "no memory to list %s", folder->root);
}

static int shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool is_picture(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t ending = strlen(endings[i]);
        if (n > ending && strcasecmp(name + n - ending, endings[i]) == 0)
            return true;
    }
    return false;
}

static int add_picture(struct folder *folder, const char *class, const char *file, int64_t bytes,
                       struct err *err)
{
    char name[LIMIT_PATH_BYTES];
    int rc = file_path(name, err, "%s/%s", class, file);
    if (rc != 0)
        return rc;
    if (folder->n == folder->capacity) {
        size_t capacity = folder->capacity == 0 ? 64 : 2 * folder->capacity;
        struct picture *pictures = realloc(folder->pictures, capacity * sizeof *pictures);
        if (pictures == NULL)
            return nomem(folder, err);
        folder->pictures = pictures;
        folder->capacity = capacity;
    }
    struct picture *picture = &folder->pictures[folder->n];
    *picture = (struct picture){.name = strdup(name), .label = folder->classes};
    if (picture->name == NULL)
        return nomem(folder, err);
    folder->n++;
    folder->fingerprint = hash64(name, strlen(name), folder->fingerprint);
    folder->fingerprint = hash64(&bytes, sizeof bytes, folder->fingerprint);
    return 0;
}

/* Calls `visit` with the entries of a directory, sorted. */
static int visit_all(struct folder *folder, const char *path, const char *class,
                     int (*visit)(struct folder *folder, const char *class, const char *name,
                                  const struct stat *st, struct err *err),
                     struct err *err)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, shown, by_name), rc = 0;
    if (n < 0)
        return errno == ENOMEM ? nomem(folder, err) : err_errno(err, errno, "cannot list %s", path);
    for (int i = 0; i < n; i++) {
        char full[LIMIT_PATH_BYTES];
        struct stat st;
        if (rc == 0)
            rc = file_path(full, err, "%s/%s", path, entries[i]->d_name);
        if (rc == 0 && stat(full, &st) < 0)
            rc = err_errno(err, errno, "cannot inspect %s", full);
        if (rc == 0)
            rc = visit(folder, class, entries[i]->d_name, &st, err);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

static int visit_file(struct folder *folder, const char *class, const char *name,
                      const struct stat *st, struct err *err)
{
    if (!S_ISREG(st->st_mode) || !is_picture(name))
        return 0;
    return add_picture(folder, class, name, st->st_size, err);
}

static int visit_class(struct folder *folder, const char *root, const char *name,
                       const struct stat *st, struct err *err)
{
    char path[LIMIT_PATH_BYTES];
    size_t before = folder->n;
    if (!S_ISDIR(st->st_mode))
        return 0;
    int rc = file_path(path, err, "%s/%s", root, name);
    if (rc == 0)
        rc = visit_all(folder, path, name, visit_file, err);
    if (rc == 0 && folder->n == before)
        rc = err_set(err, ERR_DATA_INVALID,
                     "%s: a class without images (.jpg, .jpeg or .png files)", path);
    folder->classes++;
    return rc;
}

static int list(struct folder *folder, const struct dataset_want *want, struct err *err)
{
    int rc = visit_all(folder, folder->root, folder->root, visit_class, err);
    if (rc == 0 && folder->classes == 0)
        rc = err_set(err, ERR_DATA_INVALID, "%s: there is no folder in it, want one a class",
                     folder->root);
    if (rc == 0 && folder->classes > want->classes)
        rc = err_set(err, ERR_DATA_INVALID, "%s: %lld classes, the model has %lld", folder->root,
                     (long long)folder->classes, (long long)want->classes);
    return rc;
}

static int check_want(const struct dataset_want *want, struct err *err)
{
    char text[SHAPE_TEXT];
    const struct model_input *input = &want->inputs[0];
    if (input->dtype != DTYPE_F32 || input->shape.rank != 3 ||
        (input->shape.dim[0] != 1 && input->shape.dim[0] != 3))
        return err_set(err, ERR_DATA_INVALID,
                       "images are float32 [1, H, W] or [3, H, W], the model's input is %s",
                       shape_format(&input->shape, text));
    if (want->classes == 0 || (want->target_dtype == DTYPE_I64 && want->target.rank > 0))
        return err_set(err, ERR_DATA_INVALID,
                       "an image has one label, the model's output is no row of classes");
    return 0;
}

static int folder_open(const struct job_source *source, const struct dataset_want *want,
                       const char *what, struct dataset_content *ret_content, struct err *err)
{
    if (check_want(want, err) != 0)
        return dataset_blame(err, what, "format");
    struct folder *folder = calloc(1, sizeof *folder);
    char *root = strdup(source->path);
    if (folder == NULL || root == NULL) {
        free(folder);
        free(root);
        return err_set(err, ERR_NOMEM, "no memory for a data set");
    }
    *folder = (struct folder){.root = root, .fingerprint = DATA_IMAGE_FOLDER};
    if (list(folder, want, err) != 0) {
        folder_close(folder);
        return dataset_blame(err, what, "path");
    }
    *ret_content = (struct dataset_content){.state = folder,
                                            .samples = (int64_t)folder->n,
                                            .labels = true,
                                            .fingerprint = folder->fingerprint};
    return 0;
}

static int folder_image(const void *state, int64_t sample, int channels, struct image *ret_image,
                        const char **ret_name, struct err *err)
{
    const struct folder *folder = state;
    char path[LIMIT_PATH_BYTES];
    *ret_name = folder->pictures[sample].name;
    int rc = file_path(path, err, "%s/%s", folder->root, *ret_name);
    return rc != 0 ? rc : image_read(path, channels, ret_image, err);
}

static int folder_labels(const void *state, int64_t sample, int64_t *ret_labels, struct err *err)
{
    (void)err;
    *ret_labels = ((const struct folder *)state)->pictures[sample].label;
    return 0;
}

const struct dataset_format dataset_format_image_folder = {
    .open = folder_open,
    .close = folder_close,
    .image = folder_image,
    .labels = folder_labels,
};
