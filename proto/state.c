#include "proto/state.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    bool ended;
} states[] = {
#define X(name, text, ended) [STATE_##name] = {text, ended},
    JOB_STATES(X)
#undef X
};

const char *state_name(enum job_state state)
{
    return states[state].name;
}

bool state_ended(enum job_state state)
{
    return states[state].ended;
}

const char *state_list(char buf[static STATE_LIST_SIZE])
{
    size_t used = 0;
    for (int i = 0; i < STATE_COUNT; i++)
        used += (size_t)snprintf(buf + used, STATE_LIST_SIZE - used, "%s%s", i > 0 ? ", " : "",
                                 states[i].name);
    return buf;
}

enum job_state state_from_name(const char *name)
{
    int state = 0;
    while (state < STATE_COUNT && strcmp(states[state].name, name) != 0)
        state++;
    return (enum job_state)state;
}
