/* check_same.cc: what needs no device is asked of the simulated and of the real libraries alike:
 * the same statuses, the same answers. Skipped, aloud, where the real libraries are not there. */
#include <cstdio>
#include <cstdlib>
#include <cublasLt.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" {
#include "tests/lib/checks.h"
}

struct Library {
    const char *name; /* of its version node too */
    void *handle;
    std::string answers;
};

static void *symbol(const Library &library, const char *name)
{
    void *address = dlvsym(library.handle, name, library.name);
    if (!address) {
        fprintf(stderr, "check_same: %s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    return address;
}

static int note_answer(Library *l, const char *function, int answer)
{
    l->answers += function + (" " + std::to_string(answer)) + "\n";
    return answer;
}

/* Calls a function of the library and notes what it answers. */
#define ASK(function, ...)                                                                         \
    note_answer(l, #function,                                                                      \
                int(reinterpret_cast<decltype(&function)>(symbol(*l, #function))(__VA_ARGS__)))
#define NOTE(value) (l->answers += "  " #value " " + std::to_string(value) + "\n")

/* The type of a getter's attribute. */
template <typename Object, typename Attribute>
Attribute attribute_of(cublasStatus_t (*)(Object, Attribute, void *, size_t, size_t *));

using Ints = std::vector<int>;

static void note(Library *l, const char *name, const Ints &values)
{
    l->answers += std::string("  ") + name;
    for (int value : values)
        l->answers += " " + std::to_string(value);
    l->answers += "\n";
}

static void tell_tensor(Library *l, cudnnTensorDescriptor_t descriptor)
{
    cudnnDataType_t type;
    Ints v(8);
    size_t bytes = 0;
    ASK(cudnnGetTensor4dDescriptor, descriptor, &type, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
        &v[6], &v[7]);
    ASK(cudnnGetTensorSizeInBytes, descriptor, &bytes);
    NOTE(int(type));
    NOTE(bytes);
    note(l, "dims, strides", v);
}

static void tensors_of_4(Library *l)
{
    static const struct {
        int format, type, n, c, h, w;
    } rows[] = {
        {0, 0, 2, 3, 4, 5},         {1, 0, 2, 3, 4, 5}, {1, 9, 2, 3, 4, 5},  {0, 0, 0, 3, 4, 5},
        {0, 0, 2, -3, 4, 5},        {7, 0, 2, 3, 4, 5}, {0, 77, 2, 3, 4, 5}, {2, 0, 2, 3, 4, 5},
        {0, 0, 70000, 70000, 1, 1}, {0, 4, 1, 1, 1, 1},
    };
    cudnnTensorDescriptor_t t;
    ASK(cudnnCreateTensorDescriptor, nullptr);
    ASK(cudnnCreateTensorDescriptor, &t);
    tell_tensor(l, t);
    for (auto &row : rows) {
        if (ASK(cudnnSetTensor4dDescriptor, t, cudnnTensorFormat_t(row.format),
                cudnnDataType_t(row.type), row.n, row.c, row.h, row.w) == 0)
            tell_tensor(l, t); /* the real library half writes what it refuses */
    }
    for (int stride : {64, 60, 1, 0})
        ASK(cudnnSetTensor4dDescriptorEx, t, CUDNN_DATA_FLOAT, 2, 3, 4, 5, stride, 20, 5, 1);
    ASK(cudnnSetTensor4dDescriptor, nullptr, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 4, 5);
    ASK(cudnnDestroyTensorDescriptor, t);
}

static void tensors_of_any_rank(Library *l)
{
    cudnnTensorDescriptor_t t, derived;
    ASK(cudnnCreateTensorDescriptor, &t);
    ASK(cudnnCreateTensorDescriptor, &derived);
    for (int rank : {0, 1, 2, 3, 4, 8, 9}) {
        Ints dim(size_t(rank), 2), stride(size_t(rank), 1), dims(8), strides(8);
        int found = 0;
        cudnnDataType_t type;
        ASK(cudnnSetTensorNdDescriptor, t, CUDNN_DATA_FLOAT, rank, dim.data(), stride.data());
        if (rank > 2) /* the real library's strides of two are of no meaning */
            ASK(cudnnSetTensorNdDescriptorEx, t, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, rank,
                dim.data());
        ASK(cudnnGetTensorNdDescriptor, t, 8, &type, &found, dims.data(), strides.data());
        NOTE(found);
        note(l, "dims", {dims.begin(), dims.begin() + found});
        note(l, "strides", {strides.begin(), strides.begin() + found});
    }
    ASK(cudnnSetTensor4dDescriptor, t, CUDNN_TENSOR_NHWC, CUDNN_DATA_BFLOAT16, 2, 3, 4, 5);
    for (int mode : {0, 1, 2, 5}) {
        ASK(cudnnDeriveBNTensorDescriptor, derived, t, cudnnBatchNormMode_t(mode));
        tell_tensor(l, derived);
    }
    ASK(cudnnDestroyTensorDescriptor, derived);
    ASK(cudnnDestroyTensorDescriptor, t);
}

static void convolutions(Library *l)
{
    static const int rows[][6] = {{1, 1, 1, 1, 1, 1}, {-1, 1, 1, 1, 1, 1}, {1, 1, 0, 1, 1, 1},
                                  {1, 1, 1, 1, 0, 1}, {1, 1, 2, 2, 1, 1},  {0, 2, 3, 1, 2, 1}};
    cudnnConvolutionDescriptor_t v;
    cudnnFilterDescriptor_t f;
    cudnnTensorDescriptor_t t;
    size_t bytes = 0;
    int groups = 0;
    ASK(cudnnCreateTensorDescriptor, &t);
    ASK(cudnnCreateFilterDescriptor, &f);
    ASK(cudnnCreateConvolutionDescriptor, &v);
    ASK(cudnnSetTensor4dDescriptor, t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 4, 8, 9);
    for (int c : {4, 2, 3}) {
        ASK(cudnnSetFilter4dDescriptor, f, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 6, c, 3, 2);
        ASK(cudnnGetFilterSizeInBytes, f, &bytes);
        NOTE(bytes);
        for (auto &r : rows)
            for (int g : {1, 2, 0}) {
                Ints y(4);
                if (ASK(cudnnSetConvolution2dDescriptor, v, r[0], r[1], r[2], r[3], r[4], r[5],
                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT) != 0)
                    continue; /* the real library now divides by the zero that it refused */
                ASK(cudnnSetConvolutionGroupCount, v, g);
                ASK(cudnnGetConvolutionGroupCount, v, &groups);
                NOTE(groups);
                if (ASK(cudnnGetConvolution2dForwardOutputDim, v, t, f, &y[0], &y[1], &y[2],
                        &y[3]) == 0)
                    note(l, "y", y);
            }
    }
    for (int compute : {0, 1, 2, 3, 9})
        ASK(cudnnSetConvolution2dDescriptor, v, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
            cudnnDataType_t(compute));
    for (int math : {0, 1, 2, 3, 9})
        ASK(cudnnSetConvolutionMathType, v, cudnnMathType_t(math));
    ASK(cudnnDestroyConvolutionDescriptor, v);
    ASK(cudnnDestroyFilterDescriptor, f);
    ASK(cudnnDestroyTensorDescriptor, t);
}

static void windows(Library *l)
{
    static const int rows[][8] = {
        {3, 1, 3, 3, 1, 1, 2, 2}, {3, 1, 0, 3, 1, 1, 2, 2},   {3, 1, 3, 3, 3, 1, 2, 2},
        {3, 1, 3, 3, 1, 1, 0, 2}, {8, 1, 3, 3, 1, 1, 2, 2},   {0, 8, 3, 3, 1, 1, 2, 2},
        {1, 1, 2, 3, 0, 1, 1, 2}, {2, 0, 20, 20, 0, 0, 1, 1},
    };
    cudnnPoolingDescriptor_t p;
    cudnnTensorDescriptor_t t;
    ASK(cudnnCreatePoolingDescriptor, &p);
    ASK(cudnnCreateTensorDescriptor, &t);
    ASK(cudnnSetTensor4dDescriptor, t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 8, 9);
    for (auto &r : rows) {
        Ints y(4);
        if (ASK(cudnnSetPooling2dDescriptor, p, cudnnPoolingMode_t(r[0]),
                cudnnNanPropagation_t(r[1]), r[2], r[3], r[4], r[5], r[6], r[7]) != 0)
            continue;
        if (ASK(cudnnGetPooling2dForwardOutputDim, p, t, &y[0], &y[1], &y[2], &y[3]) == 0)
            note(l, "y", y);
    }
    ASK(cudnnDestroyTensorDescriptor, t);
    ASK(cudnnDestroyPoolingDescriptor, p);
}

static void operations(Library *l)
{
    cudnnActivationDescriptor_t a;
    cudnnOpTensorDescriptor_t o;
    cudnnReduceTensorDescriptor_t r;
    ASK(cudnnCreateActivationDescriptor, &a);
    ASK(cudnnCreateOpTensorDescriptor, &o);
    ASK(cudnnCreateReduceTensorDescriptor, &r);
    for (int kind = 0; kind < 12; kind++) {
        ASK(cudnnSetActivationDescriptor, a, cudnnActivationMode_t(kind), CUDNN_PROPAGATE_NAN, 0.0);
        ASK(cudnnSetOpTensorDescriptor, o, cudnnOpTensorOp_t(kind), CUDNN_DATA_FLOAT,
            CUDNN_PROPAGATE_NAN);
        ASK(cudnnSetReduceTensorDescriptor, r, cudnnReduceTensorOp_t(kind), CUDNN_DATA_FLOAT,
            CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES);
    }
    ASK(cudnnDestroyActivationDescriptor, a);
    ASK(cudnnDestroyOpTensorDescriptor, o);
    ASK(cudnnDestroyReduceTensorDescriptor, r);
}

static void recurrent(Library *l)
{
    static const int rows[][10] = {
        /* algorithm, cell, bias, data type, compute type, inputs, hidden, projected, layers, flags
         */
        {0, 2, 2, 0, 0, 4, 5, 5, 2, 1}, {0, 2, 2, 9, 0, 4, 5, 5, 2, 0},
        {0, 2, 2, 9, 9, 4, 5, 5, 2, 0}, {0, 2, 2, 0, 1, 4, 5, 5, 2, 0},
        {0, 2, 2, 0, 0, 4, 5, 6, 2, 0}, {0, 2, 2, 0, 0, 4, 5, 0, 2, 0},
        {0, 3, 2, 0, 0, 4, 5, 3, 2, 0}, {0, 3, 2, 0, 0, 0, 5, 5, 2, 0},
        {0, 3, 2, 0, 0, 4, 5, 5, 0, 0}, {0, 3, 2, 0, 0, 4, 5, 5, 2, 6},
        {7, 3, 2, 0, 0, 4, 5, 5, 2, 0}, {0, 9, 2, 0, 0, 4, 5, 5, 2, 0},
        {0, 3, 9, 0, 0, 4, 5, 5, 2, 0}, {0, 0, 0, 0, 0, 4, 5, 5, 2, 0},
        {0, 1, 3, 0, 0, 4, 5, 5, 2, 0},
    };
    static const int falling[] = {3, 2, 1}, rising[] = {1, 2, 3}, long_one[] = {4, 2, 1},
                     hole[] = {3, 0, 1};
    cudnnRNNDescriptor_t r;
    cudnnRNNDataDescriptor_t x;
    ASK(cudnnCreateRNNDescriptor, &r);
    ASK(cudnnCreateRNNDataDescriptor, &x);
    for (auto &v : rows)
        ASK(cudnnSetRNNDescriptor_v8, r, cudnnRNNAlgo_t(v[0]), cudnnRNNMode_t(v[1]),
            cudnnRNNBiasMode_t(v[2]), CUDNN_BIDIRECTIONAL, CUDNN_LINEAR_INPUT,
            cudnnDataType_t(v[3]), cudnnDataType_t(v[4]), CUDNN_DEFAULT_MATH, v[5], v[6], v[7],
            v[8], nullptr, uint32_t(v[9]));
    for (int layout : {0, 1, 2, 9})
        for (const int *lengths : {falling, rising, long_one, hole})
            ASK(cudnnSetRNNDataDescriptor, x, CUDNN_DATA_FLOAT, cudnnRNNDataLayout_t(layout), 3, 3,
                4, lengths, nullptr);
    for (int size : {0, 5})
        ASK(cudnnSetRNNDataDescriptor, x, CUDNN_DATA_FLOAT,
            CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, 3, 3, size, falling, nullptr);
    ASK(cudnnSetRNNDataDescriptor, x, CUDNN_DATA_INT8, CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED,
        3, 3, 4, falling, nullptr);
    ASK(cudnnDestroyRNNDataDescriptor, x);
    ASK(cudnnDestroyRNNDescriptor, r);
}

/* Every attribute that the simulation has: its size, its first value, what it is after a wrong
 * size. */
static void attributes(Library *l)
{
    static const int of_layout[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99};
    static const int of_matmul[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 15, 22, 25, 26, 99};
    static const int of_preference[] = {0, 1, 3, 5, 6, 7, 8, 9, 12, 99};
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulDesc_t matmul;
    cublasLtMatmulPreference_t preference;
    ASK(cublasLtMatrixLayoutCreate, &layout, CUDA_R_32F, 3, 4, 2);
    ASK(cublasLtMatmulDescCreate, nullptr, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    ASK(cublasLtMatmulDescCreate, &matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    ASK(cublasLtMatmulPreferenceCreate, &preference);
#define TELL(kind, object, list)                                                                   \
    for (int a : list) {                                                                           \
        size_t bytes = 0;                                                                          \
        unsigned long long value = 0, other = 3;                                                   \
        auto attribute = decltype(attribute_of(cublasLt##kind##GetAttribute))(a);                  \
        ASK(cublasLt##kind##GetAttribute, object, attribute, nullptr, 0, &bytes);                  \
        NOTE(bytes);                                                                               \
        ASK(cublasLt##kind##GetAttribute, object, attribute, &value, bytes, nullptr);              \
        NOTE(value);                                                                               \
        ASK(cublasLt##kind##SetAttribute, object, attribute, &other, bytes + 1);                   \
        ASK(cublasLt##kind##SetAttribute, object, attribute, &other, bytes);                       \
        ASK(cublasLt##kind##GetAttribute, object, attribute, &value, bytes, &bytes);               \
        NOTE(value);                                                                               \
    }
    TELL(MatrixLayout, layout, of_layout)
    TELL(MatmulDesc, matmul, of_matmul)
    TELL(MatmulPreference, preference, of_preference)
#undef TELL
    ASK(cublasLtMatrixLayoutDestroy, layout);
    ASK(cublasLtMatmulDescDestroy, matmul);
    ASK(cublasLtMatmulPreferenceDestroy, preference);
}

static const struct {
    const char *library;
    const char *what;
    void (*ask)(Library *l);
} rows[] = {
    {"libcudnn.so.9", "4-d tensors", tensors_of_4},
    {"libcudnn.so.9", "n-d tensors", tensors_of_any_rank},
    {"libcudnn.so.9", "convolutions", convolutions},
    {"libcudnn.so.9", "windows", windows},
    {"libcudnn.so.9", "operations", operations},
    {"libcudnn.so.9", "recurrent", recurrent},
    {"libcublasLt.so.13", "attributes", attributes},
};

static Library open_library(const std::string &folder, const char *name)
{
    return {name, dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL), ""};
}

static std::string simulated_folder()
{
    const char *build = getenv("TRAIND_TEST_BUILD");
    return std::string(build ? build : ".") + "/tests/cudasim/lib";
}

static std::string real_folder()
{
    return CUDA_HOME "/lib64";
}

START_TEST(same_answers)
{
    auto &row = rows[_i];
    Library simulated = open_library(simulated_folder(), row.library);
    ck_assert_msg(simulated.handle, "%s", dlerror());
    Library real = open_library(real_folder(), row.library);
    ck_assert_msg(real.handle, "%s", dlerror());
    row.ask(&simulated);
    row.ask(&real);
    ck_assert_str_eq(simulated.answers.c_str(), real.answers.c_str());
}
END_TEST

int main()
{
    std::vector<const char *> names;
    bool there = true;
    for (auto &row : rows) {
        names.push_back(row.what);
        there = there && access((real_folder() + "/" + row.library).c_str(), R_OK) == 0;
    }
    if (!there)
        return checks_skip(names.data(), names.size(), "the real libraries are not there");
    Suite *suite = suite_create("same");
    TCase *tcase = checks_case(suite, "same", 60);
    tcase_add_loop_test(tcase, same_answers, 0, int(names.size()));
    return checks_run(suite);
}
