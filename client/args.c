/* args.c: see args.h. */
#include "client/args.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

static const struct option_def options[] = {
#define X(id, letter, text, value, help) {letter, text, value, help},
    OPTIONS(X)
#undef X
};

const struct option_def *option_def(enum option_id id)
{
    return &options[id];
}

static enum option_id find_letter(char letter)
{
    for (size_t i = 0; i < OPT_COUNT; i++)
        if (options[i].letter == letter)
            return (enum option_id)i;
    return OPT_COUNT;
}

static enum option_id find_name(const char *name, size_t n)
{
    for (size_t i = 0; i < OPT_COUNT; i++)
        if (strlen(options[i].name) == n && memcmp(options[i].name, name, n) == 0)
            return (enum option_id)i;
    return OPT_COUNT;
}

static int unknown_option(const char *name, size_t n, struct err *err)
{
    const char *names[OPT_COUNT];
    char copy[64];
    for (size_t i = 0; i < OPT_COUNT; i++)
        names[i] = options[i].name;
    n = n < sizeof copy ? n : sizeof copy - 1;
    memcpy(copy, name, n);
    copy[n] = '\0';
    const char *near = json_nearest(copy, names, OPT_COUNT);
    return near == NULL
               ? err_set(err, ERR_USAGE, "there is no option --%s", copy)
               : err_set(err, ERR_USAGE, "there is no option --%s: did you mean --%s?", copy, near);
}

/* What is left of the command line, and the word at hand. */
struct reader {
    char *const *next;
    char *const *end;
};

/* Notes one option. Its value is `value` if given, else the next word. */
static int note(struct args *args, struct reader *reader, enum option_id id, const char *value,
                struct err *err)
{
    const struct option_def *def = &options[id];
    if (def->value == NULL && value != NULL)
        return err_set(err, ERR_USAGE, "--%s takes no value", def->name);
    if (def->value != NULL && value == NULL) {
        if (reader->next == reader->end)
            return err_set(err, ERR_USAGE, "--%s needs a value: --%s %s", def->name, def->name,
                           def->value);
        value = *reader->next++;
    }
    args->given |= 1u << id;
    args->values[id] = value;
    return 0;
}

static int read_long(struct args *args, struct reader *reader, const char *name, struct err *err)
{
    size_t n = strcspn(name, "=");
    enum option_id id = find_name(name, n);
    if (id == OPT_COUNT)
        return unknown_option(name, n, err);
    return note(args, reader, id, name[n] == '=' ? name + n + 1 : NULL, err);
}

/* "-w", or several letters at once; a letter's value may follow it at once. */
static int read_letters(struct args *args, struct reader *reader, const char *letters,
                        struct err *err)
{
    for (; *letters != '\0'; letters++) {
        enum option_id id = find_letter(*letters);
        if (id == OPT_COUNT)
            return err_set(err, ERR_USAGE, "there is no option -%c", *letters);
        bool valued = options[id].value != NULL && letters[1] != '\0';
        int rc = note(args, reader, id, valued ? letters + 1 : NULL, err);
        if (rc < 0 || valued)
            return rc;
    }
    return 0;
}

static void read_word(struct args *args, const char *word)
{
    if (args->command == NULL)
        args->command = word;
    else
        args->words[args->n_words++] = word;
}

int args_parse(int argc, char *const *argv, struct args *ret_args, struct err *err)
{
    struct args args = {0};
    struct reader reader = {argv + (argc > 0), argv + argc};
    bool literal = false;
    int rc = 0;
    args.words = calloc((size_t)argc + 1, sizeof *args.words);
    if (args.words == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    while (rc == 0 && reader.next < reader.end) {
        const char *word = *reader.next++;
        if (literal || word[0] != '-' || word[1] == '\0')
            read_word(&args, word);
        else if (strcmp(word, "--") == 0)
            literal = true;
        else if (word[1] == '-')
            rc = read_long(&args, &reader, word + 2, err);
        else
            rc = read_letters(&args, &reader, word + 1, err);
    }
    if (rc < 0)
        args_done(&args);
    else
        *ret_args = args;
    return rc;
}

void args_done(struct args *args)
{
    free(args->words);
    args->words = NULL;
}

int args_allow(const struct args *args, unsigned allowed, struct err *err)
{
    for (size_t i = 0; i < OPT_COUNT; i++)
        if ((args->given & ~allowed & 1u << i) != 0)
            return err_set(err, ERR_USAGE, "%s takes no --%s", args->command, options[i].name);
    return 0;
}

int args_id(const char *word, int64_t *ret_id, struct err *err)
{
    char *end;
    errno = 0;
    long long id = strtoll(word, &end, 10);
    if (word[0] < '0' || word[0] > '9' || *end != '\0' || errno != 0 || id < 1)
        return err_set(err, ERR_USAGE,
                       "'%s' is not a job's id: ids are numbers, as `trainctl list` "
                       "shows them",
                       word);
    *ret_id = id;
    return 0;
}

int args_seconds(const struct args *args, enum option_id id, double *ret_seconds, struct err *err)
{
    char *end;
    const char *word = args->values[id];
    double seconds = strtod(word, &end);
    if (end == word || *end != '\0' || !isfinite(seconds) || seconds < 0)
        return err_set(err, ERR_USAGE, "--%s: '%s' is not a number of seconds", options[id].name,
                       word);
    *ret_seconds = seconds;
    return 0;
}

int args_integer(const struct args *args, enum option_id id, int64_t *ret_value, struct err *err)
{
    char *end;
    const char *word = args->values[id];
    errno = 0;
    long long value = strtoll(word, &end, 10);
    if (end == word || *end != '\0' || errno != 0)
        return err_set(err, ERR_USAGE, "--%s: '%s' is not a whole number", options[id].name, word);
    *ret_value = value;
    return 0;
}
