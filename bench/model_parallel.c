/* model_parallel.c: the experiment of PyTorch's model-parallel tutorial, on two CPU devices of one
 * core each: ResNet-50 on one device, in two stages, pipelined, and replicated.
 *
 *     make bench/model_parallel && bench/model_parallel [--json]
 *
 * Ways that are compared run in turn, a step each, so that what else the machine does meets all of
 * them; of the ratios the median counts. First comes a control: two steps that have nothing to do
 * with each other, at once, against one alone. By how much they are slower is the machine's doing
 * (memory, clock); speed-ups are multiplied by it, so that two perfect devices give 2.
 */
#include <getopt.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/way.h"
#include "engine/parallel/choose.h"
#include "engine/train/choices.h"

enum { DEVICES = 2, SPLITS_MOST = 16, NAMES = SPLITS_MOST + 8 };

struct bench {
    int64_t batch, split; /* split: where two schedules are compared */
    int pairs;
    int64_t splits[SPLITS_MOST];
    int n_splits;
    char cut[128]; /* the layer that begins the second stage; empty: where it balances */
    int cores[DEVICES];
    bool json;
    struct machine machine;
    struct device_config devices[DEVICES];
    struct samples samples;
    struct way *ways[NAMES]; /* all that were opened */
    size_t n_ways;
    char names[NAMES][64];
    /* What is shown. */
    double control, overhead, speedup, of_predicted, replicate, over_1f1b;
};

/* --- Ways ------------------------------------------------------------------------------------ */

static struct way *open_way(struct bench *bench, const char *name, int64_t batch,
                            const char *parallel, int first_device, int n_devices)
{
    char *copy = bench->names[bench->n_ways];
    snprintf(copy, sizeof bench->names[0], "%s", name);
    struct way *way = way_open(copy, way_job(batch, parallel), &bench->devices[first_device],
                               n_devices, &bench->samples);
    bench->ways[bench->n_ways++] = way;
    return way;
}

static struct way *open_single(struct bench *bench, int device)
{
    char name[64];
    snprintf(name, sizeof name, "single on cpu:%d", device);
    return open_way(bench, name, bench->batch, "{\"mode\": \"single\"}", device, 1);
}

static struct way *open_stages(struct bench *bench, const char *schedule, int64_t split_size)
{
    char parallel[256], name[64], size[40] = "";
    if (split_size > 0)
        snprintf(size, sizeof size, ", \"split_size\": %lld", (long long)split_size);
    snprintf(parallel, sizeof parallel,
             "{\"mode\": \"stages\", \"devices\": 2, \"split\": [\"%s\"], \"schedule\": \"%s\"%s}",
             bench->cut, schedule, size);
    snprintf(name, sizeof name, split_size > 0 ? "%s, split %lld" : "stages, %s", schedule,
             (long long)split_size);
    return open_way(bench, name, bench->batch, parallel, 0, DEVICES);
}

static double step(struct bench *bench, struct way *way)
{
    return way_step(way, &bench->samples);
}

struct other { /* a step on a thread of its own */
    struct bench *bench;
    struct way *way;
    double seconds;
};

static void *run_other(void *context)
{
    struct other *other = context;
    other->seconds = step(other->bench, other->way);
    return NULL;
}

/* The mean of two steps at once. */
static double step_both(struct bench *bench, struct way *a, struct way *b)
{
    struct other other = {bench, b, 0};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_other, &other) != 0)
        die(&(struct err){.message = "no thread for the second step"});
    double seconds = step(bench, a);
    pthread_join(thread, NULL);
    return (seconds + other.seconds) / 2;
}

/* --- The experiments ------------------------------------------------------------------------- */

/* A third of the pairs, and at least one, is enough for what is not the headline. */
static int few(const struct bench *bench)
{
    return (bench->pairs + 2) / 3;
}

static void measure_control(struct bench *bench, struct way *single)
{
    struct way *second = open_single(bench, 1);
    double ratio[WAY_STEPS];
    for (int i = 0; i < few(bench); i++) {
        struct way *alone = i % 2 == 0 ? single : second;
        double seconds = step(bench, alone);
        ratio[i] = step_both(bench, single, second) / seconds;
    }
    bench->control = median(ratio, few(bench));
    way_close(second);
    single->n_steps = 0; /* some were not alone */
}

static void measure_replicate(struct bench *bench, struct way *single)
{
    struct way *both = open_way(bench, "replicate, twice the batch", DEVICES * bench->batch,
                                "{\"mode\": \"replicate\", \"devices\": 2}", 0, DEVICES);
    double ratio[WAY_STEPS];
    for (int i = 0; i < few(bench); i++) {
        double seconds = step(bench, single);
        ratio[i] = DEVICES * seconds / step(bench, both);
    }
    bench->replicate = bench->control * median(ratio, few(bench));
    way_close(both);
}

