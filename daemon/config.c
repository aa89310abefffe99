/* config.c: see config.h. */
#define _GNU_SOURCE /* vasprintf */
#include "daemon/config.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/limits.h"

static const char usage[] =
    "usage: traind [--user] [OPTION]…\n"
    "Shares this machine's devices between training jobs; trainctl talks to it.\n"
    "\n"
    "  --user               for one user: jobs run as whoever starts the daemon\n"
    "  --socket PATH        where to listen\n"
    "  --state DIR          where jobs are kept\n"
    "  --detach             return when it serves, and go on in the background (log: "
    "STATE/traind.log)\n"
    "  --cpu-devices N      offer N CPU devices (default: one a core)\n"
    "  --group NAME         may use the socket (default: traind)\n"
    "  --admin-group NAME   may change every job, and see all of it (default: traind-admin)\n"
    "  --allow-root-jobs    run jobs of uid 0\n"
    "  --grace SECONDS      from SIGTERM to SIGKILL for a job (default: 10)\n"
    "  --half-life HOURS    use of devices counts half after so long (default: 24)\n"
    "  --user-devices N     that one user may hold at once (default: all)\n"
    "  --user-jobs N        that one user may have waiting or running (default: 5000)\n"
    "  --worker PATH        traind-worker\n"
    "  --shim PATH          traind-shim\n"
    "  --check-config       print the settings and exit\n"
    "  --help, --version\n";

const char *config_usage(void)
{
    return usage;
}

static int set_text(char **field, const char *value, struct err *err)
{
    char *copy = strdup(value);
    if (copy == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    free(*field);
    *field = copy;
    return 0;
}

static int set_format(char **field, struct err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int set_format(char **field, struct err *err, const char *format, ...)
{
    va_list args;
    char *text;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        return err_set(err, ERR_NOMEM, "out of memory");
    free(*field);
    *field = text;
    return 0;
}

static int read_number(const char *option, const char *text, int min, int max, int *ret_value,
                       struct err *err)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < min || value > max)
        return err_set(err, ERR_USAGE, "%s: \"%s\" is not a number from %d to %d", option, text,
                       min, max);
    *ret_value = (int)value;
    return 0;
}

/* A path given on the command line, made absolute. */
static int set_path(char **field, const char *value, struct err *err)
{
    char cwd[PATH_MAX];
    if (value[0] == '/')
        return set_text(field, value, err);
    if (getcwd(cwd, sizeof cwd) == NULL)
        return err_errno(err, errno, "the working directory");
    return set_format(field, err, "%s/%s", cwd, value);
}

/* ── The options: a row each ── */

#define FLAG(function, field)                                                                      \
    static int function(struct config *config, const char *value, struct err *err)                 \
    {                                                                                              \
        (void)value;                                                                               \
        (void)err;                                                                                 \
        config->field = true;                                                                      \
        return 0;                                                                                  \
    }
