#include "trainer/workloads/gpt2/gelu_kernel.h"

#include <bit>

// The bodies are inlined into one function for each set of instructions. Without contraction to FMA
// (see CMakeLists.txt) all of them give the same bits.
#define TJ_INLINE [[gnu::always_inline]] inline
#define TJ_AVX2 __attribute__((target("avx2")))

namespace tj::trainer {
namespace {

constexpr float kTwoRootTwoOverPi = 1.5957691216057308F;
constexpr float kCubic = 0.044715F;

/// e^x within 2e-7 of its value, for x in [-87, 88]: Cody-Waite reduction and the polynomial of
/// Cephes' expf (S. L. Moshier, 1984).
TJ_INLINE float exponential(float x) {
  const float bounded_below = x > -87.0F ? x : -87.0F;  // NaN too: the caller's factor carries it
  const float v = bounded_below < 88.0F ? bounded_below : 88.0F;
  const float n = __builtin_rintf(v * 1.44269504088896341F);
  const float r = (v - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  constexpr int kExponentBias = 127;
  constexpr int kMantissaBits = 23;
  return p * std::bit_cast<float>((static_cast<std::int32_t>(n) + kExponentBias) << kMantissaBits);
}

TJ_INLINE float gate(float x) {
  return 1.0F / (1.0F + exponential(-kTwoRootTwoOverPi * (x + kCubic * x * x * x)));
}

TJ_INLINE void forward(const float* __restrict x, float* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] * gate(x[i]);
}

TJ_INLINE void backward(const float* __restrict x, const float* __restrict dy, float* __restrict dx,
                        std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float s = gate(x[i]);
    const float slope = kTwoRootTwoOverPi * (1.0F + 3.0F * kCubic * x[i] * x[i]);
    dx[i] = dy[i] * (s + x[i] * s * (1.0F - s) * slope);
  }
}

TJ_AVX2 void forward_avx2(const float* x, float* y, std::int64_t count) { forward(x, y, count); }
TJ_AVX2 void backward_avx2(const float* x, const float* dy, float* dx, std::int64_t count) {
  backward(x, dy, dx, count);
}

const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;

}  // namespace

void gelu_tanh(const float* x, float* y, std::int64_t count) {
  has_avx2 ? forward_avx2(x, y, count) : forward(x, y, count);
}

void gelu_tanh_backward(const float* x, const float* dy, float* dx, std::int64_t count) {
  has_avx2 ? backward_avx2(x, dy, dx, count) : backward(x, dy, dx, count);
}

}  // namespace tj::trainer
