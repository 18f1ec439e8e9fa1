#include "trainer/train/plugin_kernels.h"

#include <torch/types.h>

#include <map>
#include <mutex>
#include <string>

#include "trainer/process/lines.h"
#include "trainer/workload/draws.h"
#include "trainer/workload/gpu_kernel.h"

namespace tj::trainer {
namespace {

class PluginKernels final : public GpuKernels {
 public:
  explicit PluginKernels(const NcclPlugin& plugin) : plugin_(plugin) {}

  const void* prepare(const char* text, const char* name) override {
    const std::scoped_lock lock(mutex_);
    const auto [known, is_new] = kernels_.try_emplace(name, nullptr);
    if (!is_new) return known->second;
    PluginText why;
    known->second = plugin_.compile_kernel(text, name, &why);
    if (known->second == nullptr)
      say_error(std::string("without the kernel ") + name + ", which is slower: " + why.bytes);
    return known->second;
  }

  void launch(const void* kernel, const KernelShape& shape, std::span<void*> arguments) override {
    const KernelLaunch request{.kernel = kernel,
                               .blocks = shape.blocks,
                               .blocks_y = shape.blocks_y,
                               .threads = shape.threads,
                               .arguments = arguments.data()};
    PluginText why;
    TORCH_CHECK(plugin_.launch_kernel(&request, &why), why.bytes);
  }

 private:
  const NcclPlugin& plugin_;
  std::mutex mutex_;  // guards the one below
  std::map<std::string, const void*> kernels_;
};

at::Tensor words_of(const NcclPlugin& plugin, const Draw& draw, const at::Tensor& elements,
                    const at::Tensor& samples) {
  at::Tensor words;
  const WordRequest request{.elements = &elements,
                            .samples = &samples,
                            .seed = static_cast<long long>(draw.seed),
                            .purpose = draw.purpose,
                            .words = &words};
  PluginText why;
  if (!plugin.make_words(&request, &why))
    say_error(std::string("random numbers are drawn slowly: ") + why.bytes);
  return words;
}

}  // namespace

void use_kernels_of(const Accelerator& accelerator) {
  if (!accelerator.gpu()) return;
  const auto& plugin = *accelerator.plugin;
  static PluginKernels kernels(plugin);
  use_gpu_kernels(&kernels);
  use_word_kernel(
      [&plugin](const Draw& draw, const at::Tensor& elements, const at::Tensor& samples) {
        return words_of(plugin, draw, elements, samples);
      });
}

}  // namespace tj::trainer
