/* thread.c: a ring of tasks between one submitter and one thread, under a mutex. */
#define _GNU_SOURCE /* cores of a thread */
#include "engine/base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine/base/team.h"

enum { RING_TASKS = 64 };

struct task {
    void (*fn)(void *context);
    void *context;
};

struct thread {
    pthread_t handle;
    int n_threads;
    pthread_mutex_t mutex;
    pthread_cond_t todo; /* a task was added, or stopping was set */
    pthread_cond_t done; /* a task has run */
    struct task ring[RING_TASKS];
    size_t submitted, finished; /* counted from the start; their difference is in the ring */
    bool stopping;
};

/* The oldest task, waiting for one; false: all have run and the thread shall end. The task stays in
 * the ring until it has run, so that an empty ring means an idle thread. */
static bool next_task(struct thread *thread, struct task *ret_task)
{
    pthread_mutex_lock(&thread->mutex);
    while (thread->submitted == thread->finished && !thread->stopping)
        pthread_cond_wait(&thread->todo, &thread->mutex);
    bool any = thread->submitted != thread->finished;
    if (any)
        *ret_task = thread->ring[thread->finished % RING_TASKS];
    pthread_mutex_unlock(&thread->mutex);
    return any;
}

static void *thread_main(void *context)
{
    struct thread *thread = context;
    struct task task;
    team_set_size(thread->n_threads);
    while (next_task(thread, &task)) {
        task.fn(task.context);
        pthread_mutex_lock(&thread->mutex);
        thread->finished++;
        pthread_cond_signal(&thread->done);
        pthread_mutex_unlock(&thread->mutex);
    }
    return NULL;
}

/* The new thread starts on its cores, so its team, created by it, inherits them. */
static int set_cores(pthread_attr_t *attr, const int *cores, size_t n_cores)
{
    if (n_cores == 0)
        return 0;
    int largest = 0;
    for (size_t i = 0; i < n_cores; i++)
        largest = cores[i] > largest ? cores[i] : largest;
    size_t bytes = CPU_ALLOC_SIZE((size_t)largest + 1);
    cpu_set_t *set = CPU_ALLOC((size_t)largest + 1);
    if (set == NULL)
        return ENOMEM;
    CPU_ZERO_S(bytes, set);
    for (size_t i = 0; i < n_cores; i++)
        CPU_SET_S((size_t)cores[i], bytes, set);
    int error = pthread_attr_setaffinity_np(attr, bytes, set);
    CPU_FREE(set);
    return error;
}

static int create(struct thread *thread, const int *cores, size_t n_cores)
{
    pthread_attr_t attr;
    int error = pthread_attr_init(&attr);
    if (error != 0)
        return error;
    error = set_cores(&attr, cores, n_cores);
    if (error == 0)
        error = pthread_create(&thread->handle, &attr, thread_main, thread);
    pthread_attr_destroy(&attr);
    return error;
}

static void destroy(struct thread *thread)
{
    pthread_cond_destroy(&thread->done);
    pthread_cond_destroy(&thread->todo);
    pthread_mutex_destroy(&thread->mutex);
    free(thread);
}

/* Waits for it are by a clock that nobody sets. */
static void init_done(struct thread *thread)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->done, &attr);
    pthread_condattr_destroy(&attr);
}

int thread_start(const char *name, const int *cores, size_t n_cores, int n_threads,
                 struct thread **ret_thread, struct err *err)
{
    struct thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the thread of %s", name);
    thread->n_threads = n_threads;
    pthread_mutex_init(&thread->mutex, NULL);
    pthread_cond_init(&thread->todo, NULL);
    init_done(thread);
    int error = create(thread, cores, n_cores);
    if (error != 0) {
        destroy(thread);
        if (error == ENOMEM)
            return err_set(err, ERR_NOMEM, "no memory for the thread of %s", name);
        err_errno(err, error, "the thread of %s cannot be started", name);
        return err->code = ERR_DEVICE_FAILED;
    }
    char short_name[16]; /* the kernel's limit */
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(thread->handle, short_name);
    *ret_thread = thread;
    return 0;
}

void thread_submit(struct thread *thread, void (*fn)(void *context), void *context)
{
    pthread_mutex_lock(&thread->mutex);
    while (thread->submitted - thread->finished == RING_TASKS)
        pthread_cond_wait(&thread->done, &thread->mutex);
    thread->ring[thread->submitted++ % RING_TASKS] = (struct task){fn, context};
    pthread_cond_signal(&thread->todo);
    pthread_mutex_unlock(&thread->mutex);
}

void thread_wait(struct thread *thread)
{
    pthread_mutex_lock(&thread->mutex);
    while (thread->submitted != thread->finished)
        pthread_cond_wait(&thread->done, &thread->mutex);
    pthread_mutex_unlock(&thread->mutex);
}

bool thread_wait_for(struct thread *thread, int ms)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += ms / 1000;
    end.tv_nsec += ms % 1000 * 1000000L;
    if (end.tv_nsec >= 1000000000L) {
        end.tv_nsec -= 1000000000L;
        end.tv_sec++;
    }
    pthread_mutex_lock(&thread->mutex);
    int error = 0;
    while (thread->submitted != thread->finished && error == 0)
        error = pthread_cond_timedwait(&thread->done, &thread->mutex, &end);
    bool done = thread->submitted == thread->finished;
    pthread_mutex_unlock(&thread->mutex);
    return done;
}

void thread_stop(struct thread *thread)
{
    if (thread == NULL)
        return;
    pthread_mutex_lock(&thread->mutex);
    thread->stopping = true;
    pthread_cond_signal(&thread->todo);
    pthread_mutex_unlock(&thread->mutex);
    pthread_join(thread->handle, NULL);
    destroy(thread);
}
