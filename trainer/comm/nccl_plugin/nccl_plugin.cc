// libtrainer_nccl.so: CUDA and NCCL through libtorch's own classes. Linked against none of CUDA's
// libraries: the loader brings libtorch_cuda.so in first, and that one its dependencies.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/jiterator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <torch/csrc/distributed/c10d/NCCLUtils.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "trainer/comm/nccl_plugin/abi.h"
#include "trainer/comm/nccl_plugin/runtime_compiler.h"
#include "trainer/comm/nccl_words.h"
#include "trainer/values/philox_text.h"

namespace tj::trainer {
namespace {

/// As nvidia-smi -L shows it, but for the dashes.
std::string card_of(const cudaDeviceProp& properties) {
  std::string text = "GPU-";
  for (const char byte : properties.uuid.bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(byte) & 0xffU);
    text += digits;
  }
  return text;
}

bool use_device(int index, PluginText* text, PluginText* card) try {
  const int count = c10::cuda::device_count_ensure_non_zero();
  if (index >= count) {
    text->write("CUDA has " + std::to_string(count) + (count == 1 ? " device" : " devices") +
                ", numbered from 0, and this process needs number " + std::to_string(index) +
                ": invalid device ordinal");
    return false;
  }
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  text->write(std::string(properties.name) + ", NCCL " + c10d::getNcclVersion());
  card->write(card_of(properties));
  return true;
} catch (const std::exception& failure) {
  text->write(failure.what());
  return false;
}

/// Never made: it only names a protected member. What it leads to is written by the thread of
/// ProcessGroupNCCL that looks at the events of each collective.
struct NcclStatus : c10d::ProcessGroupNCCL {
  static const c10d::ProcessGroupStatus& of(const c10d::ProcessGroupNCCL& nccl) {
    return *(nccl.*(&NcclStatus::pgStatus_));
  }
};

/// Plain numbers that another thread writes; each is read whole, and either may be a look old.
long long count_of(const std::int64_t& last_sequence) {
  return static_cast<long long>(__atomic_load_n(&last_sequence, __ATOMIC_RELAXED)) + 1;  // none: -1
}

void* open_backend(const NcclGroup* group, PluginText* text) try {
  const auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::milliseconds(group->timeout_ms);
  const auto store =
      c10::intrusive_ptr<c10d::Store>::reclaim_copy(static_cast<c10d::Store*>(group->store));
  auto nccl =
      c10::make_intrusive<c10d::ProcessGroupNCCL>(store, group->rank, group->world_size, options);
  const at::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(group->device));
  nccl->setBoundDeviceId(device);
  nccl->enableCollectivesTiming();  // else it does not notice that one begins
  // Now, rather than in the first step: a network that can't be used is then a failed start.
  nccl->eagerConnectSingleDevice(device);
  return c10::intrusive_ptr<c10d::Backend>(std::move(nccl)).release();
} catch (const std::exception& failure) {
  text->write(nccl_words(failure.what()).cause);
  return nullptr;
}

NcclProgress progress(const void* backend) {
  const auto* const nccl = static_cast<const c10d::Backend*>(backend);
  const auto& status = NcclStatus::of(*static_cast<const c10d::ProcessGroupNCCL*>(nccl));
  const long long ended = count_of(status.lastCompletedSeq);
  return {.begun = std::max(count_of(status.lastStartedSeq), ended), .ended = ended};
}

bool make_words(const WordRequest* request, PluginText* text) try {
  const auto tensor = [](const void* pointer) { return *static_cast<const at::Tensor*>(pointer); };
  const auto made =
      at::cuda::CompileAndLaunchKernel(TJ_TEXT(TJ_PHILOX_WORD), "philox_word", /*num_outputs=*/1,
                                       {tensor(request->elements), tensor(request->samples)},
                                       {at::Scalar(static_cast<std::int64_t>(request->seed)),
                                        at::Scalar(static_cast<std::int64_t>(request->purpose))},
                                       /*return_by_ref=*/false);
  *static_cast<at::Tensor*>(request->words) = made[0];
  return true;
} catch (const std::exception& failure) {
  text->write(failure.what());
  return false;
}

constexpr NcclPlugin kPlugin{.abi = kNcclAbi,
                             .libtorch = TORCH_VERSION,
                             .use_device = use_device,
                             .open_backend = open_backend,
                             .progress = progress,
                             .make_words = make_words,
                             .compile_kernel = compile_kernel,
                             .launch_kernel = launch_kernel};

}  // namespace
}  // namespace tj::trainer

const tj::trainer::NcclPlugin* trainer_nccl_plugin() { return &tj::trainer::kPlugin; }
