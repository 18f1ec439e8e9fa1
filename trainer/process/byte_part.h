// Bytes that lie in memory or in a file: what they become is written from where they are, without a
// copy of all of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <variant>

#include "contract/result.h"
#include "trainer/process/data_file.h"

namespace tj::trainer {

struct FileRange {
  const DataFile* file = nullptr;  // stays its owner's
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
};

using BytePart = std::variant<std::span<const std::byte>, FileRange>;

std::uint64_t bytes_in(const BytePart& part);

/// Gives `take` the part from front to back, a megabyte of a file at most at once. Fails as
/// DataFile::read(), and as `take`.
Result<void> each_piece(const BytePart& part,
                        const std::function<Result<void>(std::span<const std::byte>)>& take);

}  // namespace tj::trainer
