/* cublaslt.cc: cublasLtMatmul: D = epilogue(alpha * op(A) op(B) + beta * C).
 *
 * Way of a call: `describe` refuses what does not fit and turns layouts into views, `Epilogue` rows
 * say what is added to the product, the closure loads, multiplies, applies and stores.
 */
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/cudasim/cublas_status.hpp"
#include "tests/cudasim/cublaslt_desc.hpp"
#include "tests/cudasim/library.hpp"
#include "tests/cudasim/loops.hpp"

struct cublasLtContext {
    int device;
};

namespace sim
{

/* A matrix [batch, rows, cols] as its layout has it. */
static View matrix_view(const LtLayout &layout, bool transposed)
{
    View view;
    bool columns = layout.order == CUBLASLT_ORDER_COL;
    view.type = cublas_type(layout.type);
    view.rank = 3;
    view.dim[0] = layout.batch_count, view.stride[0] = layout.batch_stride;
    view.dim[1] = int64_t(layout.rows), view.stride[1] = columns ? 1 : layout.ld;
    view.dim[2] = int64_t(layout.cols), view.stride[2] = columns ? layout.ld : 1;
    if (transposed) {
        std::swap(view.dim[1], view.dim[2]);
        std::swap(view.stride[1], view.stride[2]);
    }
    return view;
}

enum class Activation { none, relu, gelu };
enum class BiasUse { none, added, summed_d, summed_a, summed_b };

struct Epilogue {
    uint32_t epilogue;
    Activation activation;
    bool backward, aux;
    BiasUse bias;
};

static const Epilogue epilogues[] = {
    {CUBLASLT_EPILOGUE_DEFAULT, Activation::none, false, false, BiasUse::none},
    {CUBLASLT_EPILOGUE_BIAS, Activation::none, false, false, BiasUse::added},
    {CUBLASLT_EPILOGUE_RELU, Activation::relu, false, false, BiasUse::none},
    {CUBLASLT_EPILOGUE_RELU_AUX, Activation::relu, false, true, BiasUse::none},
    {CUBLASLT_EPILOGUE_RELU_BIAS, Activation::relu, false, false, BiasUse::added},
    {CUBLASLT_EPILOGUE_RELU_AUX_BIAS, Activation::relu, false, true, BiasUse::added},
    {CUBLASLT_EPILOGUE_DRELU, Activation::relu, true, true, BiasUse::none},
    {CUBLASLT_EPILOGUE_DRELU_BGRAD, Activation::relu, true, true, BiasUse::summed_d},
    {CUBLASLT_EPILOGUE_GELU, Activation::gelu, false, false, BiasUse::none},
    {CUBLASLT_EPILOGUE_GELU_AUX, Activation::gelu, false, true, BiasUse::none},
    {CUBLASLT_EPILOGUE_GELU_BIAS, Activation::gelu, false, false, BiasUse::added},
    {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, Activation::gelu, false, true, BiasUse::added},
    {CUBLASLT_EPILOGUE_DGELU, Activation::gelu, true, true, BiasUse::none},
    {CUBLASLT_EPILOGUE_DGELU_BGRAD, Activation::gelu, true, true, BiasUse::summed_d},
    {CUBLASLT_EPILOGUE_BGRADA, Activation::none, false, false, BiasUse::summed_a},
    {CUBLASLT_EPILOGUE_BGRADB, Activation::none, false, false, BiasUse::summed_b},
};

/* A product, checked. Views are [batch, rows, cols]; that of aux holds GELU's inputs, or bytes of
 * ReLU's bits. */
struct Product {
    Gemm size;
    int64_t batch;
    View a, b, c, d, bias, aux;
    const Epilogue *epilogue;
};

static cublasStatus_t check_layout(const char *name, const LtLayout &layout)
{
    REFUSE_IF(cublas_type(layout.type) == Type::none, CUBLAS_STATUS_NOT_SUPPORTED,
              "%s has type %d (or not simulated)", name, layout.type);
    REFUSE_IF(layout.order != CUBLASLT_ORDER_COL && layout.order != CUBLASLT_ORDER_ROW,
              CUBLAS_STATUS_NOT_SUPPORTED, "%s has order %d (or not simulated)", name,
              layout.order);
    uint64_t line = layout.order == CUBLASLT_ORDER_COL ? layout.rows : layout.cols;
    REFUSE_IF(layout.rows == 0 || layout.cols == 0 || layout.ld < int64_t(line),
              CUBLAS_STATUS_INVALID_VALUE, "%s is %llu x %llu with a leading dimension of %lld",
              name, (unsigned long long)layout.rows, (unsigned long long)layout.cols,
              (long long)layout.ld);
    REFUSE_IF(layout.batch_count < 1 || layout.batch_mode != CUBLASLT_BATCH_MODE_STRIDED ||
                  layout.plane_offset,
              CUBLAS_STATUS_NOT_SUPPORTED, "%s: batches by pointers or complex planes", name);
    return CUBLAS_STATUS_SUCCESS;
}

/* Which types go together: float computes; D as A and B, or float. */
static cublasStatus_t check_types(const LtMatmul &m, const Product &p)
{
    static const int computes[] = {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC,
                                   CUBLAS_COMPUTE_32F_FAST_16BF, CUBLAS_COMPUTE_32F_FAST_TF32};
    bool known =
        std::find(std::begin(computes), std::end(computes), m.compute) != std::end(computes);
    REFUSE_IF(!known || m.scale != CUDA_R_32F, CUBLAS_STATUS_NOT_SUPPORTED,
              "compute type %d with scale type %d (or not simulated)", m.compute, m.scale);
    bool floats = p.a.type == Type::f32 && p.d.type == Type::f32;
    bool low = p.a.type == Type::bf16 && (p.d.type == Type::bf16 || p.d.type == Type::f32);
    bool fast =
        m.compute == CUBLAS_COMPUTE_32F_FAST_16BF || m.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    REFUSE_IF(p.a.type != p.b.type || p.c.type != p.d.type || !(floats || low) || (low && fast),
              CUBLAS_STATUS_NOT_SUPPORTED, "A of %s, B %s, C %s, D %s, compute type %d",
              type_name(p.a.type), type_name(p.b.type), type_name(p.c.type), type_name(p.d.type),
              m.compute);
    REFUSE_IF(m.pointer_mode != CUBLASLT_POINTER_MODE_HOST || m.transc != CUBLAS_OP_N ||
                  m.fill != CUBLAS_FILL_MODE_FULL,
              CUBLAS_STATUS_NOT_SUPPORTED,
              "device scalars, a transposed C, a triangle: not simulated");
    REFUSE_IF(unsigned(m.transa) > CUBLAS_OP_T || unsigned(m.transb) > CUBLAS_OP_T,
              CUBLAS_STATUS_NOT_SUPPORTED, "transposition %d, %d", m.transa, m.transb);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_sizes(const Product &p)
{
    const View &a = p.a, &b = p.b, &c = p.c, &d = p.d;
    REFUSE_IF(a.dim[2] != b.dim[1] || d.dim[1] != a.dim[1] || d.dim[2] != b.dim[2],
              CUBLAS_STATUS_INVALID_VALUE, "op(A) %lldx%lld, op(B) %lldx%lld, D %lldx%lld",
              (long long)a.dim[1], (long long)a.dim[2], (long long)b.dim[1], (long long)b.dim[2],
              (long long)d.dim[1], (long long)d.dim[2]);
    REFUSE_IF(!view_same_dims(c, d), CUBLAS_STATUS_INVALID_VALUE, "C is not of D's size");
    REFUSE_IF(a.dim[0] != d.dim[0] || b.dim[0] != d.dim[0], CUBLAS_STATUS_INVALID_VALUE,
              "batches of %lld, %lld and %lld", (long long)a.dim[0], (long long)b.dim[0],
              (long long)d.dim[0]);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t describe_aux(const LtMatmul &m, Product *p)
{
    bool bits = p->epilogue->activation == Activation::relu;
    int64_t unit = bits ? 128 : 8, rows = p->size.m;
    REFUSE_IF(!m.aux || m.aux_ld < rows || m.aux_ld % unit || m.aux_batch_stride % unit,
              CUBLAS_STATUS_INVALID_VALUE,
              "the epilogue's buffer %p, leading dimension %lld: must be there, at least %lld, a "
              "multiple of %lld",
              m.aux, (long long)m.aux_ld, (long long)rows, (long long)unit);
    Type type = m.aux_type < 0 ? p->d.type : cublas_type(m.aux_type);
    REFUSE_IF(!bits && type != p->d.type, CUBLAS_STATUS_NOT_SUPPORTED,
              "the epilogue's buffer of type %d", m.aux_type);
    int64_t per = bits ? 8 : 1; /* elements in one of the view's */
    p->aux = view_packed(bits ? Type::u8 : type, {p->batch, (rows + per - 1) / per, p->size.n});
    p->aux.stride[0] = m.aux_batch_stride / per;
    p->aux.stride[1] = 1;
    p->aux.stride[2] = m.aux_ld / per;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t describe_bias(const LtMatmul &m, Product *p)
{
    BiasUse use = p->epilogue->bias;
    Type type = m.bias_type < 0 ? p->d.type : cublas_type(m.bias_type);
    bool widened = use == BiasUse::added && type == Type::f32;
    REFUSE_IF(!m.bias, CUBLAS_STATUS_INVALID_VALUE, "the epilogue's bias is NULL");
    REFUSE_IF(type != p->d.type && !widened, CUBLAS_STATUS_NOT_SUPPORTED, "a bias of type %d",
              m.bias_type);
    REFUSE_IF(p->batch > 1 && use != BiasUse::added, CUBLAS_STATUS_NOT_SUPPORTED,
              "the bias' gradient of a batch (or not simulated)");
    p->bias = view_packed(type, {p->batch, use == BiasUse::summed_b ? p->size.n : p->size.m});
    p->bias.stride[0] = m.bias_batch_stride;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t describe(const LtMatmul *m, const LtLayout *const layouts[4], Product *ret)
{
    static const char *const names[] = {"A", "B", "C", "D"};
    REFUSE_IF(!m, CUBLAS_STATUS_INVALID_VALUE, "no descriptor");
    for (int i = 0; i < 4; i++) {
        REFUSE_IF(!layouts[i], CUBLAS_STATUS_INVALID_VALUE, "no layout of %s", names[i]);
        REFUSED(check_layout(names[i], *layouts[i]));
    }
    Product p = {};
    p.a = matrix_view(*layouts[0], m->transa != CUBLAS_OP_N);
    p.b = matrix_view(*layouts[1], m->transb != CUBLAS_OP_N);
    p.c = matrix_view(*layouts[2], false), p.d = matrix_view(*layouts[3], false);
    p.batch = p.d.dim[0];
    p.size = {p.d.dim[1], p.d.dim[2], p.a.dim[2]};
    REFUSED(check_types(*m, p));
    REFUSED(check_sizes(p));
    p.epilogue = std::find_if(std::begin(epilogues), std::end(epilogues),
                              [&](auto &row) { return row.epilogue == m->epilogue; });
    REFUSE_IF(p.epilogue == std::end(epilogues), CUBLAS_STATUS_NOT_SUPPORTED, "epilogue %u",
              m->epilogue);
    REFUSE_IF(p.epilogue != epilogues && layouts[3]->order != CUBLASLT_ORDER_COL,
              CUBLAS_STATUS_NOT_SUPPORTED, "an epilogue needs D in columns");
    if (p.epilogue->aux)
        REFUSED(describe_aux(*m, &p));
    if (p.epilogue->bias != BiasUse::none)
        REFUSED(describe_bias(*m, &p));
    *ret = p;
    return CUBLAS_STATUS_SUCCESS;
}

/* ReLU's bits lie eight rows a byte; in the loaded bytes [batch, row / 8, column]. */
static double relu_bit(const Product &p, int64_t matrix, int64_t row, int64_t column,
                       doubles *bytes, const double *value)
{
    int64_t lines = (p.size.m + 7) / 8, bit = int64_t(1) << row % 8;
    double &byte = (*bytes)[size_t((matrix * lines + row / 8) * p.size.n + column)];
    if (value && *value > 0)
        byte = double(int64_t(byte) | bit);
    return int64_t(byte) & bit ? 1 : 0;
}

/* One element of alpha AB + beta C + bias through the activation, or the gradient back through it.
 */
static double activate(const Product &p, int64_t matrix, int64_t row, int64_t column, double value,
                       doubles *aux)
{
    const Epilogue &e = *p.epilogue;
    size_t at = size_t((matrix * p.size.m + row) * p.size.n + column);
    if (e.activation == Activation::none)
        return value;
    if (e.activation == Activation::relu && e.backward)
        return value * relu_bit(p, matrix, row, column, aux, nullptr);
    if (e.activation == Activation::relu) {
        if (e.aux)
            relu_bit(p, matrix, row, column, aux, &value);
        return value < 0 ? 0 : value;
    }
    if (e.backward)
        return value * gelu_tanh_grad((*aux)[at]);
    if (e.aux)
        (*aux)[at] = value;
    return gelu_tanh(value);
}

/* Sums of a row-major [rows, cols] matrix along its columns, or along its rows. */
static doubles sums(const double *matrix, int64_t rows, int64_t cols, bool along_columns)
{
    doubles totals(size_t(along_columns ? rows : cols), 0.0);
    for (int64_t i = 0; i < rows * cols; i++)
        totals[size_t(along_columns ? i / cols : i % cols)] += matrix[i];
    return totals;
}

enum Slot { A, B, C, D, BIAS, AUX };

struct Factors {
    double alpha, beta;
};

static void multiply(const Product &p, Factors f, Memory memory)
{
    const Gemm &g = p.size;
    doubles a = view_load(p.a, memory[A]), b = view_load(p.b, memory[B]), d, bias, aux;
    doubles c(size_t(p.batch * g.m * g.n), 0.0);
    if (f.beta != 0)
        c = view_load(p.c, memory[C]);
    if (p.epilogue->bias == BiasUse::added)
        bias = view_load(p.bias, memory[BIAS]);
    if (p.epilogue->aux) {
        aux.assign(size_t(view_count(p.aux)), 0.0);
        if (p.epilogue->backward)
            aux = view_load(p.aux, memory[AUX]);
    }
    for (int64_t i = 0; i < p.batch; i++) {
        doubles product = gemm(g, &a[size_t(i * g.m * g.k)], &b[size_t(i * g.k * g.n)]);
        for (int64_t at = 0; at < g.m * g.n; at++) {
            int64_t row = at / g.n;
            double value = f.alpha * product[size_t(at)] + f.beta * c[size_t(i * g.m * g.n + at)] +
                           (bias.empty() ? 0 : bias[size_t(i * g.m + row)]);
            d.push_back(activate(p, i, row, at % g.n, value, &aux));
        }
    }
    view_store(p.d, memory[D], d);
    if (p.epilogue->aux && !p.epilogue->backward)
        view_store(p.aux, memory[AUX], aux);
    if (p.epilogue->bias == BiasUse::summed_d)
        view_store(p.bias, memory[BIAS], sums(d.data(), g.m, g.n, true));
    if (p.epilogue->bias == BiasUse::summed_a)
        view_store(p.bias, memory[BIAS], sums(a.data(), g.m, g.k, true));
    if (p.epilogue->bias == BiasUse::summed_b)
        view_store(p.bias, memory[BIAS], sums(b.data(), g.k, g.n, false));
}

/* What a heuristic offers, the fastest first. */
struct Offer {
    int32_t id;
    uint32_t alignment;
    size_t (*workspace_bytes)(const Product &p);
};

static size_t no_workspace(const Product &)
{
    return 0;
}

static const Offer offers[] = {
    {101, 16, [](const Product &p) { return size_t(4 * view_count(p.d)) * sizeof(float); }},
    {102, 16, no_workspace},
    {103, 0, no_workspace}, /* takes what is aligned to its elements alone */
};

static cublasStatus_t check_pointers(const LtMatmul &m, const Product &p, const void *const data[4],
                                     bool reads_c, uint32_t alignment)
{
    static const char *const names[] = {"A", "B", "C", "D"};
    const View *views[] = {&p.a, &p.b, &p.c, &p.d};
    for (int i = 0; i < 4; i++) {
        if (i == C && !reads_c)
            continue;
        size_t needed = std::max<size_t>(alignment, type_bytes(views[i]->type));
        REFUSE_IF(!data[i], CUBLAS_STATUS_INVALID_VALUE, "%s is NULL", names[i]);
        REFUSE_IF(!aligned(data[i], needed), CUBLAS_STATUS_INVALID_VALUE,
                  "%s is not aligned to %zu bytes, as the algorithm needs", names[i], needed);
    }
    REFUSE_IF(data[C] == data[D] && !view_same(p.c, p.d), CUBLAS_STATUS_INVALID_VALUE,
              "C is D, with another layout");
    REFUSE_IF(p.epilogue->aux && !aligned(m.aux, 16), CUBLAS_STATUS_INVALID_VALUE,
              "the epilogue's buffer is not aligned to 16 bytes");
    REFUSE_IF(p.epilogue->bias != BiasUse::none && !aligned(m.bias, type_bytes(p.bias.type)),
              CUBLAS_STATUS_INVALID_VALUE, "the bias is not aligned to its elements");
    return CUBLAS_STATUS_SUCCESS;
}

} // namespace sim

using namespace sim;

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    int count = 0;
    REFUSE_IF(!handle, CUBLAS_STATUS_INVALID_VALUE, "cublasLtCreate: NULL");
    REFUSE_IF(cudaGetDeviceCount(&count) != cudaSuccess, CUBLAS_STATUS_NOT_INITIALIZED,
              "no device");
    *handle = new cublasLtContext{current_device()};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return cublas_status_name(status);
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return cublas_status_name(status);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *returned)
{
    const LtPreference *wanted = lt_preference(preference);
    const LtLayout *const layouts[] = {lt_layout(a), lt_layout(b), lt_layout(c), lt_layout(d)};
    REFUSE_IF(!handle, CUBLAS_STATUS_NOT_INITIALIZED, "no handle");
    REFUSE_IF(!wanted || !results || !returned || requested < 1, CUBLAS_STATUS_INVALID_VALUE,
              "cublasLtMatmulAlgoGetHeuristic: NULL, or no place for results");
    Product product;
    REFUSED(describe(lt_matmul(matmul), layouts, &product));
    *returned = 0;
    uint32_t least = *std::min_element(wanted->alignment, wanted->alignment + 4);
    for (auto &offer : offers) {
        size_t bytes = offer.workspace_bytes(product);
        if (*returned == requested || bytes > wanted->workspace_bytes || offer.alignment > least)
            continue;
        cublasLtMatmulHeuristicResult_t result = {};
        LtAlgo algo = {offer.id, offer.alignment, bytes};
        memcpy(result.algo.data, &algo, sizeof algo);
        result.workspaceSize = bytes;
        result.wavesCount = 1;
        results[(*returned)++] = result;
    }
    return *returned ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *chosen,
                              void *workspace, size_t bytes, cudaStream_t stream)
{
    const LtLayout *const layouts[] = {lt_layout(a_layout), lt_layout(b_layout),
                                       lt_layout(c_layout), lt_layout(d_layout)};
    const void *const data[] = {a, b, c, d};
    REFUSE_IF(!handle, CUBLAS_STATUS_NOT_INITIALIZED, "no handle");
    REFUSE_IF(handle->device != current_device(), CUBLAS_STATUS_EXECUTION_FAILED,
              "the handle is of device %d, the thread uses device %d", handle->device,
              current_device());
    REFUSE_IF(!alpha || !beta, CUBLAS_STATUS_INVALID_VALUE, "no alpha or beta");
    Product product;
    REFUSED(describe(lt_matmul(matmul), layouts, &product));
    const LtMatmul &m = *lt_matmul(matmul);
    LtAlgo algo = {offers[2].id, offers[2].alignment,
                   bytes}; /* without a choice: all that is given */
    if (chosen)
        memcpy(&algo, chosen->data, sizeof algo);
    REFUSE_IF(algo.id == 0, CUBLAS_STATUS_INVALID_VALUE, "the algorithm is from no heuristic");
    REFUSE_IF(algo.workspace_bytes > bytes || (algo.workspace_bytes && !workspace) ||
                  !aligned(workspace, 16),
              CUBLAS_STATUS_INVALID_VALUE,
              "a workspace of %zu bytes at %p; needs %llu, aligned to 16", bytes, workspace,
              (unsigned long long)algo.workspace_bytes);
    Factors factors = {number_load(Type::f32, alpha, 0), number_load(Type::f32, beta, 0)};
    REFUSED(check_pointers(m, product, data, factors.beta != 0, algo.alignment));

    Launch launch("cublasLtMatmul", stream);
    launch.in(a, product.a);
    launch.in(b, product.b);
    launch.in(factors.beta != 0 ? c : nullptr, product.c);
    launch.out(d, product.d);
    bool adds = product.epilogue->bias == BiasUse::added, back = product.epilogue->backward;
    const void *bias = product.epilogue->bias == BiasUse::none ? nullptr : m.bias;
    const void *aux = product.epilogue->aux ? m.aux : nullptr;
    adds ? launch.in(bias, product.bias) : launch.out(const_cast<void *>(bias), product.bias);
    back ? launch.in(aux, product.aux) : launch.out(const_cast<void *>(aux), product.aux);
    launch.scratch(workspace, algo.workspace_bytes);
    cudaError_t error = launch.enqueue([=](Memory memory) { multiply(product, factors, memory); });
    return cublas_launched(error);
}
