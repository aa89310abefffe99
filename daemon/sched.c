/* sched.c: see sched.h.
 *
 * Jobs of one user and priority are a lane, in the order of their ids. A heap has the lanes in the
 * order of their first jobs. Within a pass a lane only falls back (its user holds more devices, its
 * first job is a later one), so a lane at the top whose place is out of date is put back once more.
 */
#include "daemon/sched.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NONE SIZE_MAX

struct lane {
    size_t user;
    int64_t priority;
    size_t first, last; /* jobs; linked by `next` */
    size_t devices;     /* that the user held when the lane was put in its place */
    size_t sibling;     /* another lane of the user */
};

struct pass {
    const struct sched_box *box;
    struct sched_user *users;
    struct sched_job *jobs;
    struct lane *lanes;
    size_t n_lanes, room;
    size_t *heap; /* lanes */
    size_t n_heap;
    size_t *lane_of; /* a user's newest lane, or NONE */
    devset free;
    double ends_s[LIMIT_DEVICES]; /* when a device becomes free, at the latest */
    const struct sched_job *head;
    double start_s;  /* the head's */
    devset reserved; /* for the head */
};

/* ── Lanes ── */

static int add_lane(struct pass *pass, size_t user, int64_t priority, struct err *err)
{
    if (pass->n_lanes == pass->room) {
        size_t room = pass->room > 0 ? 2 * pass->room : 64;
        struct lane *more = realloc(pass->lanes, room * sizeof *more);
        if (more == NULL)
            return err_set(err, ERR_NOMEM, "out of memory");
        pass->lanes = more;
        pass->room = room;
    }
    pass->lanes[pass->n_lanes] = (struct lane){.user = user,
                                               .priority = priority,
                                               .first = NONE,
                                               .devices = pass->users[user].devices,
                                               .sibling = pass->lane_of[user]};
    pass->lane_of[user] = pass->n_lanes++;
    return 0;
}

static size_t find_lane(const struct pass *pass, size_t user, int64_t priority)
{
    size_t at = pass->lane_of[user];
    while (at != NONE && pass->lanes[at].priority != priority)
        at = pass->lanes[at].sibling;
    return at;
}

static int line_up(struct pass *pass, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct sched_job *job = &pass->jobs[i];
        job->start = false;
        job->why = (struct sched_why){.cause = SCHED_AFTER, .other = job->after};
        if (job->after != 0)
            continue;
        job->why.cause = SCHED_BEHIND;
        job->next = NONE;
        size_t at = find_lane(pass, job->user, job->priority);
        if (at == NONE) {
            int rc = add_lane(pass, job->user, job->priority, err);
            if (rc != 0)
                return rc;
            at = pass->n_lanes - 1;
        }
        struct lane *lane = &pass->lanes[at];
        if (lane->first == NONE)
            lane->first = i;
        else
            pass->jobs[lane->last].next = i;
        lane->last = i;
    }
    return 0;
}

static bool precedes(const struct pass *pass, size_t a, size_t b)
{
    const struct lane *x = &pass->lanes[a], *y = &pass->lanes[b];
    const struct sched_user *u = &pass->users[x->user], *v = &pass->users[y->user];
    if (x->priority != y->priority)
        return x->priority > y->priority;
    if (u->usage != v->usage)
        return u->usage < v->usage;
    if (x->devices != y->devices)
        return x->devices < y->devices;
    return x->first < y->first; /* the jobs are in the order of their ids */
}

static void sift_down(struct pass *pass, size_t at)
{
    size_t *heap = pass->heap, lane = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= pass->n_heap)
            break;
        if (child + 1 < pass->n_heap && precedes(pass, heap[child + 1], heap[child]))
            child++;
        if (!precedes(pass, heap[child], lane))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = lane;
}

static void drop_top(struct pass *pass)
{
    pass->heap[0] = pass->heap[--pass->n_heap];
    if (pass->n_heap > 0)
        sift_down(pass, 0);
}

