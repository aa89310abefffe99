/* cmd_completion.c: trainctl completion SHELL prints what makes a shell complete trainctl's words.
 * That is a few lines which ask `trainctl completion words -- WORD…` what the last of the words may
 * be: a candidate a line with its help, or ":files". So there is one table of commands for all
 * shells. */
#include <string.h>

#include "client/ctl.h"
#include "proto/state.h"

static const char bash[] =
    "# source <(trainctl completion bash)\n"
    "_trainctl()\n"
    "{\n"
    "    local line word=${COMP_WORDS[COMP_CWORD]}\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r line _; do\n"
    "        if [ \"$line\" = :files ]; then\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$word\")\n"
    "        elif [[ $line == \"$word\"* ]]; then\n"
    "            COMPREPLY+=(\"$line\")\n"
    "        fi\n"
    "    done < <(trainctl completion words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _trainctl trainctl\n";

static const char zsh[] =
    "#compdef trainctl\n"
    "# source <(trainctl completion zsh)\n"
    "_trainctl()\n"
    "{\n"
    "    local line\n"
    "    local -a found\n"
    "    trainctl completion words -- \"${(@)words[2,CURRENT]}\" 2>/dev/null | while read -r line; "
    "do\n"
    "        if [ \"$line\" = :files ]; then _files; continue; fi\n"
    "        line=${line//:/\\\\:}\n"
    "        found+=(\"${line/$'\\t'/:}\")\n"
    "    done\n"
    "    _describe word found\n"
    "}\n"
    "compdef _trainctl trainctl\n";

static const char fish[] = "# trainctl completion fish | source\n"
                           "function __trainctl\n"
                           "    for line in (trainctl completion words -- (commandline -opc)[2..] "
                           "(commandline -ct) 2>/dev/null)\n"
                           "        if test $line = :files\n"
                           "            __fish_complete_path (commandline -ct)\n"
                           "        else\n"
                           "            echo $line\n"
                           "        end\n"
                           "    end\n"
                           "end\n"
                           "complete -c trainctl -f -a '(__trainctl)'\n";

static const struct {
    const char *name, *text;
} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

static void add(struct text *text, const char *word, size_t n, const char *help)
{
    text_addn(text, word, n);
    if (help != NULL)
        text_fmt(text, "\t%s", help);
    text_add(text, "\n");
}

static void add_files(struct ctl *ctl, struct text *text)
{
    (void)ctl;
    text_add(text, ":files\n");
}

static void add_states(struct ctl *ctl, struct text *text)
{
    (void)ctl;
    for (int state = 0; state < STATE_COUNT; state++)
        text_fmt(text, "%s\n", state_name((enum job_state)state));
}

/* Of the daemon, whatever it has; a shell is told of no error. */
static json_t *ask(struct ctl *ctl, enum method method, const char *key)
{
    struct err ignored = ERR_INIT;
    json_t *result;
    if (ctl_call(ctl, method, json_object(), &result, &ignored) < 0)
        return NULL;
    json_t *list = json_incref(json_object_get(result, key));
    json_decref(result);
    return list;
}

static void add_jobs(struct ctl *ctl, struct text *text)
{
    json_t *jobs = ask(ctl, METHOD_JOB_LIST, "jobs"), *job;
    size_t i;
    json_array_foreach(jobs, i, job)
    {
        const char *name = json_string_value(json_object_get(job, "name"));
        text_fmt(text, "%" JSON_INTEGER_FORMAT "\t",
                 json_integer_value(json_object_get(job, "id")));
        text_safe(text, &ctl->style, name != NULL ? name : "");
        text_add(text, "\n");
    }
    json_decref(jobs);
}

static void add_devices(struct ctl *ctl, struct text *text)
{
    json_t *devices = ask(ctl, METHOD_DEVICE_LIST, "devices"), *device;
    size_t i;
    json_array_foreach(devices, i, device)
    {
        const char *name = json_string_value(json_object_get(device, "name"));
        text_safe(text, &ctl->style, name != NULL ? name : "");
        text_add(text, "\n");
    }
    json_decref(devices);
}

