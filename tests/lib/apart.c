/* apart.c: see apart.h. */
#include "tests/lib/apart.h"

#include <math.h>

void apart_add(struct apart *apart, double a, double b)
{
    double distance = a == b ? 0 : isnan(a - b) ? (double)INFINITY : fabs(a - b);
    if (distance > apart->worst)
        apart->worst = distance;
    if (fabs(b) > apart->largest)
        apart->largest = fabs(b);
}

struct apart apart_floats(const float *a, const float *b, size_t n)
{
    struct apart apart = {0, 0};
    for (size_t i = 0; i < n; i++)
        apart_add(&apart, (double)a[i], (double)b[i]);
    return apart;
}
