#include "trainer/comm/reduce/low_rank.h"

#include <algorithm>
#include <cmath>

#include "trainer/comm/reduce/vectorised.h"
#include "trainer/values/counter_random.h"

namespace tj::trainer {
namespace {

constexpr std::size_t kLanes = 16;
/// So many dot products or sums share what they load. The order of additions is that of one alone.
constexpr std::size_t kBlock = 4;
/// What is left of a column once those before it are taken off, as a share of it, is rounding only
/// below this.
constexpr double kOwnShareMin = 1e-6;
constexpr float kWordRange = 4'294'967'296.0F;  // of 32 bits

/// Sums in lanes, so that their order is the same whatever the width of the CPU's vectors.
TJ_VECTORISED float dot(const float* left, const float* right, std::size_t count) {
  float lanes[kLanes] = {};
  const std::size_t whole = count / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += left[i + lane] * right[i + lane];
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  for (std::size_t i = whole; i < count; ++i) sum += left[i] * right[i];
  return sum;
}

struct Block {
  const float* vectors[kBlock];
  float factors[kBlock];
};

/// sums[i] = left . block.vectors[i], each as dot() does it.
TJ_VECTORISED void dots(const float* left, const Block& block, std::size_t count, float* sums) {
  float lanes[kBlock][kLanes] = {};
  const std::size_t whole = count / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t k = 0; k < kBlock; ++k)
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        lanes[k][lane] += left[i + lane] * block.vectors[k][i + lane];
  for (std::size_t k = 0; k < kBlock; ++k) {
    float sum = 0;
    for (const float lane : lanes[k]) sum += lane;
    for (std::size_t i = whole; i < count; ++i) sum += left[i] * block.vectors[k][i];
    sums[k] = sum;
  }
}

/// In float64: squares of small gradients would vanish.
TJ_VECTORISED double exact_dot(const float* left, const float* right, std::size_t count) {
  double lanes[kLanes] = {};
  const std::size_t whole = count / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += static_cast<double>(left[i + lane]) * static_cast<double>(right[i + lane]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (std::size_t i = whole; i < count; ++i)
    sum += static_cast<double>(left[i]) * static_cast<double>(right[i]);
  return sum;
}

TJ_VECTORISED void add_multiple(const float* more, float factor, float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] += more[i] * factor;
}

/// values += the sum of block.factors[i] x block.vectors[i], one after another.
TJ_VECTORISED void add_multiples(const Block& block, float* __restrict values, std::size_t count) {
  const float *const a = block.vectors[0], *const b = block.vectors[1], *const c = block.vectors[2],
                     *const d = block.vectors[3];
  const float of_a = block.factors[0], of_b = block.factors[1], of_c = block.factors[2],
              of_d = block.factors[3];
  for (std::size_t i = 0; i < count; ++i)
    values[i] = (((values[i] + a[i] * of_a) + b[i] * of_b) + c[i] * of_c) + d[i] * of_d;
}

TJ_VECTORISED void multiply_all(float* values, double factor, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(static_cast<double>(values[i]) * factor);
}

/// values -= (more . values) more
void take_off(std::span<const float> more, std::span<float> values) {
  const double share = exact_dot(more.data(), values.data(), values.size());
  add_multiple(more.data(), static_cast<float>(-share), values.data(), values.size());
}

double norm(std::span<const float> values) {
  return std::sqrt(exact_dot(values.data(), values.data(), values.size()));
}

}  // namespace

void multiply(const MatrixView& matrix, std::span<const float> right, std::span<float> left) {
  const std::size_t rank = right.size() / matrix.columns;
  const std::size_t whole = rank / kBlock * kBlock;
  const auto column = [&](std::size_t k) { return right.data() + k * matrix.columns; };
  for (std::size_t row = 0; row < matrix.rows; ++row) {
    const float* const values = matrix.row(row).data();
    for (std::size_t k = 0; k < whole; k += kBlock) {
      float sums[kBlock];
      dots(values,
           {.vectors = {column(k), column(k + 1), column(k + 2), column(k + 3)}, .factors = {}},
           matrix.columns, sums);
      for (std::size_t i = 0; i < kBlock; ++i) left[(k + i) * matrix.rows + row] = sums[i];
    }
    for (std::size_t k = whole; k < rank; ++k)
      left[k * matrix.rows + row] = dot(values, column(k), matrix.columns);
  }
}

