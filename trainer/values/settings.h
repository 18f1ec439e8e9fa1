// The start-up table: every value the run uses and where it came from.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace tj::trainer {

struct Setting {
  std::string name;
  std::string value;
  std::string origin;  // "flag", "preset gpt2-nano", "environment NAME", "default", "computed ..."
  bool operator==(const Setting&) const = default;
};

/// Aligned columns under a heading, one line for each setting, with a final newline.
std::string render_settings(std::span<const Setting> settings);

/// 1115394 -> "1,115,394"
std::string grouped(std::int64_t value);
/// Six significant digits, and no more than it takes: 0.1, 6e-05.
std::string number_text(double value);

}  // namespace tj::trainer
