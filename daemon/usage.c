/* usage.c: see usage.h. */
#include "daemon/usage.h"

#include <stdlib.h>

#include "daemon/daemon.h"
#include "daemon/share.h"
#include "daemon/store.h"

enum { HALF_LIVES = 20 }; /* what is older counts less than a millionth */

static double half_life_s(const struct daemon *daemon)
{
    return daemon->config->half_life_h * 3600.0;
}

static struct usage_entry *find(const struct usage *usage, uid_t uid)
{
    for (size_t i = 0; i < usage->n; i++)
        if (usage->entry[i].uid == uid)
            return &usage->entry[i];
    return NULL;
}

static struct usage_entry *find_or_add(struct usage *usage, uid_t uid, struct err *err)
{
    struct usage_entry *entry = find(usage, uid);
    if (entry != NULL)
        return entry;
    if (usage->n == usage->room) {
        size_t room = usage->room > 0 ? 2 * usage->room : 16;
        struct usage_entry *more = realloc(usage->entry, room * sizeof *more);
        if (more == NULL) {
            err_set(err, ERR_NOMEM, "out of memory");
            return NULL;
        }
        usage->entry = more;
        usage->room = room;
    }
    usage->entry[usage->n] = (struct usage_entry){.uid = uid};
    return &usage->entry[usage->n++];
}

static double between_s(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / 1e9;
}

static int enter(void *arg, const struct store_use *use, struct err *err)
{
    struct daemon *daemon = arg;
    double half_life = half_life_s(daemon);
    struct usage_entry *entry = find_or_add(&daemon->usage, use->uid, err);
    if (entry == NULL)
        return err->code;
    entry->amount =
        share_decay(entry->amount, between_s(entry->at_ns, use->ended_ns), half_life) +
        share_run((double)use->devices, between_s(use->started_ns, use->ended_ns), half_life);
    entry->at_ns = use->ended_ns;
    return 0;
}

int usage_load(struct daemon *daemon, struct err *err)
{
    int64_t now_ns = daemon->runner->now_ns(daemon->runner);
    int64_t since_ns = now_ns - (int64_t)(HALF_LIVES * half_life_s(daemon) * 1e9);
    return store_each_use(daemon->opened, since_ns, enter, daemon, err);
}

int usage_charge(struct daemon *daemon, const struct job_record *record, struct err *err)
{
    struct store_use use = {.uid = record->uid,
                            .devices = record->devices.n,
                            .started_ns = record->started_ns,
                            .ended_ns = record->ended_ns};
    return record->started_ns != 0 ? enter(daemon, &use, err) : 0;
}

double usage_of(const struct daemon *daemon, uid_t uid, int64_t now_ns)
{
    const struct usage_entry *entry = find(&daemon->usage, uid);
    if (entry == NULL)
        return 0;
    return share_decay(entry->amount, between_s(entry->at_ns, now_ns), half_life_s(daemon));
}

double usage_running(const struct daemon *daemon, const struct job_record *record, int64_t now_ns)
{
    if (record->started_ns == 0)
        return 0;
    return share_run((double)record->devices.n, between_s(record->started_ns, now_ns),
                     half_life_s(daemon));
}

void usage_done(struct usage *usage)
{
    free(usage->entry);
    *usage = (struct usage){0};
}
