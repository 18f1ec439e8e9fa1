#include "trainer/data/picture/resized.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tj::trainer {
namespace {

constexpr std::int64_t kChannels = 3;
/// Weights are whole numbers of 2^-22, so that a sum of them and 8 bits fits into 32
/// (Pillow: src/libImaging/Resample.c).
constexpr int kWeightBits = 22;

/// The best of what a CPU has is chosen when the program starts. All is in whole numbers, and so
/// has the same bits on any of them. Clang, which compiles for sanitizers, has the plain loops.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TJ_FOR_ANY_CPU __attribute__((target_clones("avx2", "default")))
#else
#define TJ_FOR_ANY_CPU
#endif

/// What each pixel of a row, or of a column, is made of: `taps` pixels from its first on, by their
/// weights; those that it has fewer have none.
struct Mixes {
  std::int64_t taps = 0;
  std::vector<std::int64_t> first = {};
  std::vector<std::int32_t> weights = {};  // taps of each
};

double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

/// Keys' cubic with a = -1/2, as Pillow has it (bicubic_filter() there).
double cubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * kA : 0.0;
}

struct Kernel {
  double (*value)(double);
  double reach;  // pixels; it is 0 beyond
};
Kernel kernel_of(PictureFilter filter) {
  return filter == PictureFilter::bilinear ? Kernel{triangle, 1.0} : Kernel{cubic, 2.0};
}

/// For each of `out` pixels, of `in` pixels. precompute_coeffs() and normalize_coeffs_8bpc() there.
Mixes mixes(std::int64_t in, std::int64_t out, const Kernel& kernel) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double stretch = std::max(scale, 1.0);
  const double reach = kernel.reach * stretch;
  Mixes all{.taps = std::min(in, 2 * static_cast<std::int64_t>(std::ceil(reach)) + 1)};
  std::vector<double> shares;
  for (std::int64_t pixel = 0; pixel < out; ++pixel) {
    const double center = (static_cast<double>(pixel) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - reach + 0.5));
    const auto end = std::min(in, static_cast<std::int64_t>(center + reach + 0.5));
    shares.clear();
    double sum = 0;
    for (auto from = first; from < end; ++from) {
      shares.push_back(kernel.value((static_cast<double>(from) - center + 0.5) * (1.0 / stretch)));
      sum += shares.back();
    }
    // None reads beyond the picture: the taps begin earlier where it ends.
    all.first.push_back(std::min(first, in - all.taps));
    const auto row = all.weights.size();
    all.weights.resize(row + static_cast<std::size_t>(all.taps));
    const auto skipped = row + static_cast<std::size_t>(first - all.first.back());
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const double share = sum == 0 ? shares[i] : shares[i] / sum;
      all.weights[skipped + i] =
          static_cast<std::int32_t>((share < 0 ? -0.5 : 0.5) + share * (1 << kWeightBits));
    }
  }
  return all;
}

std::byte to_byte(std::int32_t sum) {
  return static_cast<std::byte>(std::clamp(sum >> kWeightBits, 0, 255));
}

/// Red, green, blue and nothing: what a CPU adds in one step.
constexpr std::int64_t kLanes = 4;
using Pixel = std::int32_t __attribute__((vector_size(4 * kLanes)));

/// One row, by the pixels of another, each of which has kLanes numbers.
TJ_FOR_ANY_CPU void mix_row(const std::int32_t* from, const Mixes& columns, std::byte* place) {
  const auto* weight = columns.weights.data();
  for (const auto first : columns.first) {
    Pixel sum = Pixel{} + (1 << (kWeightBits - 1));
    for (std::int64_t tap = 0; tap < columns.taps; ++tap) {
      Pixel pixel;
      std::memcpy(&pixel, from + (first + tap) * kLanes, sizeof pixel);
      sum += pixel * *weight++;
    }
    for (int channel = 0; channel < kChannels; ++channel) *place++ = to_byte(sum[channel]);
  }
}

std::vector<std::byte> with_width(std::span<const std::byte> rgb, PictureSize from,
                                  std::int64_t width, const Kernel& kernel) {
  const auto columns = mixes(from.width, width, kernel);
  std::vector<std::byte> made(static_cast<std::size_t>(from.height * width * kChannels));
  std::vector<std::int32_t> pixels(static_cast<std::size_t>(from.width * kLanes));
  const auto* byte = rgb.data();
  for (std::int64_t row = 0; row < from.height; ++row) {
    for (auto* pixel = pixels.data(); pixel != pixels.data() + pixels.size(); pixel += kLanes)
      for (int channel = 0; channel < kChannels; ++channel)
        pixel[channel] = static_cast<std::int32_t>(*byte++);
    mix_row(pixels.data(), columns, made.data() + row * width * kChannels);
  }
  return made;
}

/// Adds a row, weighted, to sums.
TJ_FOR_ANY_CPU void add_row(std::span<std::int32_t> sums, const std::byte* row,
                            std::int32_t weight) {
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] += weight * static_cast<std::int32_t>(row[i]);
}
TJ_FOR_ANY_CPU void write_row(std::span<const std::int32_t> sums, std::byte* place) {
  for (std::size_t i = 0; i < sums.size(); ++i) place[i] = to_byte(sums[i]);
}

/// A row at a time, as rows lie in memory.
std::vector<std::byte> with_height(std::span<const std::byte> rgb, PictureSize from,
                                   std::int64_t height, const Kernel& kernel) {
  const auto rows = mixes(from.height, height, kernel);
  const auto row_bytes = from.width * kChannels;
  std::vector<std::byte> made(static_cast<std::size_t>(height * row_bytes));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(row_bytes));
  const auto* weight = rows.weights.data();
  for (std::int64_t row = 0; row < height; ++row) {
    std::ranges::fill(sums, 1 << (kWeightBits - 1));
    for (auto tap = rows.first[static_cast<std::size_t>(row)], end = tap + rows.taps; tap < end;
         ++tap, ++weight)
      if (*weight != 0) add_row(sums, rgb.data() + tap * row_bytes, *weight);
    write_row(sums, made.data() + row * row_bytes);
  }
  return made;
}

}  // namespace

std::vector<std::byte> resized(std::span<const std::byte> rgb, PictureSize from, PictureSize to,
                               PictureFilter filter) {
  const auto kernel = kernel_of(filter);
  if (from == to) return {rgb.begin(), rgb.end()};
  if (from.width == to.width) return with_height(rgb, from, to.height, kernel);
  auto made = with_width(rgb, from, to.width, kernel);
  if (from.height == to.height) return made;
  return with_height(made, {.height = from.height, .width = to.width}, to.height, kernel);
}

}  // namespace tj::trainer