/* The quickest of the split sizes, which stays open, as does the one to be compared. */
static struct way *find_best(struct bench *bench, struct way **ret_at_split)
{
    struct way *ways[SPLITS_MOST], *best = NULL;
    *ret_at_split = NULL;
    for (int i = 0; i < bench->n_splits; i++)
        ways[i] = open_stages(bench, "zero_bubble", bench->splits[i]);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < bench->n_splits; i++)
            step(bench, ways[i]);
    for (int i = 0; i < bench->n_splits; i++)
        if (best == NULL || median(ways[i]->seconds, 2) < median(best->seconds, 2))
            best = ways[i];
    for (int i = 0; i < bench->n_splits; i++) {
        if (bench->splits[i] == bench->split)
            *ret_at_split = ways[i];
        else if (ways[i] != best)
            way_close(ways[i]);
    }
    if (*ret_at_split == NULL)
        *ret_at_split = open_stages(bench, "zero_bubble", bench->split);
    return best;
}

static void measure_stages(struct bench *bench, struct way *single)
{
    struct way *zero, *best = find_best(bench, &zero);
    struct way *none = open_stages(bench, "none", 0);
    struct way *other = open_stages(bench, "1f1b", bench->split);
    double pipelined[WAY_STEPS], overhead[WAY_STEPS], over[WAY_STEPS];
    int n = 0;
    for (int i = 0; i < bench->pairs; i++) {
        double alone = step(bench, single), seconds = step(bench, best);
        pipelined[i] = alone / seconds;
        if (i % 3 != 0)
            continue;
        overhead[n] = step(bench, none) / alone - 1;
        double with_1f1b = step(bench, other);
        over[n++] = with_1f1b / (zero == best ? seconds : step(bench, zero));
    }
    bench->speedup = bench->control * median(pipelined, bench->pairs);
    bench->of_predicted = way_predicted(best) / way_mean(best);
    bench->overhead = median(overhead, n);
    bench->over_1f1b = median(over, n);
}

/* --- What is shown --------------------------------------------------------------------------- */

static void show_ways(const struct bench *bench)
{
    printf("\n%-28s %6s %9s %9s %9s %9s\n", "way", "steps", "seconds", "plan MiB", "peak MiB",
           "more");
    for (size_t i = 0; i < bench->n_ways; i++) {
        const struct way *way = bench->ways[i];
        double planned = (double)way->plan_bytes, peak = (double)way->peak_bytes;
        if (way->n_steps > 0)
            printf("%-28s %6d %9.3f %9.0f %9.0f %8.1f%%\n", way->name, way->n_steps,
                   median(way->seconds, way->n_steps), planned / 0x1p20, peak / 0x1p20,
                   100 * (peak / planned - 1));
    }
    printf("\n%-28s %-7s %8s %8s %8s %8s %8s\n", "% of a step", "device", "forward", "backward",
           "weights", "waiting", "reducing");
    for (size_t i = 0; i < bench->n_ways; i++) {
        const struct way *way = bench->ways[i];
        double all = way_mean(way) * way->n_steps / 100;
        for (int d = 0; d < way->config.n_devices && way->config.n_devices > 1; d++) {
            const struct strategy_times *times = &way->times[d];
            printf("%-28s %-7s", d == 0 ? way->name : "", way->config.devices[d].name);
            for (int k = 0; k < SECTION_COUNT; k++)
                printf(" %8.1f", times->sections[k] / all);
            printf(" %8.1f %8.1f\n", times->waited / all, times->reduced / all);
        }
    }
}

static void show_results(const struct bench *bench)
{
    const struct {
        const char *name, *what;
        double value;
    } rows[] = {
        {"control", "how much slower two independent steps are at once", bench->control},
        {"model_parallel_overhead", "two stages, one batch at a time, against one device",
         bench->overhead},
        {"pipeline_speedup", "zero_bubble at its best split size", bench->speedup},
        {"pipeline_of_predicted", "the timetable's step against the measured one",
         bench->of_predicted},
        {"zero_bubble_over_1f1b", "1f1b's step against zero_bubble's", bench->over_1f1b},
        {"replicate_speedup", "samples a second, the same batch a device", bench->replicate},
    };
    json_t *root = json_object();
    printf("\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        printf("%-24s %7.3f  %s\n", rows[i].name, rows[i].value, rows[i].what);
        json_object_set_new(root, rows[i].name, json_real(rows[i].value));
    }
    if (bench->json) {
        json_dumpf(root, stdout, JSON_REAL_PRECISION(5));
        printf("\n");
    }
    json_decref(root);
}

/* --- Set-up ---------------------------------------------------------------------------------- */

static void say(void *context, const char *line)
{
    (void)context;
    printf("%s\n", line);
}