void multiply_transposed(const MatrixView& matrix, std::span<const float> left,
                         std::span<float> right) {
  const std::size_t rank = left.size() / matrix.rows;
  std::ranges::fill(right, 0.0F);
  const std::size_t whole = matrix.rows / kBlock * kBlock;
  for (std::size_t row = 0; row < whole; row += kBlock)
    for (std::size_t k = 0; k < rank; ++k) {
      const float* const shares = left.data() + k * matrix.rows + row;
      add_multiples({.vectors = {matrix.row(row).data(), matrix.row(row + 1).data(),
                                 matrix.row(row + 2).data(), matrix.row(row + 3).data()},
                     .factors = {shares[0], shares[1], shares[2], shares[3]}},
                    right.data() + k * matrix.columns, matrix.columns);
    }
  for (std::size_t row = whole; row < matrix.rows; ++row)
    for (std::size_t k = 0; k < rank; ++k)
      add_multiple(matrix.row(row).data(), left[k * matrix.rows + row],
                   right.data() + k * matrix.columns, matrix.columns);
}

void orthonormalise(std::span<float> factor, std::size_t length) {
  for (std::size_t begin = 0; begin < factor.size(); begin += length) {
    const auto column = factor.subspan(begin, length);
    const double before = norm(column);
    // Twice is enough (Giraud, Langou, Rozloznik 2005).
    for (int turn = 0; turn < 2; ++turn)
      for (std::size_t other = 0; other < begin; other += length)
        take_off(factor.subspan(other, length), column);
    const double own = norm(column);
    // Also where either is not a number.
    const bool has_own = own > before * kOwnShareMin && std::isfinite(own);
    if (has_own) {
      multiply_all(column.data(), 1 / own, length);
    } else {
      std::ranges::fill(column, 0.0F);
    }
  }
}

void refill(std::span<float> factor, std::size_t length, std::uint64_t seed) {
  const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(seed),
                                         static_cast<std::uint32_t>(seed >> 32)};
  for (std::size_t begin = 0; begin < factor.size(); begin += length) {
    const auto column = factor.subspan(begin, length);
    if (std::ranges::any_of(column, [](float value) { return value != 0; })) continue;
    for (std::size_t i = 0; i < length; ++i) {
      const auto words = philox4x32(
          {static_cast<std::uint32_t>(i / 4), static_cast<std::uint32_t>(begin / length), 0, 0},
          key);
      column[i] = static_cast<float>(words[i % 4]) / kWordRange * 2 - 1;
    }
  }
}

void rebuild(const MatrixView& matrix, std::span<const float> left, std::span<const float> own,
             std::span<const float> sum, std::span<float> error) {
  const std::size_t rank = left.size() / matrix.rows;
  const std::size_t columns = matrix.columns;
  const std::size_t whole = rank / kBlock * kBlock;
  for (std::size_t row = 0; row < matrix.rows; ++row) {
    const auto values = matrix.row(row);
    const auto lacking = error.subspan(row * columns, columns);
    std::ranges::copy(values, lacking.begin());
    std::ranges::fill(values, 0.0F);
    const auto share = [&](std::size_t k) { return left[k * matrix.rows + row]; };
    const auto add_block = [&](std::span<const float> factor, std::size_t k, float sign,
                               float* to) {
      const float* const first = factor.data() + k * columns;
      add_multiples({.vectors = {first, first + columns, first + 2 * columns, first + 3 * columns},
                     .factors = {sign * share(k), sign * share(k + 1), sign * share(k + 2),
                                 sign * share(k + 3)}},
                    to, columns);
    };
    for (std::size_t k = 0; k < whole; k += kBlock) {
      add_block(own, k, -1, lacking.data());
      add_block(sum, k, 1, values.data());
    }
    for (std::size_t k = whole; k < rank; ++k) {
      add_multiple(own.data() + k * columns, -share(k), lacking.data(), columns);
      add_multiple(sum.data() + k * columns, share(k), values.data(), columns);
    }
  }
}

}  // namespace tj::trainer
