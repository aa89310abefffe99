/* The database, in real files: what is written is there after a reopening, a file that is not ours
 * stays as it is, and requests share commits without sharing failures. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/schema.h"
#include "daemon/store_thread.h"
#include "tests/lib/checks.h"

static char path[PATH_MAX];

static void setup(void)
{
    snprintf(path, sizeof path, "%s/traind.db", checks_scratch());
}

static void teardown(void)
{
    checks_scratch_remove();
}

static struct store *must_open(void)
{
    struct store *store;
    struct err err = ERR_INIT;
    ck_assert_msg(store_open(path, &store, &err) == 0, "%s", err.message);
    return store;
}

static struct job_record *new_record(void)
{
    struct job_record *record = calloc(1, sizeof *record);
    record->uid = 1000;
    record->gid = 100;
    record->state = STATE_QUEUED;
    record->name = strdup("digits");
    record->cwd = strdup("/home/a");
    record->output = strdup("/home/a/runs/1");
    record->submitted_ns = 5;
    record->want.n = 2;
    record->priority = -3;
    record->time_limit_s = 7200;
    record->after = json_pack("[i, i]", 7, 8);
    record->want.id[0] = record->want.id[1] = (struct device_id){DEVICE_CPU, -1};
    return record;
}

static int insert(struct store *store, const char *key, struct err *err)
{
    struct job_record *record = new_record();
    struct job_transition first = {
        .time_ns = 5, .from = STATE_COUNT, .to = STATE_QUEUED, .by_user = true, .uid = 1000};
    int rc = store_insert_job(store, record, key, err);
    if (rc == 0)
        rc = store_insert_document(store, record->id, "{\"version\":1}", 13, err);
    first.id = record->id;
    if (rc == 0)
        rc = store_insert_transition(store, &first, err);
    job_record_free(record);
    return rc;
}

START_TEST(a_record_survives_a_reopening)
{
    struct err err = ERR_INIT;
    struct store *store = must_open();
    struct job_record *record = new_record(), *read;
    ck_assert_int_eq(store_begin(store, true, &err), 0);
    ck_assert_int_eq(store_insert_job(store, record, "k", &err), 0);
    ck_assert_int_eq(store_insert_document(store, record->id, "{}", 2, &err), 0);
    record->state = STATE_FAILED;
    record->reason = strdup("the loss is NaN");
    record->started_ns = 6;
    record->ended_ns = 7;
    record->devices.n = 1;
    record->devices.id[0] = (struct device_id){DEVICE_CPU, 3};
    record->report_offset = 1234;
    record->stop = STOP_TIME_LIMIT;
    record->priority = -4;
    record->outcome = OUTCOME_FAILED;
    record->weights = strdup("/w");
    record->progress = json_pack("{s:i, s:f}", "step", 3, "loss", 0.1);
    record->losses = json_pack("[[i, f]]", 1, 2.5);
    ck_assert_int_eq(store_update_job(store, record, &err), 0);
    ck_assert_int_eq(store_commit(store, &err), 0);
    store_close(store);

    store = must_open();
    ck_assert_int_eq(store_get_job(store, record->id, &read, &err), 0);
    ck_assert_int_eq(read->state, STATE_FAILED);
    ck_assert_str_eq(read->reason, "the loss is NaN");
    ck_assert_str_eq(read->name, "digits");
    ck_assert_int_eq(read->ended_ns, 7);
    ck_assert_uint_eq(read->want.n, 2);
    ck_assert_int_eq(read->want.id[1].index, -1);
    ck_assert_int_eq(read->devices.id[0].index, 3);
    ck_assert_int_eq(read->report_offset, 1234);
    ck_assert_int_eq((int)read->stop, STOP_TIME_LIMIT);
    ck_assert_int_eq(read->priority, -4);
    ck_assert_int_eq(read->time_limit_s, 7200);
    ck_assert(json_equal(read->after, record->after));
    ck_assert_int_eq(read->outcome, OUTCOME_FAILED);
    ck_assert(json_equal(read->progress, record->progress));
    ck_assert(json_equal(read->losses, record->losses));
    ck_assert_ptr_null(read->confusion);
    int64_t id;
    ck_assert_int_eq(store_find_key(store, 1000, "k", &id, &err), 0);
    ck_assert_int_eq(id, record->id);
    ck_assert_int_eq(store_find_key(store, 1001, "k", &id, &err), 0);
    ck_assert_int_eq(id, 0);
    ck_assert_int_eq(store_get_job(store, 99, &read, &err), ERR_NOT_FOUND);
    ck_assert_str_eq(err.message, "there is no job 99");
    store_close(store);
    job_record_free(record);
    job_record_free(read);
}
END_TEST

/* A database of the first schema, as its last traind left it. */
START_TEST(an_older_database_is_brought_up)
{
    struct err err = ERR_INIT;
    struct job_record *read;
    struct store *store = must_open();
    ck_assert_int_eq(insert(store, "k", &err), 0);
    store_close(store);
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "DROP TABLE drain;"
                                  "DROP INDEX job_use;"
                                  "ALTER TABLE job DROP COLUMN priority;"
                                  "ALTER TABLE job DROP COLUMN time_limit_s;"
                                  "ALTER TABLE job DROP COLUMN after_jobs;"
                                  "ALTER TABLE job DROP COLUMN stop;"
                                  "PRAGMA user_version = 1",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    store = must_open();
    ck_assert_int_eq(store_get_job(store, 1, &read, &err), 0);
    ck_assert_str_eq(read->name, "digits");
    ck_assert(read->priority == 0 && read->time_limit_s == 0 && read->after == NULL);
    job_record_free(read);
    ck_assert_int_eq(insert(store, "l", &err), 0);
    ck_assert_int_eq(store_put_drain(store, "cpu:0", 7, "broken", &err), 0);
    store_close(store);
}
END_TEST

