/* listen.c: see listen.h. */
#define _GNU_SOURCE /* accept4 */
#include "daemon/listen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/log.h"
#include "daemon/statedir.h"

enum {
    BACKLOG = 512,
    AT_ONCE = 32,   /* clients accepted before others on the loop have their turn */
    PAUSE_MS = 200, /* without descriptors */
};

struct listener {
    int fd;
    uv_poll_t poll;
    uv_timer_t pause;
    int open_handles;
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
    dev_t device; /* of the file that we bound: another daemon's is not unlinked */
    ino_t inode;
    void (*accepted)(void *arg, int fd);
    void *arg;
};

static struct sockaddr_un address(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1); /* config.c has checked the length */
    return address;
}

/* Removes a socket that a dead daemon has left. */
static int clear_stale(const char *path, struct err *err)
{
    struct sockaddr_un to = address(path);
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? 0 : err_errno(err, errno, "%s", path);
    if (!S_ISSOCK(st.st_mode))
        return err_set(err, ERR_IO, "%s: is there, and is not a socket", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(err, errno, "socket");
    int failed = connect(fd, (struct sockaddr *)&to, sizeof to) == 0 ? 0 : errno;
    close(fd);
    if (failed == 0 || failed == EAGAIN)
        return err_set(err, ERR_BUSY, "%s: another traind listens there", path);
    if (failed != ECONNREFUSED)
        return err_errno(err, failed, "%s", path);
    return unlink(path) == 0 || errno == ENOENT ? 0 : err_errno(err, errno, "%s", path);
}

/* Who may connect. The file is born 0600 (umask) and opened only once its group is right. */
static int set_access(struct listener *listener, const struct config *config, struct err *err)
{
    struct stat st;
    if (config->group.exists && (chown(listener->path, (uid_t)-1, config->group.gid) != 0 ||
                                 chmod(listener->path, 0660) != 0))
        return err_errno(err, errno, "%s", listener->path);
    if (!config->group.exists && !config->user_mode)
        log_warning("there is no group traind: only root can use %s", listener->path);
    if (stat(listener->path, &st) != 0)
        return err_errno(err, errno, "%s", listener->path);
    listener->device = st.st_dev;
    listener->inode = st.st_ino;
    return 0;
}

/* Nobody else may be able to put a socket of his own in the place of ours. */
static int check_directory(const char *socket, struct err *err)
{
    struct stat st;
    char directory[sizeof((struct sockaddr_un *)0)->sun_path];
    snprintf(directory, sizeof directory, "%s", socket);
    *strrchr(directory, '/') = '\0';
    const char *path = directory[0] != '\0' ? directory : "/";
    if (stat(path, &st) != 0)
        return err_errno(err, errno, "%s", path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return err_set(err, ERR_IO, "%s: belongs to uid %u", path, (unsigned)st.st_uid);
    if ((st.st_mode & 022) != 0 && (st.st_mode & S_ISVTX) == 0)
        return err_set(err, ERR_IO, "%s: others can write to it", path);
    return 0;
}

/* The socket's directory: others may pass (the file has its own mode) in the system daemon. */
static int make_directory(const struct config *config, struct err *err)
{
    mode_t before = umask(config->user_mode ? 077 : 022);
    int rc = statedir_make_parents(config->socket, err);
    umask(before);
    return rc != 0 ? rc : check_directory(config->socket, err);
}

static int bind_and_listen(struct listener *listener, const struct config *config, struct err *err)
{
    struct sockaddr_un at = address(config->socket);
    int rc = make_directory(config, err);
    if (rc == 0)
        rc = clear_stale(config->socket, err);
    if (rc != 0)
        return rc;
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0)
        return err_errno(err, errno, "socket");
    mode_t before = umask(0177);
    int bound = bind(listener->fd, (struct sockaddr *)&at, sizeof at);
    int failed = errno;
    umask(before);
    if (bound != 0)
        return err_errno(err, failed, "%s", config->socket);
    memcpy(listener->path, at.sun_path, sizeof at.sun_path);
    rc = set_access(listener, config, err);
    if (rc == 0 && listen(listener->fd, BACKLOG) != 0)
        rc = err_errno(err, errno, "%s", config->socket);
    return rc;
}

static void on_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    if (--listener->open_handles > 0)
        return;
    close(listener->fd);
    free(listener);
}

int listener_open(uv_loop_t *loop, const struct config *config, struct listener **ret_listener,
                  struct err *err)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    listener->fd = -1;
    int rc = bind_and_listen(listener, config, err);
    if (rc == 0 && uv_poll_init(loop, &listener->poll, listener->fd) != 0)
        rc = err_set(err, ERR_IO, "%s: cannot be polled", config->socket);
    if (rc != 0) {
        if (listener->path[0] != '\0')
            unlink(listener->path);
        if (listener->fd >= 0)
            close(listener->fd);
        free(listener);
        return rc;
    }
    uv_timer_init(loop, &listener->pause);
    listener->poll.data = listener->pause.data = listener;
    listener->open_handles = 2;
    *ret_listener = listener;
    return 0;
}

static void on_readable(uv_poll_t *poll, int status, int events);

static void on_pause_over(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    uv_poll_start(&listener->poll, UV_READABLE, on_readable);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;
    (void)status;
    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            listener->accepted(listener->arg, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            log_warning("clients have to wait: %s", strerror(errno));
            uv_poll_stop(&listener->poll);
            uv_timer_start(&listener->pause, on_pause_over, PAUSE_MS, 0);
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            return; /* EAGAIN: nobody else waits */
        }
    }
}

void listener_start(struct listener *listener, void (*accepted)(void *arg, int fd), void *arg)
{
    listener->accepted = accepted;
    listener->arg = arg;
    uv_poll_start(&listener->poll, UV_READABLE, on_readable);
}

void listener_close(struct listener *listener)
{
    struct stat st;
    if (listener == NULL)
        return;
    if (lstat(listener->path, &st) == 0 && st.st_dev == listener->device &&
        st.st_ino == listener->inode)
        unlink(listener->path);
    uv_close((uv_handle_t *)&listener->poll, on_closed);
    uv_close((uv_handle_t *)&listener->pause, on_closed);
}
