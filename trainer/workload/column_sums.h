// Calls of kernels that end in column_sums.inc's write_block_sums(). Includes torch.
#pragma once
#include <torch/types.h>

#include <cstdint>

#include "trainer/workload/kernel_launch.h"

namespace tj::trainer {

/// What its operands are: rows of `width` columns of bfloat16, in parts of `part_width` each.
struct SummedRows {
  at::TensorOptions options;
  std::int64_t rows;
  std::int64_t width;
  std::int64_t part_width;
};

/// float32 [width]: what the kernel summed over all rows. Its arguments are the operands' pointers,
/// the sums of its blocks, rows, the eights of a part, and the rows of a block.
template <typename... Pointers>
at::Tensor column_sums_by(GpuKernels& kernels, const char* text, const char* name,
                          const SummedRows& of, Pointers... operands) {
  constexpr std::int64_t kBlockColumns = 256, kBlockRows = 64, kThreads = 256;
  const auto sums =
      at::empty({blocks_for(of.rows, kBlockRows), of.width}, of.options.dtype(at::kFloat));
  launch(kernels, text, name,
         {.blocks = blocks_for(of.width, kBlockColumns),
          .blocks_y = sums.size(0),
          .threads = kThreads},
         operands..., sums.data_ptr(), static_cast<long long>(of.rows),
         static_cast<long long>(of.part_width / kColumnsOfThread),
         static_cast<long long>(kBlockRows));
  return sums.sum(0);
}

}  // namespace tj::trainer
