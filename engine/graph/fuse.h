/* fuse.h: which forward nodes may become one. */
#ifndef ENGINE_GRAPH_FUSE_H
#define ENGINE_GRAPH_FUSE_H

#include <stdbool.h>

/* A normalisation, a sum of its output with another value where that is added, and a ReLU, as one
 * op: the normalisation's inputs, then what is added; out[0] is the ReLU's. */
struct op_fusion {
    const char *norm, *fused;
    int residual;   /* the fused op's input that is added */
    bool inference; /* in graphs that do not train alone */
};

#endif
