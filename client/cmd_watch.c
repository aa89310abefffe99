/* cmd_watch.c: trainctl watch. */
#include <unistd.h>

#include "client/ctl.h"
#include "client/follow.h"

int cmd_watch(struct ctl *ctl, struct err *err)
{
    json_t *ids;
    if (ctl->args.n_words == 0)
        return follow_jobs(ctl, json_pack("{s:I}", "user", (json_int_t)getuid()), err);
    int rc = ctl_ids(ctl, &ids, err);
    return rc < 0 ? rc : follow_jobs(ctl, json_pack("{s:o}", "ids", ids), err);
}
