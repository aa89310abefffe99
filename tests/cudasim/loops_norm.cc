/* loops_norm.cc: y = (x - mean) * inverse * scale + bias, a channel at a time; the gradient is that
 * of the formula with mean and variance as functions of x. */
#include "tests/cudasim/loops.hpp"

#include <cmath>

namespace sim
{

/* Calls visit(position) for each value of channel c. */
template <typename Visit> static void channel_each(const Norm &norm, int64_t c, Visit visit)
{
    for (int64_t n = 0; n < norm.n; n++)
        for (int64_t i = 0; i < norm.pixels; i++)
            visit(size_t((n * norm.c + c) * norm.pixels + i));
}

NormMoments norm_moments(const Norm &norm, const doubles &x)
{
    NormMoments moments = {doubles(size_t(norm.c)), doubles(size_t(norm.c))};
    double count = double(norm.n * norm.pixels);
    for (int64_t c = 0; c < norm.c; c++) {
        double sum = 0, squares = 0;
        channel_each(norm, c, [&](size_t i) { sum += x[i]; });
        double mean = sum / count;
        channel_each(norm, c, [&](size_t i) { squares += (x[i] - mean) * (x[i] - mean); });
        moments.mean[size_t(c)] = mean;
        moments.variance[size_t(c)] = squares / count;
    }
    return moments;
}

doubles norm_inverse(const Norm &norm, const doubles &variance)
{
    doubles inverse;
    for (double v : variance)
        inverse.push_back(1 / std::sqrt(v + norm.epsilon));
    return inverse;
}

doubles norm_apply(const Norm &norm, const doubles &x, const doubles &mean, const doubles &inverse,
                   const doubles &scale, const doubles &bias)
{
    doubles y(x.size());
    for (int64_t c = 0; c < norm.c; c++) {
        size_t k = size_t(c);
        channel_each(norm, c,
                     [&](size_t i) { y[i] = (x[i] - mean[k]) * inverse[k] * scale[k] + bias[k]; });
    }
    return y;
}

NormGrads norm_backward(const Norm &norm, const doubles &x, const doubles &dy, const doubles &scale,
                        const doubles &mean, const doubles &inverse)
{
    NormGrads grads = {doubles(x.size()), doubles(size_t(norm.c)), doubles(size_t(norm.c))};
    double count = double(norm.n * norm.pixels);
    for (int64_t c = 0; c < norm.c; c++) {
        size_t k = size_t(c);
        double sum = 0, dot = 0;
        auto normal = [&](size_t i) { return (x[i] - mean[k]) * inverse[k]; };
        channel_each(norm, c, [&](size_t i) { sum += dy[i], dot += dy[i] * normal(i); });
        channel_each(norm, c, [&](size_t i) {
            grads.dx[i] = scale[k] * inverse[k] * (dy[i] - sum / count - normal(i) * dot / count);
        });
        grads.dscale[k] = dot;
        grads.dbias[k] = sum;
    }
    return grads;
}

} // namespace sim
