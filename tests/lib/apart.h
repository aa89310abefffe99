/* apart.h: how far two runs of numbers are apart. */
#ifndef TESTS_LIB_APART_H
#define TESTS_LIB_APART_H

#include <stddef.h>

struct apart {
    double worst;   /* max|a-b|; infinite where one of a pair is not a number */
    double largest; /* max|b| */
};

void apart_add(struct apart *apart, double a, double b);
struct apart apart_floats(const float *a, const float *b, size_t n);

#endif