START_TEST(a_key_is_unique_for_a_user)
{
    struct err err = ERR_INIT;
    struct store *store = must_open();
    ck_assert_int_eq(insert(store, "k", &err), 0);
    ck_assert_int_eq(insert(store, NULL, &err), 0);
    ck_assert_int_eq(insert(store, NULL, &err), 0);
    ck_assert_int_eq(insert(store, "k", &err), ERR_IO);
    store_close(store);
}
END_TEST

static void run_sql(const char *sql)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static size_t read_file(char *buf, size_t size)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, buf, size);
    close(fd);
    ck_assert_int_gt(n, 0);
    return (size_t)n;
}

/* Opening fails with these words, and not one byte of the file changes. */
static void check_refused(const char *words)
{
    static char before[1 << 20], after[1 << 20];
    struct store *store = NULL;
    struct err err = ERR_INIT;
    size_t n = read_file(before, sizeof before);
    ck_assert_int_eq(store_open(path, &store, &err), ERR_IO);
    ck_assert_ptr_null(store);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
    ck_assert_msg(strstr(err.message, path) != NULL, "%s", err.message);
    ck_assert_uint_eq(read_file(after, sizeof after), n);
    ck_assert_int_eq(memcmp(before, after, n), 0);
}

START_TEST(a_newer_schema_is_refused)
{
    store_close(must_open());
    run_sql("PRAGMA user_version = 99");
    check_refused("newer traind");
}
END_TEST

START_TEST(another_programs_database_is_refused)
{
    run_sql("CREATE TABLE bookmark (url TEXT)");
    check_refused("another program");
}
END_TEST

START_TEST(a_file_that_is_no_database_is_refused)
{
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 2000; i++)
        fputs("no database ", file);
    fclose(file);
    check_refused("not a database");
}
END_TEST

START_TEST(a_damaged_database_is_refused)
{
    static char noise[4096];
    struct err err = ERR_INIT;
    struct store *store = must_open();
    store_begin(store, true, &err);
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(insert(store, NULL, &err), 0);
    store_commit(store, &err);
    store_close(store);
    memset(noise, 0x5a, sizeof noise);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, noise, sizeof noise, 4096), sizeof noise);
    close(fd);
    check_refused("PRAGMA quick_check");
}
END_TEST

START_TEST(filters_and_history)
{
    struct err err = ERR_INIT;
    struct store *store = must_open();
    int64_t count[STATE_COUNT], seq;
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(insert(store, NULL, &err), 0);
    ck_assert_int_eq(store_count_states(store, count, &err), 0);
    ck_assert_int_eq(count[STATE_QUEUED], 5);
    ck_assert_int_eq(count[STATE_RUNNING], 0);
    ck_assert_int_eq(store_last_seq(store, &seq, &err), 0);
    ck_assert_int_eq(seq, 5);
    store_close(store);
}
END_TEST

/* ── The thread ── */

struct insertion {
    struct store_request base;
    const char *key;
    int order; /* when it was answered */
};

static int answered;

static int insertion_run(struct store_request *base, struct store *store, struct err *err)
{
    return insert(store, ((struct insertion *)base)->key, err);
}

