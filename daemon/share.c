/* share.c: see share.h. */
#include "daemon/share.h"

#include <math.h>

double share_decay(double amount, double seconds, double half_life_s)
{
    return amount * exp2(-fmax(seconds, 0) / half_life_s); /* a wall clock may be set back */
}

double share_run(double devices, double seconds, double half_life_s)
{
    const double per_e = half_life_s / log(2);
    return devices * per_e * -expm1(-fmax(seconds, 0) / per_e);
}
