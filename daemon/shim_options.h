/* shim_options.h: the command line of traind-shim. */
#ifndef DAEMON_SHIM_OPTIONS_H
#define DAEMON_SHIM_OPTIONS_H

#include "daemon/shim.h"

/* The strings stay argv's. False: a line on standard error says what is wrong. */
bool shim_options_parse(int argc, char **argv, struct shim_options *ret_options);

#endif