#define PATH(function, field)                                                                      \
    static int function(struct config *config, const char *value, struct err *err)                 \
    {                                                                                              \
        if (value[0] == '\0')                                                                      \
            return err_set(err, ERR_USAGE, "--" #field ": the path is empty");                     \
        return set_path(&config->field, value, err);                                               \
    }

FLAG(set_user, user_mode)
FLAG(set_allow_root_jobs, allow_root_jobs)
FLAG(set_detach, detach)
FLAG(set_check_only, check_only)
FLAG(set_help, show_help)
FLAG(set_version, show_version)
PATH(set_socket, socket)
PATH(set_state, state)
PATH(set_worker, worker)
PATH(set_shim, shim)

static int set_group(struct config *config, const char *value, struct err *err)
{
    return set_text(&config->group.name, value, err);
}

static int set_admin_group(struct config *config, const char *value, struct err *err)
{
    return set_text(&config->admin_group.name, value, err);
}

static int set_cpu_devices(struct config *config, const char *value, struct err *err)
{
    return read_number("--cpu-devices", value, 1, LIMIT_DEVICES, &config->cpu_devices, err);
}

static int set_grace(struct config *config, const char *value, struct err *err)
{
    return read_number("--grace", value, 1, 3600, &config->grace_s, err);
}

static int set_half_life(struct config *config, const char *value, struct err *err)
{
    return read_number("--half-life", value, 1, 10000, &config->half_life_h, err);
}

static int set_user_devices(struct config *config, const char *value, struct err *err)
{
    return read_number("--user-devices", value, 1, LIMIT_DEVICES, &config->user_devices, err);
}

static int set_user_jobs(struct config *config, const char *value, struct err *err)
{
    return read_number("--user-jobs", value, 1, 1000000, &config->user_jobs, err);
}

static const struct row {
    const char *name;
    int has_argument;
    int (*set)(struct config *config, const char *value, struct err *err);
} rows[] = {
    // clang-format off
    {"user", no_argument, set_user},
    {"socket", required_argument, set_socket},
    {"state", required_argument, set_state},
    {"detach", no_argument, set_detach},
    {"cpu-devices", required_argument, set_cpu_devices},
    {"group", required_argument, set_group},
    {"admin-group", required_argument, set_admin_group},
    {"allow-root-jobs", no_argument, set_allow_root_jobs},
    {"grace", required_argument, set_grace},
    {"half-life", required_argument, set_half_life},
    {"user-devices", required_argument, set_user_devices},
    {"user-jobs", required_argument, set_user_jobs},
    {"worker", required_argument, set_worker},
    {"shim", required_argument, set_shim},
    {"check-config", no_argument, set_check_only},
    {"help", no_argument, set_help},
    {"version", no_argument, set_version},
    // clang-format on
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static int read_options(int argc, char **argv, struct config *config, struct err *err)
{
    struct option options[N_ROWS + 1] = {0};
    int at, rc = 0;
    for (int i = 0; i < N_ROWS; i++)
        options[i] = (struct option){rows[i].name, rows[i].has_argument, NULL, i};
    optind = 0; /* from the beginning, also a second time in one process */
    while (rc == 0 && (at = getopt_long(argc, argv, "", options, NULL)) != -1)
        rc = at < N_ROWS ? rows[at].set(config, optarg, err)
                         : err_set(err, ERR_USAGE, "try traind --help"); /* '?' */
    if (rc == 0 && optind < argc)
        rc = err_set(err, ERR_USAGE, "unexpected argument \"%s\": try traind --help", argv[optind]);
    return rc;
}

static int default_socket(struct config *config, struct err *err)
{
    const char *given = getenv("TRAIND_SOCKET");
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (given != NULL && given[0] != '\0')
        return set_path(&config->socket, given, err);
    if (!config->user_mode)
        return set_text(&config->socket, "/run/traind/traind.sock", err);
    if (runtime != NULL && runtime[0] == '/')
        return set_format(&config->socket, err, "%s/traind/traind.sock", runtime);
    return set_format(&config->socket, err, "/tmp/traind-%u/traind.sock", (unsigned)getuid());
}

static int default_state(struct config *config, struct err *err)
{
    const char *base = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    if (!config->user_mode)
        return set_text(&config->state, "/var/lib/traind", err);
    if (base != NULL && base[0] == '/')
        return set_format(&config->state, err, "%s/traind", base);
    if (home == NULL || home[0] != '/')
        return err_set(err, ERR_USAGE, "HOME is not set: give --state DIR");
    return set_format(&config->state, err, "%s/.local/state/traind", home);
}

/* A program of ours: beside the daemon in the build tree, else where it was installed. */
static int default_program(char **field, const char *in_build_tree, const char *name,
                           struct err *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = NULL;
    if (n > 0) {
        self[n] = '\0';
        slash = strrchr(self, '/');
    }
    if (slash != NULL) {
        *slash = '\0';
        int rc = set_format(field, err, "%s/%s", self, in_build_tree);
        if (rc != 0 || access(*field, X_OK) == 0)
            return rc;
    }
    return set_format(field, err, "%s/%s", TRAIND_LIBEXECDIR, name);
}

static int set_defaults(struct config *config, struct err *err)
{
    int rc = 0;
    if (config->socket == NULL)
        rc = default_socket(config, err);
    if (rc == 0 && config->state == NULL)
        rc = default_state(config, err);
    if (rc == 0 && config->worker == NULL)
        rc = default_program(&config->worker, "../engine/worker/traind-worker", "traind-worker",
                             err);
    if (rc == 0 && config->shim == NULL)
        rc = default_program(&config->shim, "traind-shim", "traind-shim", err);
    return rc;
}

/* A group that was named must exist; the system daemon's default may not. */
static int find_group(const char *option, const char *fallback, struct config_group *group,
                      struct err *err)
{
    const char *name = group->name != NULL ? group->name : fallback;
    if (name == NULL)
        return 0;
    const struct group *found = getgrnam(name);
    if (found == NULL)
        return group->name == NULL
                   ? 0
                   : err_set(err, ERR_USAGE, "%s: there is no group \"%s\"", option, name);
    group->exists = true;
    group->gid = found->gr_gid;
    return set_text(&group->name, found->gr_name, err);
}

/* The one name-service look-up, before the loop runs. */
static int find_groups(struct config *config, struct err *err)
{
    bool system = !config->user_mode;
    int rc = find_group("--group", system ? "traind" : NULL, &config->group, err);
    if (rc != 0)
        return rc;
    return find_group("--admin-group", system ? "traind-admin" : NULL, &config->admin_group, err);
}

static int check(struct config *config, struct err *err)
{
    if (!config->user_mode && geteuid() != 0)
        return err_set(err, ERR_USAGE, "only root can run jobs as other users: use --user");
    if (strlen(config->socket) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return err_set(err, ERR_USAGE, "the socket's path is longer than %zu bytes: %s",
                       sizeof((struct sockaddr_un *)0)->sun_path - 1, config->socket);
    return find_groups(config, err);
}

int config_check_programs(const struct config *config, struct err *err)
{
    if (access(config->worker, X_OK) != 0)
        return err_set(err, ERR_USAGE, "--worker: %s: %s", config->worker, strerror(errno));
    if (access(config->shim, X_OK) != 0)
        return err_set(err, ERR_USAGE, "--shim: %s: %s", config->shim, strerror(errno));
    return 0;
}

int config_read(int argc, char **argv, struct config *ret_config, struct err *err)
{
    *ret_config = (struct config){.grace_s = 10, .half_life_h = 24, .user_jobs = 5000};
    int rc = read_options(argc, argv, ret_config, err);
    if (rc != 0 || ret_config->show_help || ret_config->show_version)
        return rc;
    rc = set_defaults(ret_config, err);
    return rc != 0 ? rc : check(ret_config, err);
}

void config_done(struct config *config)
{
    free(config->socket);
    free(config->state);
    free(config->worker);
    free(config->shim);
    free(config->group.name);
    free(config->admin_group.name);
}

void config_print(const struct config *config)
{
    printf("mode            %s\n", config->user_mode ? "user" : "system");
    printf("socket          %s\n", config->socket);
    printf("state           %s\n", config->state);
    printf("worker          %s\n", config->worker);
    printf("shim            %s\n", config->shim);
    printf("group           %s\n", config->group.exists ? config->group.name : "-");
    printf("admin-group     %s\n", config->admin_group.exists ? config->admin_group.name : "-");
    if (config->cpu_devices > 0)
        printf("cpu-devices     %d\n", config->cpu_devices);
    else
        printf("cpu-devices     one a core\n");
    printf("grace           %d s\n", config->grace_s);
    printf("half-life       %d h\n", config->half_life_h);
    if (config->user_devices > 0)
        printf("user-devices    %d\n", config->user_devices);
    else
        printf("user-devices    all\n");
    printf("user-jobs       %d\n", config->user_jobs);
    printf("allow-root-jobs %s\n", config->allow_root_jobs ? "yes" : "no");
}
