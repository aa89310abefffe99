/* loops_softmax.cc: e^x over its sum along the classes, and its logarithm. */
#include "tests/cudasim/loops.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace sim
{

/* Calls visit(position of each class's value) for each of the outer * inner distributions. */
template <typename Visit> static void distribution_each(const Softmax &v, Visit visit)
{
    for (int64_t o = 0; o < v.outer; o++)
        for (int64_t i = 0; i < v.inner; i++)
            visit([=](int64_t c) { return size_t((o * v.classes + c) * v.inner + i); });
}

/* As a float would: what nothing was subtracted from overflows. */
static double float_exp(double x)
{
    double e = std::exp(x);
    return e > FLT_MAX ? HUGE_VAL : e;
}

doubles softmax_forward(const Softmax &softmax, const doubles &x)
{
    doubles y(x.size());
    distribution_each(softmax, [&](auto at) {
        double largest = softmax.mode == SoftmaxMode::fast ? 0 : x[at(0)], sum = 0;
        for (int64_t c = 0; c < softmax.classes && softmax.mode != SoftmaxMode::fast; c++)
            largest = std::max(largest, x[at(c)]);
        for (int64_t c = 0; c < softmax.classes; c++)
            sum += float_exp(x[at(c)] - largest);
        for (int64_t c = 0; c < softmax.classes; c++) {
            double shifted = x[at(c)] - largest;
            y[at(c)] = softmax.mode == SoftmaxMode::log ? shifted - std::log(sum)
                                                        : float_exp(shifted) / sum;
        }
    });
    return y;
}

doubles softmax_backward(const Softmax &softmax, const doubles &y, const doubles &dy)
{
    doubles dx(y.size());
    bool log = softmax.mode == SoftmaxMode::log;
    distribution_each(softmax, [&](auto at) {
        double sum = 0;
        for (int64_t c = 0; c < softmax.classes; c++)
            sum += log ? dy[at(c)] : dy[at(c)] * y[at(c)];
        for (int64_t c = 0; c < softmax.classes; c++)
            dx[at(c)] = log ? dy[at(c)] - std::exp(y[at(c)]) * sum : y[at(c)] * (dy[at(c)] - sum);
    });
    return dx;
}

} // namespace sim
