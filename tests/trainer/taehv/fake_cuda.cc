// A libcuda.so.1 with two GPUs, as far as FFmpeg can see. It tells which of them was asked for: a
// line of the file that FAKE_CUDA_SAYS names. All else that FFmpeg looks for is there and does
// nothing.
#include <cstdio>
#include <cstdlib>

extern "C" {

constexpr int kDone = 0, kInvalidDevice = 101;  // CUDA_SUCCESS, CUDA_ERROR_INVALID_DEVICE

int cuInit(unsigned) { return kDone; }

int cuDeviceGetCount(int* count) {
  *count = 2;
  return kDone;
}

int cuDeviceGet(int* device, int number) {
  if (const char* const says = std::getenv("FAKE_CUDA_SAYS")) {
    if (std::FILE* const file = std::fopen(says, "a")) {
      std::fprintf(file, "%d\n", number);
      std::fclose(file);
    }
  }
  *device = number;
  return number < 2 ? kDone : kInvalidDevice;
}

// clang-format off
#define NOTHING(name) int name() { return kDone; }
NOTHING(cuArray3DCreate_v2) NOTHING(cuArrayDestroy) NOTHING(cuCtxCreate_v2)
NOTHING(cuCtxDestroy_v2) NOTHING(cuCtxGetDevice) NOTHING(cuCtxPopCurrent_v2)
NOTHING(cuCtxPushCurrent_v2) NOTHING(cuCtxSetLimit) NOTHING(cuDestroyExternalMemory)
NOTHING(cuDestroyExternalSemaphore) NOTHING(cuDeviceComputeCapability)
NOTHING(cuDeviceGetAttribute) NOTHING(cuDeviceGetName) NOTHING(cuDeviceGetUuid)
NOTHING(cuDevicePrimaryCtxGetState) NOTHING(cuDevicePrimaryCtxRelease)
NOTHING(cuDevicePrimaryCtxReset) NOTHING(cuDevicePrimaryCtxRetain)
NOTHING(cuDevicePrimaryCtxSetFlags) NOTHING(cuEGLStreamConsumerDisconnect)
NOTHING(cuEGLStreamProducerConnect) NOTHING(cuEGLStreamProducerDisconnect)
NOTHING(cuEGLStreamProducerPresentFrame) NOTHING(cuEGLStreamProducerReturnFrame)
NOTHING(cuEventCreate) NOTHING(cuEventDestroy_v2) NOTHING(cuEventQuery) NOTHING(cuEventRecord)
NOTHING(cuEventSynchronize) NOTHING(cuExternalMemoryGetMappedBuffer)
NOTHING(cuExternalMemoryGetMappedMipmappedArray) NOTHING(cuGLGetDevices_v2)
NOTHING(cuGetErrorName) NOTHING(cuGetErrorString) NOTHING(cuGraphicsGLRegisterImage)
NOTHING(cuGraphicsMapResources) NOTHING(cuGraphicsResourceGetMappedPointer_v2)
NOTHING(cuGraphicsSubResourceGetMappedArray) NOTHING(cuGraphicsUnmapResources)
NOTHING(cuGraphicsUnregisterResource) NOTHING(cuImportExternalMemory)
NOTHING(cuImportExternalSemaphore) NOTHING(cuLaunchKernel) NOTHING(cuLinkAddData)
NOTHING(cuLinkComplete) NOTHING(cuLinkCreate) NOTHING(cuLinkDestroy) NOTHING(cuMemAllocManaged)
NOTHING(cuMemAllocPitch_v2) NOTHING(cuMemAlloc_v2) NOTHING(cuMemFree_v2) NOTHING(cuMemcpy)
NOTHING(cuMemcpy2DAsync_v2) NOTHING(cuMemcpy2D_v2) NOTHING(cuMemcpyAsync)
NOTHING(cuMemcpyDtoDAsync_v2) NOTHING(cuMemcpyDtoD_v2) NOTHING(cuMemcpyDtoHAsync_v2)
NOTHING(cuMemcpyDtoH_v2) NOTHING(cuMemcpyHtoDAsync_v2) NOTHING(cuMemcpyHtoD_v2)
NOTHING(cuMemsetD8Async) NOTHING(cuMipmappedArrayDestroy) NOTHING(cuMipmappedArrayGetLevel)
NOTHING(cuModuleGetFunction) NOTHING(cuModuleGetGlobal) NOTHING(cuModuleLoadData)
NOTHING(cuModuleUnload) NOTHING(cuSignalExternalSemaphoresAsync) NOTHING(cuStreamAddCallback)
NOTHING(cuStreamCreate) NOTHING(cuStreamDestroy_v2) NOTHING(cuStreamQuery)
NOTHING(cuStreamSynchronize) NOTHING(cuTexObjectCreate) NOTHING(cuTexObjectDestroy)
NOTHING(cuWaitExternalSemaphoresAsync)
#undef NOTHING
// clang-format on
}
