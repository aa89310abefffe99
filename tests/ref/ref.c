/* ref.c: see ref.h. */
#include "tests/ref/ref.h"

#include <string.h>

static const struct {
    const char *op;
    ref_function *function;
} rows[] = {
#define REF(op) {#op, ref_##op},
#include "tests/ref/ref.def"
#undef REF
};

ref_function *ref_find(const char *op)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op, op) == 0)
            return rows[i].function;
    return NULL;
}