static void insertion_done(struct store_request *base, const struct err *err)
{
    (void)err;
    ((struct insertion *)base)->order = ++answered;
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

START_TEST(one_failure_leaves_the_others)
{
    enum { N = 50 };
    static struct insertion insertion[N];
    struct store_thread *thread;
    struct err err = ERR_INIT;
    uv_loop_t loop;
    bool closed = false;
    int64_t count[STATE_COUNT];
    uv_loop_init(&loop);
    ck_assert_int_eq(store_thread_start(&loop, must_open(), &thread, &err), 0);
    for (int i = 0; i < N; i++) {
        insertion[i] = (struct insertion){
            .base = {.kind = STORE_WRITE, .run = insertion_run, .done = insertion_done},
            .key = i % 10 == 0 ? "same" : NULL};
        store_thread_submit(thread, &insertion[i].base);
    }
    store_thread_stop(thread, on_closed, &closed);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(closed);
    uv_loop_close(&loop);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(insertion[i].order, i + 1);
        ck_assert_int_eq(insertion[i].base.err.code, i % 10 == 0 && i > 0 ? ERR_IO : 0);
    }
    struct store *store = must_open();
    ck_assert_int_eq(store_count_states(store, count, &err), 0);
    ck_assert_int_eq(count[STATE_QUEUED], N - 4);
    store_close(store);
}
END_TEST

/* One file-size limit plays the full disk: SQLite sees a write fail. */
static void set_file_limit(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static int count_run(struct store_request *base, struct store *store, struct err *err)
{
    int64_t count[STATE_COUNT];
    (void)base;
    return store_count_states(store, count, err);
}

static void submit(struct store_thread *thread, struct insertion *insertion, enum store_kind kind)
{
    *insertion = (struct insertion){.base = {.kind = kind,
                                             .run = kind == STORE_READ ? count_run : insertion_run,
                                             .done = insertion_done}};
    store_thread_submit(thread, &insertion->base);
}

static void wait_for(uv_loop_t *loop, const struct insertion *insertion)
{
    while (insertion->order == 0)
        uv_run(loop, UV_RUN_ONCE);
}

/* Standard error goes into a file from here on; its text, when all is done. */
static const char *said(bool begin)
{
    static char text[4096];
    static FILE *file;
    if (begin) {
        file = tmpfile();
        ck_assert_ptr_nonnull(file);
        dup2(fileno(file), STDERR_FILENO);
        return "";
    }
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    return text;
}

static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

START_TEST(on_a_full_disk_moves_wait_and_reads_go_on)
{
    static struct insertion first, move, write, read;
    char wal[PATH_MAX + 8];
    struct stat st;
    struct store_thread *thread;
    struct err err = ERR_INIT;
    uv_loop_t loop;
    bool closed = false;
    int64_t count[STATE_COUNT];
    signal(SIGXFSZ, SIG_IGN);
    uv_loop_init(&loop);
    ck_assert_int_eq(store_thread_start(&loop, must_open(), &thread, &err), 0);
    submit(thread, &first, STORE_WRITE);
    wait_for(&loop, &first);
    snprintf(wal, sizeof wal, "%s-wal", path);
    ck_assert_int_eq(stat(wal, &st), 0);
    said(true);
    set_file_limit((rlim_t)st.st_size);
    submit(thread, &move, STORE_MUST);
    submit(thread, &write, STORE_WRITE);
    wait_for(&loop, &write);
    ck_assert_int_ne(write.base.err.code, 0);
    submit(thread, &read, STORE_READ);
    wait_for(&loop, &read);
    ck_assert_int_eq(read.base.err.code, 0);
    ck_assert_int_eq(move.order, 0);
    set_file_limit(RLIM_INFINITY);
    wait_for(&loop, &move);
    ck_assert_int_eq(move.base.err.code, 0);
    /* The read made the thread try the move again: that was not told a second time. */
    ck_assert_int_eq(count_of(said(false), "cannot be written"), 1);
    ck_assert_int_eq(count_of(said(false), "can be written again"), 1);
    store_thread_stop(thread, on_closed, &closed);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    struct store *store = must_open();
    ck_assert_int_eq(store_count_states(store, count, &err), 0);
    ck_assert_int_eq(count[STATE_QUEUED], 2);
    store_close(store);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store");
    TCase *tcase = checks_case(suite, "rows", 0);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_record_survives_a_reopening);
    tcase_add_test(tcase, an_older_database_is_brought_up);
    tcase_add_test(tcase, a_key_is_unique_for_a_user);
    tcase_add_test(tcase, filters_and_history);
    tcase = checks_case(suite, "refusals", 0);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_newer_schema_is_refused);
    tcase_add_test(tcase, another_programs_database_is_refused);
    tcase_add_test(tcase, a_file_that_is_no_database_is_refused);
    tcase_add_test(tcase, a_damaged_database_is_refused);
    tcase = checks_case(suite, "thread", 0);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, one_failure_leaves_the_others);
    tcase_add_test(tcase, on_a_full_disk_moves_wait_and_reads_go_on);
    return checks_run(suite);
}