/* What can stand where the usage of a command, or an option's value, has such a word. */
static const struct {
    const char *word;
    void (*add)(struct ctl *ctl, struct text *text);
} kinds[] = {
    {"FILE", add_files}, {"PATH", add_files},     {"DIRECTORY", add_files}, {" A B", add_files},
    {"ID", add_jobs},    {"DEVICE", add_devices}, {"LIST", add_devices},    {"STATE", add_states},
};

static void add_kinds(struct ctl *ctl, struct text *text, const char *usage)
{
    void (*last)(struct ctl *, struct text *) = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strstr(usage, kinds[i].word) != NULL && kinds[i].add != last) {
            last = kinds[i].add;
            last(ctl, text);
        }
}

/* The words with which a command's alternatives begin: "show" of "show NAME | summary FILE". */
static void add_alternatives(struct text *text, const char *usage)
{
    while (usage != NULL) {
        size_t n = strspn(usage, "abcdefghijklmnopqrstuvwxyz");
        if (n > 0)
            add(text, usage, n, NULL);
        usage = strstr(usage, " | ");
        usage = usage != NULL ? usage + strlen(" | ") : NULL;
    }
}

static void add_commands(struct text *text)
{
    const struct cmd *cmd;
    for (size_t i = 0; (cmd = cmd_at(i)) != NULL; i++)
        add(text, cmd->name, strlen(cmd->name), cmd->summary);
}

static void add_options(struct text *text, const struct cmd *cmd)
{
    unsigned allowed = OPT_EVERYWHERE | (cmd != NULL ? cmd->options : 0);
    for (int i = 0; i < OPT_COUNT; i++)
        if ((allowed & 1u << i) != 0)
            text_fmt(text, "--%s\t%s\n", option_def((enum option_id)i)->name,
                     option_def((enum option_id)i)->help);
}

/* The option that the word before the last one is and whose value the last one will be, or NULL. */
static const struct option_def *asked_option(const char *const *words, size_t n)
{
    const char *word = n > 1 ? words[n - 2] : "";
    for (int i = 0; i < OPT_COUNT; i++) {
        const struct option_def *def = option_def((enum option_id)i);
        bool named = strncmp(word, "--", 2) == 0 && strcmp(word + 2, def->name) == 0;
        bool lettered = word[0] == '-' && word[1] != '\0' && word[1] == def->letter && word[2] == 0;
        if (def->value != NULL && (named || lettered))
            return def;
    }
    return NULL;
}

static void add_words(struct ctl *ctl, struct text *text)
{
    const char *const *words = ctl->args.words + 1;
    size_t n = ctl->args.n_words - 1, command = 0;
    const struct option_def *option = asked_option(words, n);
    while (command + 1 < n && words[command][0] == '-')
        command++;
    const struct cmd *cmd = command + 1 < n ? cmd_find(words[command]) : NULL;
    if (option != NULL)
        add_kinds(ctl, text, option->value);
    else if (words[n - 1][0] == '-')
        add_options(text, cmd);
    else if (command + 1 == n)
        add_commands(text);
    else if (cmd != NULL && command + 2 == n && strstr(cmd->args, " | ") != NULL)
        add_alternatives(text, cmd->args);
    else if (cmd != NULL)
        add_kinds(ctl, text, cmd->args);
}

int cmd_completion(struct ctl *ctl, struct err *err)
{
    const char *word = ctl->args.words[0];
    struct text text = {0};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(word, shells[i].name) == 0)
            text_add(&text, shells[i].text);
    if (strcmp(word, "words") == 0 && ctl->args.n_words > 1)
        add_words(ctl, &text);
    else if (text.used == 0)
        return err_set(err, ERR_USAGE, "completion: there is no '%s'; allowed are bash, zsh, fish",
                       word);
    return ctl_print(&text, err);
}
