// The errors of a row of gradients, such as a bucket: they lie by parameter, the row has one after
// another. Pure, torch-free.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "trainer/comm/reduce/block_codec.h"

namespace tj::trainer {

class ErrorRow {
 public:
  /// Appends the errors of as many elements of the row.
  void append(std::span<float> errors) {
    begins_.push_back(size_);
    pieces_.push_back(errors);
    size_ += errors.size();
  }
  /// Then there are no errors, and nothing below does anything.
  bool is_empty() const { return pieces_.empty(); }

  /// values += the errors of the row from `begin` on
  void add_to_values(std::size_t begin, std::span<float> values) const {
    each(begin, values,
         [](std::span<float> errors, std::span<float> part) { add_to(errors, part); });
  }
  /// the errors = values
  void store(std::size_t begin, std::span<float> values) const {
    each(begin, values, [](std::span<float> errors, std::span<float> part) {
      std::ranges::copy(part, errors.begin());
    });
  }
  /// the errors += values
  void add(std::size_t begin, std::span<float> values) const {
    each(begin, values,
         [](std::span<float> errors, std::span<float> part) { add_to(part, errors); });
  }

 private:
  template <typename Do>
  void each(std::size_t begin, std::span<float> values, Do&& with) const {
    if (is_empty()) return;
    auto piece =
        static_cast<std::size_t>(std::ranges::upper_bound(begins_, begin) - begins_.begin()) - 1;
    while (!values.empty()) {
      const std::size_t inside = begin - begins_[piece];
      const auto count = std::min(values.size(), pieces_[piece].size() - inside);
      with(pieces_[piece].subspan(inside, count), values.first(count));
      values = values.subspan(count);
      begin += count;
      ++piece;
    }
  }

  std::vector<std::size_t> begins_;
  std::vector<std::span<float>> pieces_;
  std::size_t size_ = 0;
};

}  // namespace tj::trainer
