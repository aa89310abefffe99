/* spectral_norm.c: power_iteration, spectral_norm and its gradient. Every sum is in double and in
 * one order, so that replicas agree. */
#include "engine/backend/cuda/own.h"
#include "engine/backend/cuda/spectral.h"

static struct matrix_launch matrix_of(const struct value *value, const float *at)
{
    int64_t rows = value->shape.dim[0];
    return (struct matrix_launch){at, rows, shape_count(&value->shape) / rows};
}

enum { W, U, V }; /* inputs of power_iteration and spectral_norm */

static int power_iteration_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct matrix_launch w = matrix_of(own->node->in[W], args->in[W]);
    cudaStream_t stream = own->device->compute;
    double *sum = args->scratch;
    int rc = own_launched(launch_column_products(&w, args->in[U], sum, stream), err);
    if (rc == 0)
        rc = own_launched(launch_unit_vector(sum, w.columns, args->in[V], args->out[1], stream),
                          err);
    if (rc == 0)
        rc = own_launched(launch_row_products(&w, args->in[V], false, sum, stream), err);
    return rc ? rc
              : own_launched(launch_unit_vector(sum, w.rows, args->in[U], args->out[0], stream),
                             err);
}

static int spectral_norm_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct matrix_launch w = matrix_of(own->node->in[W], args->in[W]);
    cudaStream_t stream = own->device->compute;
    double *sum = args->scratch;
    int rc = own_launched(launch_row_products(&w, args->in[V], false, sum, stream), err);
    if (rc == 0)
        rc = own_launched(launch_sigma(args->in[U], sum, w.rows, args->out[1], stream), err);
    return rc ? rc
              : own_launched(launch_divide(args->in[W], args->out[1], args->out[0],
                                           w.rows * w.columns, stream),
                             err);
}

enum { GY, GRAD_W, GRAD_U, GRAD_V, SIGMA }; /* inputs of spectral_norm_grad */

static int spectral_norm_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct matrix_launch gy = matrix_of(own->node->in[GY], args->in[GY]);
    cudaStream_t stream = own->device->compute;
    double *sum = args->scratch;
    int rc = own_launched(launch_row_products(&gy, args->in[GRAD_W], true, sum, stream), err);
    return rc ? rc
              : own_launched(launch_spectral_grad(&gy, args->in[GRAD_U], args->in[GRAD_V],
                                                  args->in[SIGMA], sum, args->out[0], stream),
                             err);
}

/* The scratch holds a sum for each row or column. */
static int spectral_query(const struct node *node, const struct layout *const *in,
                          struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    const struct matrix_launch matrix = matrix_of(node->in[0], NULL);
    int64_t larger = matrix.rows > matrix.columns ? matrix.rows : matrix.columns;
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->scratch_bytes = (size_t)larger * sizeof(double);
    return rc;
}

const struct kernel kernel_power_iteration = {"power_iteration", spectral_query, own_create,
                                              power_iteration_run, own_destroy};
const struct kernel kernel_spectral_norm = {"spectral_norm", spectral_query, own_create,
                                            spectral_norm_run, own_destroy};
const struct kernel kernel_spectral_norm_grad = {"spectral_norm_grad", spectral_query, own_create,
                                                 spectral_norm_grad_run, own_destroy};
