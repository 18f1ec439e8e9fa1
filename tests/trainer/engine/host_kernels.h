// A GPU in small, for kernels that are given as text: it computes them on the CPU, block by block,
// with a thread for each of the GPU's. A test includes their files inside host_gpu.
#pragma once
#include <array>
#include <barrier>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/workload/kernel_launch.h"

#define __device__
#define __global__
#define __launch_bounds__(threads)
#define __shared__ static  // blocks come one after another

namespace tj::trainer::host_gpu {

struct uint4 {
  unsigned int x, y, z, w;
};

struct Place {
  unsigned int x = 0;
  unsigned int y = 0;
};
inline thread_local Place blockIdx, threadIdx, blockDim;

struct Warp {
  std::array<float, kWarp> values{};
  std::barrier<> meeting{kWarp};
};
inline thread_local Warp* own_warp = nullptr;
inline thread_local std::barrier<>* own_block = nullptr;

/// All threads of the warp call it.
inline float __shfl_xor_sync(unsigned int, float value, int distance) {
  const auto lane = threadIdx.x % kWarp;
  own_warp->values[lane] = value;
  own_warp->meeting.arrive_and_wait();
  const float other = own_warp->values[lane ^ static_cast<unsigned int>(distance)];
  own_warp->meeting.arrive_and_wait();
  return other;
}
/// All threads of the block call it.
inline void __syncthreads() { own_block->arrive_and_wait(); }
inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __uint_as_float(unsigned int bits) { return std::bit_cast<float>(bits); }
inline unsigned int __float_as_uint(float value) { return std::bit_cast<unsigned int>(value); }

using Call = std::function<void(std::span<void*>)>;

template <typename... Arguments>
Call call_of(void (*kernel)(Arguments...)) {
  return [kernel](std::span<void*> arguments) {
    [&]<std::size_t... index>(std::index_sequence<index...>) {
      kernel(*static_cast<std::remove_cvref_t<Arguments>*>(arguments[index])...);
    }
    (std::index_sequence_for<Arguments...>());
  };
}

class HostKernels final : public GpuKernels {
 public:
  explicit HostKernels(std::map<std::string, Call> calls) : calls_(std::move(calls)) {}

  const void* prepare(const char*, const char* name) override {
    const auto found = calls_.find(name);
    return found == calls_.end() ? nullptr : &found->second;
  }

  void launch(const void* kernel, const KernelShape& shape, std::span<void*> arguments) override {
    for (std::int64_t y = 0; y < shape.blocks_y; ++y)
      for (std::int64_t x = 0; x < shape.blocks; ++x)
        compute({static_cast<unsigned>(x), static_cast<unsigned>(y)},
                static_cast<unsigned>(shape.threads), *static_cast<const Call*>(kernel), arguments);
  }

 private:
  static void compute(Place block, unsigned threads, const Call& call, std::span<void*> arguments) {
    std::vector<std::unique_ptr<Warp>> warps;
    for (std::int64_t i = 0; i < threads; i += kWarp) warps.push_back(std::make_unique<Warp>());
    std::barrier<> all(threads);
    std::vector<std::jthread> team;
    for (unsigned i = 0; i < threads; ++i) {
      team.emplace_back([&, i] {
        blockIdx = block;
        blockDim = {threads, 1};
        threadIdx = {i, 0};
        own_warp = warps[i / kWarp].get();
        own_block = &all;
        call(arguments);
      });
    }
  }

  std::map<std::string, Call> calls_;
};

}  // namespace tj::trainer::host_gpu
