// A picture as bytes of a PNG file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

/// Rows of pixels; red, green and blue of each.
struct Picture {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::byte> rgb;
  bool operator==(const Picture&) const = default;
};

/// Fails with Code::internal and what libpng says.
Result<std::string> png_of(const Picture& picture);

}  // namespace tj::trainer