/* Where layers' measured times balance, as a run would cut it. */
static void find_cut(struct bench *bench)
{
    char parallel[128];
    struct err err = ERR_INIT;
    snprintf(parallel, sizeof parallel,
             "{\"mode\": \"stages\", \"devices\": 2, \"split_size\": %lld}",
             (long long)bench->split);
    struct job *job = way_job(bench->batch, parallel);
    const struct trainer_config config = {.job = job,
                                          .backend = &backend_cpu,
                                          .devices = bench->devices,
                                          .n_devices = DEVICES,
                                          .sink = {.say = say}};
    int64_t memory = bench->machine.memory_bytes / DEVICES;
    if (choose_stages(job, DEVICES, memory, &err) != 0 ||
        choices_settle(&config, job, memory, &err) != 0)
        die(&err);
    snprintf(bench->cut, sizeof bench->cut, "%s", job->parallel.split[0]);
    job_free(job);
}

static void set_up(struct bench *bench)
{
    static const char *const names[DEVICES] = {"cpu:0", "cpu:1"};
    struct err err = ERR_INIT;
    if (machine_probe(0, false, &bench->machine, &err) != 0)
        die(&err);
    if (bench->machine.n_cores < DEVICES)
        die(&(struct err){.message = "this needs two cores"});
    for (int d = 0; d < DEVICES; d++) {
        if (bench->cores[d] < 0)
            bench->cores[d] = bench->machine.cores[d];
        bench->devices[d] = (struct device_config){.name = names[d],
                                                   .index = d,
                                                   .cores = &bench->cores[d],
                                                   .n_cores = 1,
                                                   .n_threads = 1,
                                                   .memory_bytes = bench->machine.memory_bytes};
    }
    bench->samples = samples_new(DEVICES * bench->batch, 3 * 128 * 128, 1000);
    if (bench->cut[0] == '\0')
        find_cut(bench);
}

static const char usage[] =
    "usage: model_parallel [--batch N] [--pairs N] [--splits N,N...] [--split N] [--cut LAYER]\n"
    "                      [--cores A,B] [--json]\n"
    "--pairs   how often one device and its best pipeline are compared (15; others: a third)\n"
    "--splits  the sizes of micro-batches that are tried (5,8,10,12,20)\n"
    "--split   where zero_bubble and 1f1b are compared (20)\n"
    "--cut     the layer that begins the second stage (where measured times balance)\n";

static void refuse(void)
{
    fputs(usage, stderr);
    exit(2);
}

static int64_t positive(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end != '\0' || value < 1 || value > 100000)
        refuse();
    return value;
}

static void read_splits(struct bench *bench, char *list)
{
    char *rest = NULL;
    bench->n_splits = 0;
    for (char *word = strtok_r(list, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (bench->n_splits == SPLITS_MOST)
            refuse();
        bench->splits[bench->n_splits++] = positive(word);
    }
}

static void read_options(struct bench *bench, int argc, char **argv)
{
    static const struct option options[] = {
        {"batch", required_argument, NULL, 'b'},  {"pairs", required_argument, NULL, 'p'},
        {"splits", required_argument, NULL, 's'}, {"split", required_argument, NULL, 'a'},
        {"cut", required_argument, NULL, 'c'},    {"cores", required_argument, NULL, 'k'},
        {"json", no_argument, NULL, 'j'},         {0},
    };
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'b')
            bench->batch = positive(optarg);
        else if (c == 'p')
            bench->pairs = (int)positive(optarg);
        else if (c == 's')
            read_splits(bench, optarg);
        else if (c == 'a')
            bench->split = positive(optarg);
        else if (c == 'c')
            snprintf(bench->cut, sizeof bench->cut, "%s", optarg);
        else if (c == 'k' && sscanf(optarg, "%d,%d", &bench->cores[0], &bench->cores[1]) == DEVICES)
            ;
        else if (c == 'j')
            bench->json = true;
        else
            refuse();
    }
    if (optind != argc || bench->pairs >= WAY_STEPS / 2 || bench->n_splits == 0)
        refuse();
}

/* From one step: what is to come, in steps of one device. */
static void say_duration(const struct bench *bench, const struct way *single)
{
    int control = 1 + 2 * few(bench), replicate = 1 + 2 * few(bench), others = 2 + 2 * few(bench);
    double steps = control + replicate + others + 1.7 * bench->n_splits + 1.6 * bench->pairs;
    printf("about %.0f minutes\n", 0.5 + steps * single->seconds[0] / 60);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.batch = 120,
                                 .split = 20,
                                 .pairs = 15,
                                 .splits = {5, 8, 10, 12, 20},
                                 .n_splits = 5,
                                 .cores = {-1, -1}};
    read_options(&bench, argc, argv);
    set_up(&bench);
    struct way *single = open_single(&bench, 0);
    step(&bench, single);
    say_duration(&bench, single);
    measure_control(&bench, single);
    measure_replicate(&bench, single);
    measure_stages(&bench, single);
    show_ways(&bench);
    show_results(&bench);
    for (size_t i = 0; i < bench.n_ways; i++)
        way_free(bench.ways[i]);
    samples_free(&bench.samples);
    machine_done(&bench.machine);
    return 0;
}
