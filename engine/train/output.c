/* output.c: the lock is flock on PATH/lock: it goes with its process, however that ends. */
#include "engine/train/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/train/checkpoint.h"
#include "proto/json.h"

static int output_errno(struct err *err, int errnum, const char *what, const char *path)
{
    return err_set(err, ERR_OUTPUT, "%s %s: %s", what, path, strerror(errnum));
}

/* Removes the directories that were made, from the deepest up; those in use stay. */
static void remove_made(const char *deepest, size_t made)
{
    char path[LIMIT_PATH_BYTES];
    snprintf(path, sizeof path, "%s", deepest);
    for (char *end = path; end != NULL && made > 0 && rmdir(path) == 0; made--) {
        end = strrchr(path, '/');
        if (end != NULL)
            *end = '\0';
    }
}

/* mkdir, made to last as far as the directory above it may be read; 0 or an errno. */
static int make_dir(const char *path)
{
    char parent[LIMIT_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    if (mkdir(path, 0777) < 0)
        return errno;
    snprintf(parent, sizeof parent, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
             slash == NULL ? "." : path);
    file_sync_dir(parent, &(struct err)ERR_INIT);
    return 0;
}

/* mkdir -p; *ret_made counts what was missing. */
static int make_dirs(const char *path, size_t *ret_made, struct err *err)
{
    char part[LIMIT_PATH_BYTES];
    struct stat st;
    size_t made = 0, deepest = 0;
    int rc = 0;
    for (size_t i = 1; rc == 0; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        int errnum = path[i - 1] != '/' ? make_dir(part) : EEXIST;
        if (errnum == 0) {
            made++;
            deepest = i;
        } else if (errnum != EEXIST && stat(part, &st) < 0) { /* EROFS also where it is there */
            rc = output_errno(err, errnum, "cannot make the output directory", path);
        }
        if (path[i] == '\0')
            break;
    }
    if (rc == 0 && stat(path, &st) < 0)
        rc = output_errno(err, errno, "cannot use the output directory", path);
    else if (rc == 0 && !S_ISDIR(st.st_mode))
        rc = output_errno(err, ENOTDIR, "cannot use the output directory", path);
    if (rc != 0) {
        part[deepest] = '\0';
        remove_made(part, made);
        return rc;
    }
    *ret_made = made;
    return 0;
}

static int lock_path(const struct output *output, char *ret_path, struct err *err)
{
    return file_path(ret_path, err, "%s/lock", output->path);
}

static int report_holder(int fd, const char *path, struct err *err)
{
    char holder[LIMIT_NAME_BYTES + 64];
    ssize_t n = pread(fd, holder, sizeof holder - 1, 0);
    holder[n > 0 ? n : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
    return err_set(err, ERR_OUTPUT, "the output directory %s is in use by another job: %s", path,
                   holder[0] != '\0' ? holder : "it has just begun");
}

/* Whether the file that is locked is still the one at `path`: a job that abandons a directory
 * removes its lock file. */
static bool is_current(int fd, const char *path)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

static int take_lock(struct output *output, struct err *err)
{
    char path[LIMIT_PATH_BYTES];
    int rc = lock_path(output, path, err);
    while (rc == 0 && output->lock < 0) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (fd < 0)
            return output_errno(err, errno, "cannot write into the output directory", output->path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
            rc = errno == EWOULDBLOCK ? report_holder(fd, output->path, err)
                                      : output_errno(err, errno, "cannot lock", path);
        else if (is_current(fd, path))
            output->lock = fd;
        if (output->lock < 0)
            close(fd);
    }
    return rc;
}

static int write_holder(const struct output *output, const char *job_name, struct err *err)
{
    char text[LIMIT_NAME_BYTES + 64];
    int n = snprintf(text, sizeof text, "\"%.*s\", process %ld\n", LIMIT_NAME_BYTES, job_name,
                     (long)getpid());
    if (ftruncate(output->lock, 0) < 0 || pwrite(output->lock, text, (size_t)n, 0) != n)
        return output_errno(err, errno, "cannot write into the output directory", output->path);
    return 0;
}

int output_open(const char *path, const char *job_name, struct output *ret_output, struct err *err)
{
    struct output output = {.lock = -1};
    int rc = path[0] == '\0' || strlen(path) >= LIMIT_PATH_BYTES
                 ? err_set(err, ERR_OUTPUT, "the output directory's path is %s",
                           path[0] == '\0' ? "empty" : "too long")
                 : make_dirs(path, &output.made, err);
    if (rc != 0)
        return rc;
    if (realpath(path, output.path) == NULL)
        return output_errno(err, errno, "cannot use the output directory", path);
    rc = take_lock(&output, err);
    if (rc == 0)
        rc = write_holder(&output, job_name, err);
    if (rc == 0) {
        *ret_output = output;
        return 0;
    }
    if (output.lock >= 0)
        output_abandon(&output);
    else
        remove_made(output.path, output.made);
    return rc;
}

void output_close(struct output *output)
{
    if (output->lock >= 0)
        close(output->lock);
    output->lock = -1;
}

void output_abandon(struct output *output)
{
    char path[LIMIT_PATH_BYTES];
    if (output->made > 0 && lock_path(output, path, &(struct err)ERR_INIT) == 0) {
        unlink(path); /* while it is locked */
        remove_made(output->path, output->made);
    }
    output_close(output);
}

/* What a job writes beside its checkpoints. */
static const char *const weights_names[] = {"weights.safetensors", "best.safetensors"};
enum { N_WEIGHTS = sizeof weights_names / sizeof weights_names[0] };

int output_keep(const struct output *output, const char *input, struct err *err)
{
    char path[LIMIT_PATH_BYTES];
    struct stat read, written;
    int rc = 0;
    if (stat(input, &read) < 0)
        return 0; /* who opens it says so */
    for (int i = 0; rc == 0 && i < N_WEIGHTS; i++) {
        rc = file_path(path, err, "%s/%s", output->path, weights_names[i]);
        if (rc == 0 && stat(path, &written) == 0 && read.st_dev == written.st_dev &&
            read.st_ino == written.st_ino)
            rc = err_set(err, ERR_OUTPUT,
                         "%s would be overwritten by the weights of this job: choose another "
                         "output directory",
                         input);
    }
    return rc;
}

int output_clear(const struct output *output, struct err *err)
{
    char path[LIMIT_PATH_BYTES];
    int rc = checkpoint_clear(output->path, err);
    for (int i = 0; rc == 0 && i < N_WEIGHTS; i++) {
        rc = file_path(path, err, "%s/%s", output->path, weights_names[i]);
        if (rc == 0 && unlink(path) < 0 && errno != ENOENT)
            rc = output_errno(err, errno, "cannot remove", path);
    }
    return rc;
}

int output_write_job(const struct output *output, const struct job *job, struct err *err)
{
    json_t *root = job_dump(job);
    char *text = NULL;
    if (root != NULL && json_object_set_new(root, "output", json_string(output->path)) == 0)
        text = json_pretty(root);
    json_decref(root);
    if (text == NULL)
        return err_set(err, ERR_NOMEM, "no memory to write job.json");
    int rc = file_replace(output->path, "job.json", text, strlen(text), err);
    free(text);
    return rc;
}
