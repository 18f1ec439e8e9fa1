#include "trainer/models/gelu_kernel.h"

#include <bit>

// One body, compiled for what the processor at hand has. Without contraction to FMA (see
// CMakeLists.txt) all of them give the same bits.
#define TJ_VECTORISED \
  __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))

namespace tj::trainer {
namespace {

constexpr float kTwoRootTwoOverPi = 1.5957691216057308F;
constexpr float kCubic = 0.044715F;

/// e^x within 2e-7 of its value, for x in [-87, 88]: Cody-Waite reduction and the polynomial of
/// Cephes' expf (S. L. Moshier, 1984).
inline float exponential(float x) {
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

inline float gate(float x) {
  return 1.0F / (1.0F + exponential(-kTwoRootTwoOverPi * (x + kCubic * x * x * x)));
}

}  // namespace

TJ_VECTORISED void gelu_tanh(const float* __restrict x, float* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] * gate(x[i]);
}

TJ_VECTORISED void gelu_tanh_backward(const float* __restrict x, const float* __restrict dy,
                                      float* __restrict dx, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float s = gate(x[i]);
    const float slope = kTwoRootTwoOverPi * (1.0F + 3.0F * kCubic * x[i] * x[i]);
    dx[i] = dy[i] * (s + x[i] * s * (1.0F - s) * slope);
  }
}

}  // namespace tj::trainer
