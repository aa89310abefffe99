/* job_helper.c: a job of the checks: says what it was given, or misbehaves. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void print_fds(void)
{
    printf("fds");
    for (int fd = 0; fd < 1024; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            printf(" %d", fd);
    }
    printf("\n");
}

static int count_blocked(void)
{
    sigset_t mask;
    int n = 0;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int sig = 1; sig < NSIG; sig++)
        n += sigismember(&mask, sig) == 1;
    return n;
}

static int count_ignored(void)
{
    int n = 0;
    for (int sig = 1; sig < NSIG; sig++) {
        struct sigaction action;
        n += sigaction(sig, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
    }
    return n;
}

static int describe(void)
{
    const int all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    struct rlimit core;
    print_fds();
    printf("seals %s\n", (fcntl(0, F_GET_SEALS) & all) == all ? "all" : "missing");
    printf("write %s\n", write(0, "x", 1) < 0 ? "refused" : "possible");
    printf("blocked %d\nignored %d\n", count_blocked(), count_ignored());
    printf("leader %s\n", getsid(0) == getpid() && getpgid(0) == getpid() ? "yes" : "no");
    getrlimit(RLIMIT_CORE, &core);
    printf("core %llu\n", (unsigned long long)core.rlim_cur);
    return 0;
}

/* Far more reports than are kept, the last one different. */
static int flood(void)
{
    for (int i = 0; i < 100000; i++)
        dprintf(3, "{\"i\": %d}\n", i);
    dprintf(3, "{\"last\": true}\n");
    return 0;
}

/* Touches memory until somebody ends it; volatile, for a compiler sees that nobody reads it. */
static int eat(void)
{
    for (;;) {
        volatile char *p = malloc(1 << 20);
        if (p == NULL)
            return 1;
        for (size_t at = 0; at < 1 << 20; at += 4096)
            p[at] = 1;
    }
}

/* Ends, and leaves an orphan that is another process at every moment. */
static int chain(void)
{
    if (fork() > 0)
        return 0;
    setsid();
    while (fork() <= 0)
        continue;
    _exit(0);
}

static const struct {
    const char *name;
    int (*run)(void);
} rows[] = {{"describe", describe}, {"flood", flood}, {"eat", eat}, {"chain", chain}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(argv[1], rows[i].name) == 0)
            return rows[i].run();
    }
    fprintf(stderr, "usage: job_helper describe|flood|eat|chain\n");
    return 2;
}
