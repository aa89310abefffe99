/* loops_pool.cc: the largest or the average of each window. */
#include "tests/cudasim/loops.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sim
{

struct Window { /* what of it lies in the plane, and how many values its average divides by */
    int64_t h0, h1, w0, w1, divisor;
};

static Window window_at(const Pool &v, int64_t p, int64_t q)
{
    int64_t h = p * v.stride[0] - v.pad[0], w = q * v.stride[1] - v.pad[1];
    Window at = {std::max<int64_t>(h, 0), std::min(h + v.window[0], v.h), std::max<int64_t>(w, 0),
                 std::min(w + v.window[1], v.w), v.window[0] * v.window[1]};
    if (v.mode == PoolMode::average_without_padding)
        at.divisor = std::max<int64_t>(0, at.h1 - at.h0) * std::max<int64_t>(0, at.w1 - at.w0);
    return at;
}

/* Calls visit(position of the output, window, first position of its plane). */
template <typename Visit> static void window_each(const Pool &v, Visit visit)
{
    for (int64_t i = 0; i < v.planes * v.p * v.q; i++)
        visit(size_t(i), window_at(v, i / v.q % v.p, i % v.q), i / (v.p * v.q) * v.h * v.w);
}

template <typename Visit>
static void value_each(const Pool &v, const Window &at, int64_t plane, Visit visit)
{
    for (int64_t h = at.h0; h < at.h1; h++)
        for (int64_t w = at.w0; w < at.w1; w++)
            visit(size_t(plane + h * v.w + w));
}

doubles pool_forward(const Pool &pool, const doubles &x)
{
    doubles y(size_t(pool.planes * pool.p * pool.q));
    window_each(pool, [&](size_t o, const Window &at, int64_t plane) {
        double sum = 0, largest = -std::numeric_limits<double>::infinity();
        value_each(pool, at, plane, [&](size_t i) {
            sum += x[i];
            if (x[i] > largest || (pool.propagate_nan && std::isnan(x[i])))
                largest = x[i];
        });
        y[o] = pool.mode == PoolMode::max ? largest : sum / double(at.divisor);
    });
    return y;
}

static size_t position_of(const Pool &pool, const Window &at, int64_t plane, const doubles &x,
                          double value)
{
    size_t found = size_t(plane + at.h0 * pool.w + at.w0);
    bool done = false;
    value_each(pool, at, plane, [&](size_t i) {
        if (!done && (x[i] == value || (std::isnan(x[i]) && std::isnan(value))))
            found = i, done = true;
    });
    return found;
}

doubles pool_backward(const Pool &pool, const doubles &x, const doubles &y, const doubles &dy)
{
    doubles dx(size_t(pool.planes * pool.h * pool.w), 0.0);
    window_each(pool, [&](size_t o, const Window &at, int64_t plane) {
        if (pool.mode == PoolMode::max)
            dx[position_of(pool, at, plane, x, y[o])] += dy[o];
        else
            value_each(pool, at, plane, [&](size_t i) { dx[i] += dy[o] / double(at.divisor); });
    });
    return dx;
}

} // namespace sim
