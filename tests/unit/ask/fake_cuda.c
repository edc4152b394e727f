/* SIMULATED libcuda and libcublas for the tests: GPU memory is host memory, the product is computed on the CPU.
 *
 * What the simulated GPUs do is set by the environment of the process:
 *   FAKE_GPUS=2         how many there are
 *   FAKE_WRONG=1        this GPU flips the lowest bit of one number in every later product
 *   FAKE_WRONG_FIRST=1  this GPU computes the same wrong number every time
 *   FAKE_SLOW=1         this GPU sleeps in every product
 *   FAKE_HANG=1         this GPU never finishes
 *   FAKE_ERROR=1        this GPU's memory cannot be allocated
 *   FAKE_INIT=100       cuInit answers with this code
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_START 12 /* one reference and a batch of eight come before the timed products */

static int device, products;

static int is(const char *name) {
    const char *value = getenv(name);
    return value && atoi(value) == device;
}

static float half(uint16_t bits) {
    float magnitude = ldexpf((float)((bits & 0x3ff) | 0x400), ((bits >> 10) & 0x1f) - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

int cuInit(unsigned flags) { const char *code = getenv("FAKE_INIT"); (void)flags; return code ? atoi(code) : 0; }
int cuDeviceGetCount(int *n) { const char *gpus = getenv("FAKE_GPUS"); *n = gpus ? atoi(gpus) : 1; return 0; }
int cuDeviceGet(int *dev, int index) { *dev = device = index; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int dev) { *context = (void *)(uintptr_t)(dev + 1); return 0; }
int cuCtxSetCurrent(void *context) { return context ? 0 : 201; }
int cuDeviceGetName(char *name, int size, int dev) { (void)dev; snprintf(name, size, "Simulated GPU"); return 0; }
int cuDeviceGetPCIBusId(char *pci, int size, int dev) { snprintf(pci, size, "0000:%02x:00.0", 0x10 + dev); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int dev) { (void)dev; *value = attribute == 16 ? 132 : 0; return 0; }
int cuGetErrorName(int code, const char **name) {
    *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_NO_DEVICE";
    return 0;
}
int cuMemAlloc_v2(uint64_t *pointer, size_t size) {
    if (is("FAKE_ERROR")) return 2;
    *pointer = (uint64_t)(uintptr_t)malloc(size);
    return 0;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) { memcpy((void *)(uintptr_t)to, from, size); return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { memcpy(to, (void *)(uintptr_t)from, size); return 0; }
int cuCtxSynchronize(void) {
    if (is("FAKE_HANG") && products > AT_START) for (;;) pause();
    return 0;
}

int cublasCreate_v2(void **handle) { *handle = &device; return 0; }
int cublasGemmEx(void *handle, int opa, int opb, int m, int n, int k, const float *alpha, uint64_t a, int at, int lda,
                 uint64_t b, int bt, int ldb, const float *beta, uint64_t c, int ct, int ldc, int compute, int algo) {
    const uint16_t *x = (const uint16_t *)(uintptr_t)a, *y = (const uint16_t *)(uintptr_t)b;
    float *z = (float *)(uintptr_t)c;
    (void)handle; (void)beta; (void)algo; (void)opa; (void)opb;
    if (at != 2 || bt != 2 || ct != 0 || compute != 68 || lda != m || ldb != k || ldc != m) return 7;
    for (int column = 0; column < n; column++)
        for (int row = 0; row < m; row++) {
            float sum = 0;
            for (int i = 0; i < k; i++) sum += half(x[i * lda + row]) * half(y[column * ldb + i]);
            z[column * ldc + row] = *alpha * sum;
        }
    products++;
    if (is("FAKE_WRONG_FIRST") || (is("FAKE_WRONG") && products > AT_START)) *(uint32_t *)&z[5] ^= 1;
    usleep(is("FAKE_SLOW") ? 20000 : 1000);
    return 0;
}
int cublasSaxpy_v2(void *handle, int n, const float *alpha, uint64_t x, int incx, uint64_t y, int incy) {
    (void)handle;
    for (int i = 0; i < n; i++) ((float *)(uintptr_t)y)[i * incy] += *alpha * ((float *)(uintptr_t)x)[i * incx];
    return 0;
}
int cublasSasum_v2(void *handle, int n, uint64_t x, int incx, float *sum) {
    (void)handle;
    *sum = 0;
    for (int i = 0; i < n; i++) *sum += fabsf(((float *)(uintptr_t)x)[i * incx]);
    return 0;
}
int cublasIsamax_v2(void *handle, int n, uint64_t x, int incx, int *where) {
    (void)handle;
    *where = 1;
    for (int i = 1; i < n; i++)
        if (fabsf(((float *)(uintptr_t)x)[i * incx]) > fabsf(((float *)(uintptr_t)x)[(*where - 1) * incx])) *where = i + 1;
    return 0;
}
