/* module.c: see module.h. */
#define _GNU_SOURCE
#include "config.h"

#include "engine/backend/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char file_name[] = "engine-cuda.so";

/* Beside the program, which is where it is installed. */
static int find_module(char path[static PATH_MAX], struct err *err)
{
    const char *given = getenv("TRAIND_CUDA_MODULE");
    if (given != NULL) {
        snprintf(path, PATH_MAX, "%s", given);
        return 0;
    }
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof file_name);
    if (n <= 0)
        return err_set(err, ERR_DEVICE_FAILED, "cannot tell where this program lies");
    path[n] = '\0';
    strcpy(strrchr(path, '/') + 1, file_name);
    if (access(path, F_OK) != 0)
        return err_set(err, ERR_DEVICE_FAILED, "this build has no GPU backend (%s)", path);
    return 0;
}

int backend_module_cuda(const struct backend_module **ret_module, struct err *err)
{
    char path[PATH_MAX];
    int rc = find_module(path, err);
    if (rc != 0)
        return rc;
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1); /* as nvidia-smi counts */
    setenv("NCCL_ALGO", "Ring", 0);               /* adds in one order, run after run */
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL)
        return err_set(err, ERR_DEVICE_FAILED, "the GPU backend cannot be loaded: %s", dlerror());
    const struct backend_module *module = dlsym(object, BACKEND_MODULE_SYMBOL);
    if (module == NULL || strcmp(module->version, PACKAGE_VERSION) != 0)
        return err_set(err, ERR_DEVICE_FAILED, "%s is of another build than this program", path);
    *ret_module = module;
    return 0;
}