static int build_heap(struct pass *pass, struct err *err)
{
    pass->heap = calloc(pass->n_lanes + 1, sizeof *pass->heap);
    if (pass->heap == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (pass->n_heap = 0; pass->n_heap < pass->n_lanes; pass->n_heap++)
        pass->heap[pass->n_heap] = pass->n_heap;
    for (size_t i = pass->n_heap / 2; i-- > 0;)
        sift_down(pass, i);
    return 0;
}

/* ── Devices ── */

static void note_ends(struct pass *pass)
{
    const struct sched_box *box = pass->box;
    for (size_t i = 0; i < box->devices->n; i++)
        pass->ends_s[i] = (box->free >> i & 1) != 0 ? box->now_s : INFINITY;
    for (size_t r = 0; r < box->n_runs; r++)
        for (size_t i = 0; i < box->devices->n; i++)
            if ((box->runs[r].devices >> i & 1) != 0 && (box->drained >> i & 1) == 0)
                pass->ends_s[i] = fmax(box->runs[r].ends_s, box->now_s);
}

/* Of `set` the n that become free first, or last; all where there are fewer. */
static devset take(const struct pass *pass, devset set, size_t n, bool last)
{
    devset taken = 0;
    for (; n > 0 && set != 0; n--) {
        int best = __builtin_ctzll(set);
        for (devset rest = set; rest != 0; rest &= rest - 1) {
            int i = __builtin_ctzll(rest);
            double a = pass->ends_s[i], b = pass->ends_s[best];
            best = (last ? a > b : a < b) ? i : best;
        }
        taken |= (devset)1 << best;
        set &= ~((devset)1 << best);
    }
    return taken;
}

static double latest(const struct pass *pass, devset set)
{
    double end = pass->box->now_s;
    for (; set != 0; set &= set - 1)
        end = fmax(end, pass->ends_s[__builtin_ctzll(set)]);
    return end;
}

static devset free_by(const struct pass *pass, double end)
{
    devset set = 0;
    for (size_t i = 0; i < pass->box->devices->n; i++)
        set |= (devset)(pass->ends_s[i] <= end) << i;
    return set;
}

/* Devices for a wish out of `set`, first or last to become free. */
static devset take_wish(const struct pass *pass, const struct devwish *wish, devset set, bool last)
{
    devset taken = wish->named;
    for (size_t type = 0; type < DEVWISH_TYPES; type++)
        taken |=
            take(pass, set & devset_type(pass->box->devices, (enum device_type)type) & ~wish->named,
                 wish->any[type], last);
    return taken;
}

/* The moment is that of the devices that become free first; those that are kept for it are of all
 * that are free by then the last, so that the most can be used until then. */
static void reserve(struct pass *pass, const struct sched_job *head)
{
    devset usable = devset_all(pass->box->devices) & ~pass->box->drained;
    pass->head = head;
    pass->reserved = take_wish(pass, &head->wish, usable, false);
    pass->start_s = latest(pass, pass->reserved);
    if (isfinite(pass->start_s))
        pass->reserved = take_wish(pass, &head->wish, free_by(pass, pass->start_s), true);
}

/* ── Decisions ── */

static bool fits(const struct pass *pass, const struct sched_job *job, devset set)
{
    return devwish_count(&job->wish) <= devset_count(set) && /* for speed */
           devwish_missing(pass->box->devices, &job->wish, set) == 0;
}

/* What the job may use now: nothing of the head's, unless it is over by then. */
static devset usable_now(const struct pass *pass, const struct sched_job *job)
{
    bool over = isfinite(pass->start_s) && pass->box->now_s + job->limit_s <= pass->start_s;
    return pass->head == NULL || over ? pass->free : pass->free & ~pass->reserved;
}

static void start(struct pass *pass, struct sched_job *job, devset usable)
{
    job->start = true;
    job->got = devwish_pick(pass->box->devices, &job->wish, usable);
    pass->free &= ~job->got;
    pass->users[job->user].devices += devset_count(job->got);
    for (devset set = job->got; set != 0; set &= set - 1)
        pass->ends_s[__builtin_ctzll(set)] = pass->box->now_s + job->limit_s;
}

static void put_behind_head(const struct pass *pass, struct sched_job *job)
{
    const struct sched_job *head = pass->head;
    job->why.other = head->id;
    if (head->priority != job->priority)
        job->why.cause = SCHED_PRIORITY;
    else if (head->id > job->id)
        job->why.cause = SCHED_SHARE;
}

/* Decides on the first job of the lane at the top; false: the lane's other jobs wait too. */
static bool decide(struct pass *pass, struct sched_job *job)
{
    const struct sched_box *box = pass->box;
    struct sched_user *user = &pass->users[job->user];
    devset usable = usable_now(pass, job);
    size_t all = devwish_count(&job->wish);
    if (user->blocked != 0)
        return false;
    if (box->user_devices > 0 && user->devices + all > box->user_devices) {
        user->blocked = job->id;
        job->why = (struct sched_why){SCHED_USER_LIMIT, 0, user->devices, box->user_devices};
        return false;
    }
    if (fits(pass, job, usable)) {
        start(pass, job, usable);
    } else if (box->drained != 0 && !fits(pass, job, devset_all(box->devices) & ~box->drained)) {
        job->why = (struct sched_why){
            SCHED_DRAINED, 0,
            devwish_missing(box->devices, &job->wish, devset_all(box->devices) & ~box->drained),
            all};
    } else if (pass->head == NULL) {
        reserve(pass, job);
        job->why = (struct sched_why){SCHED_DEVICES, 0,
                                      devwish_missing(box->devices, &job->wish, pass->free), all};
    } else {
        put_behind_head(pass, job);
    }
    return true;
}

static void decide_all(struct pass *pass)
{
    while (pass->n_heap > 0 && (pass->head == NULL || pass->free != 0)) {
        struct lane *lane = &pass->lanes[pass->heap[0]];
        if (lane->devices != pass->users[lane->user].devices) {
            lane->devices = pass->users[lane->user].devices;
            sift_down(pass, 0);
            continue;
        }
        struct sched_job *job = &pass->jobs[lane->first];
        if (!decide(pass, job) || (lane->first = job->next) == NONE)
            drop_top(pass);
        else
            sift_down(pass, 0);
    }
}

/* What was never looked at: the lane waits for one of its user's jobs, or all wait for the head. */
static void explain(const struct pass *pass, struct sched_job *job)
{
    int64_t blocked = pass->users[job->user].blocked;
    if (job->start || job->why.cause != SCHED_BEHIND || job->why.other != 0)
        return;
    if (blocked != 0)
        job->why.other = blocked;
    else
        put_behind_head(pass, job);
}

int sched_decide(const struct sched_box *box, struct sched_user *users, size_t n_users,
                 struct sched_job *jobs, size_t n, struct sched_head *ret_head, struct err *err)
{
    struct pass pass = {.box = box, .users = users, .jobs = jobs, .free = box->free};
    int rc = 0;
    pass.lane_of = malloc((n_users + 1) * sizeof *pass.lane_of);
    if (pass.lane_of == NULL)
        rc = err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < n_users; i++) {
        pass.lane_of[i] = NONE;
        users[i].blocked = 0;
    }
    note_ends(&pass);
    if (rc == 0)
        rc = line_up(&pass, n, err);
    if (rc == 0)
        rc = build_heap(&pass, err);
    if (rc == 0) {
        decide_all(&pass);
        for (size_t i = 0; i < n; i++)
            explain(&pass, &jobs[i]);
        *ret_head = (struct sched_head){0};
        if (pass.head != NULL)
            *ret_head = (struct sched_head){pass.head->id, pass.start_s};
    }
    free(pass.lanes);
    free(pass.lane_of);
    free(pass.heap);
    return rc;
}

static const char *const reasons[SCHED_CAUSES] = {
    [SCHED_AFTER] = "after job %" PRId64,
    [SCHED_BEHIND] = "behind job %" PRId64,
    [SCHED_PRIORITY] = "behind job %" PRId64 " (priority)",
    [SCHED_SHARE] = "behind job %" PRId64 " (fair share)",
};

const char *sched_reason(const struct sched_why *why, char buf[static 64])
{
    const char *plural = why->all == 1 ? "" : "s";
    if (why->cause == SCHED_USER_LIMIT)
        snprintf(buf, 64, "user limit: %zu of %zu device%s", why->some, why->all, plural);
    else if (why->cause == SCHED_DRAINED)
        snprintf(buf, 64, "%zu of %zu device%s drained", why->some, why->all, plural);
    else if (why->cause == SCHED_DEVICES)
        snprintf(buf, 64, "waiting for %zu of %zu device%s", why->some, why->all, plural);
    else
        snprintf(buf, 64, reasons[why->cause], why->other);
    return buf;
}
