/* step.cu: the numbers of a step come to the device as a kernel's argument, which the launch
 * copies: no pinned memory has to outlive it. */
#include "engine/backend/cuda/real.cuh"

namespace engine
{

__global__ void set_step(device_step *step, device_step value)
{
    *step = value;
}

} // namespace engine

cudaError_t launch_set_step(struct device_step *step, const struct device_step *value,
                            cudaStream_t stream)
{
    LAUNCH(engine::set_step, 1, 1, 0, stream, step, *value);
    return cudaGetLastError();
}
