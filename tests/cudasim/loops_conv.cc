/* loops_conv.cc: y[n,k,p,q] = sum over (c, r, s) of filter[k,c,r,s] * x[n,c,…]; the gradients visit
 * the same products. */
#include "tests/cudasim/loops.hpp"

#include <algorithm>

namespace sim
{

/* The outputs along one dimension whose input at filter position f lies within [0, size). */
struct Reach {
    int64_t from, to, first; /* outputs [from, to); output o's input is first + o * stride */
};

static Reach reach(const Conv &conv, int dim, int64_t f, int64_t size, int64_t outputs)
{
    int64_t first = f * conv.dilation[dim] - conv.pad[dim], stride = conv.stride[dim];
    int64_t from = first >= 0 ? 0 : (-first + stride - 1) / stride;
    int64_t to = size <= first ? 0 : (size - first + stride - 1) / stride;
    return {from, std::min(to, outputs), first};
}

/* Calls visit(x, filter, y, count, stride) for each run of products along a row: x[i * stride] *
 * filter -> y[i]. */
template <typename Visit> static void conv_rows(const Conv &v, Visit visit)
{
    int64_t channels = v.c / v.groups, filters = v.k / v.groups;
    for (int64_t n = 0; n < v.n; n++)
        for (int64_t k = 0; k < v.k; k++)
            for (int64_t i = 0; i < channels * v.r * v.s; i++) {
                int64_t c = k / filters * channels + i / (v.r * v.s);
                Reach row = reach(v, 0, i / v.s % v.r, v.h, v.p);
                Reach column = reach(v, 1, i % v.s, v.w, v.q);
                for (int64_t p = row.from; p < row.to && column.from < column.to; p++) {
                    int64_t h = row.first + p * v.stride[0];
                    int64_t w = column.first + column.from * v.stride[1];
                    visit(((n * v.c + c) * v.h + h) * v.w + w, k * channels * v.r * v.s + i,
                          ((n * v.k + k) * v.p + p) * v.q + column.from, column.to - column.from,
                          v.stride[1]);
                }
            }
}

doubles conv_forward(const Conv &conv, const doubles &x, const doubles &filter)
{
    doubles y(size_t(conv.n * conv.k * conv.p * conv.q), 0.0);
    conv_rows(conv, [&](int64_t ix, int64_t iw, int64_t iy, int64_t count, int64_t stride) {
        const double *from = x.data() + ix, factor = filter[size_t(iw)];
        for (double *to = y.data() + iy; count > 0; count--, from += stride)
            *to++ += *from * factor;
    });
    return y;
}

doubles conv_backward_data(const Conv &conv, const doubles &filter, const doubles &dy)
{
    doubles dx(size_t(conv.n * conv.c * conv.h * conv.w), 0.0);
    conv_rows(conv, [&](int64_t ix, int64_t iw, int64_t iy, int64_t count, int64_t stride) {
        const double *from = dy.data() + iy, factor = filter[size_t(iw)];
        for (double *to = dx.data() + ix; count > 0; count--, to += stride)
            *to += *from++ * factor;
    });
    return dx;
}

doubles conv_backward_filter(const Conv &conv, const doubles &x, const doubles &dy)
{
    doubles dw(size_t(conv.k * (conv.c / conv.groups) * conv.r * conv.s), 0.0);
    conv_rows(conv, [&](int64_t ix, int64_t iw, int64_t iy, int64_t count, int64_t stride) {
        const double *a = x.data() + ix, *b = dy.data() + iy;
        double sum = 0;
        for (; count > 0; count--, a += stride)
            sum += *a * *b++;
        dw[size_t(iw)] += sum;
    });
    return dw;
}

} // namespace sim
