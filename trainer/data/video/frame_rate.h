// Frames in a second, as the fraction that containers keep. Pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tj::trainer {

struct FrameRate {
  int numerator = 0;  // 0: not known
  int denominator = 1;
  bool operator==(const FrameRate&) const = default;

  /// From one frame in a thousand seconds to a thousand frames in one.
  bool is_known() const;
};

/// "24", "24000/1001"
std::string to_string(const FrameRate& rate);
/// Of the same two forms; absent for anything else, and for what no video has.
std::optional<FrameRate> frame_rate_from(std::string_view text);

}  // namespace tj::trainer
