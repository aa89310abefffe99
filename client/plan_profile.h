/* plan_profile.h: where the time of a step goes, as traind-worker plan --profile measured it. Pure.
 */
#ifndef CLIENT_PLAN_PROFILE_H
#define CLIENT_PLAN_PROFILE_H

#include <jansson.h>

#include "client/render/style.h"
#include "client/render/text.h"

/* Tables by op, by layer and by node, the slowest first; nothing of NULL. */
void plan_add_profile(struct text *text, const struct style *style, const json_t *profile);

#endif
