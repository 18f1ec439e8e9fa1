// A matrix as the product of two thin ones: the arithmetic of PowerSGD (Vogels, Karimireddy, Jaggi
// 2019, algorithm 1), on one thread and of the same bits on every CPU. Pure, torch-free.
//
// A thin matrix, a factor, lies by its columns: [rank][length]. Shapes: matrix M [rows][columns],
// left P [rank][rows], right Q [rank][columns]; M is about P^T Q.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/comm/reduce_options.h"

namespace tj::trainer {

struct MatrixView {
  float* values = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::span<float> row(std::size_t index) const { return {values + index * columns, columns}; }
};

/// left = M Q
void multiply(const MatrixView& matrix, std::span<const float> right, std::span<float> left);
/// right = M^T P
void multiply_transposed(const MatrixView& matrix, std::span<const float> left,
                         std::span<float> right);

/// Makes the columns of a factor orthonormal, each by those before it. One that has nothing of its
/// own becomes zeros.
void orthonormalise(std::span<float> factor, std::size_t length);
/// As a column without anything would stay so for ever: zeros become random numbers in [-1, 1), of
/// `seed` alone.
void refill(std::span<float> factor, std::size_t length, std::uint64_t seed);

/// error = M - P own; M = P sum
void rebuild(const MatrixView& matrix, std::span<const float> left, std::span<const float> own,
             std::span<const float> sum, std::span<float> error);

}  // namespace tj::trainer
