/* loops_gemm.cc: a matrix product, and GELU as cuBLASLt has it (the tanh form). */
#include "tests/cudasim/loops.hpp"

#include <cmath>

namespace sim
{

doubles gemm(const Gemm &g, const double *a, const double *b)
{
    doubles d(size_t(g.m * g.n), 0.0);
    for (int64_t i = 0; i < g.m; i++)
        for (int64_t l = 0; l < g.k; l++) {
            double factor = a[i * g.k + l];
            for (int64_t j = 0; j < g.n; j++)
                d[size_t(i * g.n + j)] += factor * b[l * g.n + j];
        }
    return d;
}

static const double gelu_scale = 0.79788456080286535588; /* sqrt(2 / pi) */
static const double gelu_cubic = 0.044715;

double gelu_tanh(double x)
{
    return 0.5 * x * (1 + std::tanh(gelu_scale * (x + gelu_cubic * x * x * x)));
}

double gelu_tanh_grad(double x)
{
    double t = std::tanh(gelu_scale * (x + gelu_cubic * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * gelu_scale * (1 + 3 * gelu_cubic * x * x);
}

} // namespace sim
