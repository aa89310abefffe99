/* shim_oom.c: the oom_kill counters of cgroup v2 (memory.events), v1 (memory.oom_control) and
 * /proc/vmstat, which share one line format. */
#include "daemon/shim_oom.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool counter_read(const char *path, int64_t *ret_kills)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    char line[256];
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = sscanf(line, "oom_kill %" SCNd64, ret_kills) == 1;
    fclose(file);
    return found;
}

/* Does the controller list of a line of /proc/self/cgroup ("memory", "cpu,memory") name memory? */
static bool has_memory(char *controllers)
{
    char *state = NULL;
    for (char *name = strtok_r(controllers, ",", &state); name != NULL;
         name = strtok_r(NULL, ",", &state)) {
        if (strcmp(name, "memory") == 0)
            return true;
    }
    return false;
}

/* Lines are "ID:CONTROLLERS:PATH"; version 2 has no controllers (cgroups(7)). */
static bool cgroup_counter(char *line, char *path, size_t size)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL)
        return false;
    *group++ = '\0';
    controllers++;
    if (controllers[0] == '\0')
        snprintf(path, size, "/sys/fs/cgroup%s/memory.events", group);
    else if (has_memory(controllers))
        snprintf(path, size, "/sys/fs/cgroup/memory%s/memory.oom_control", group);
    else
        return false;
    return true;
}

void shim_oom_start(struct shim_oom *oom)
{
    char line[384];
    FILE *file = fopen("/proc/self/cgroup", "re");
    bool found = false;
    while (!found && file != NULL && fgets(line, sizeof line, file) != NULL)
        found = cgroup_counter(line, oom->path, sizeof oom->path) &&
                counter_read(oom->path, &oom->before);
    if (file != NULL)
        fclose(file);
    if (found)
        return;
    snprintf(oom->path, sizeof oom->path, "/proc/vmstat");
    if (!counter_read(oom->path, &oom->before))
        oom->path[0] = '\0';
}

int64_t shim_oom_kills(const struct shim_oom *oom)
{
    int64_t kills;
    return oom->path[0] != '\0' && counter_read(oom->path, &kills) ? kills - oom->before : 0;
}
