/* team.c: libgomp called through its ABI, so that gcc and clang share oneDNN's runtime (clang's own
 * -fopenmp would bring a second one). */
#include "engine/base/team.h"

#include <assert.h>

/* From libgomp's ABI (GOMP_4.0) and the OpenMP API. */
void GOMP_parallel(void (*fn)(void *data), void *data, unsigned n_threads, unsigned flags);
void omp_set_num_threads(int n_threads);
void omp_set_dynamic(int dynamic);
int omp_get_max_threads(void);
int omp_get_thread_num(void);
int omp_get_num_threads(void);

struct team_work {
    int64_t n;
    int n_parts;
    void (*fn)(int64_t begin, int64_t end, void *context);
    void *context;
};

void team_set_size(int n_threads)
{
    assert(n_threads >= 1);
    omp_set_dynamic(0);
    omp_set_num_threads(n_threads);
}

int team_size(void)
{
    return omp_get_max_threads();
}

/* Part i of n_parts begins here. */
static int64_t part_begin(const struct team_work *work, int i)
{
    int64_t size = work->n / work->n_parts, rest = work->n % work->n_parts;
    return size * i + (i < rest ? i : rest);
}

/* The runtime may give fewer threads than asked for: the parts stay the same, a thread then runs
 * several. */
static void run_parts(void *data)
{
    const struct team_work *work = data;
    for (int i = omp_get_thread_num(); i < work->n_parts; i += omp_get_num_threads())
        work->fn(part_begin(work, i), part_begin(work, i + 1), work->context);
}

void team_for(int64_t n, int64_t grain, void (*fn)(int64_t begin, int64_t end, void *context),
              void *context)
{
    int n_parts = team_size();
    if (n_parts > n)
        n_parts = (int)n;
    if (n_parts <= 1 || n / 2 < grain) {
        if (n > 0)
            fn(0, n, context);
        return;
    }
    struct team_work work = {n, n_parts, fn, context};
    GOMP_parallel(run_parts, &work, (unsigned)n_parts, 0);
}
