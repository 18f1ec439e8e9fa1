#include "trainer/workloads/qwen_vggt/mrope.h"

#include <algorithm>
#include <string>

namespace tj::trainer {
namespace {

constexpr float kPositionMax = 1e9F;  // of a video's time: what comes behind it still fits

/// Appends positions one by one.
class Positions {
 public:
  explicit Positions(const MropeRule& rule) : rule_(rule) {}

  void add_text() {
    add(made_.next, made_.next, made_.next);
    ++made_.next;
  }

  void add_vision(const VisionInput& input) {
    const auto first = made_.next;
    for (std::int64_t frame = 0; frame < input.grid.frames; ++frame)
      for (std::int64_t row = 0; row < input.grid.rows / rule_.merge_side; ++row)
        for (std::int64_t column = 0; column < input.grid.columns / rule_.merge_side; ++column)
          add(first + time_of(input, frame), first + row, first + column);
    made_.next = largest_ + 1;
  }

  MropePositions take() { return std::move(made_); }

 private:
  /// In float32, as the original multiplies.
  std::int64_t time_of(const VisionInput& input, std::int64_t frame) const {
    if (!input.is_video) return 0;
    const float step = static_cast<float>(rule_.positions_of_second) * input.seconds_of_frame;
    return static_cast<std::int64_t>(std::min(static_cast<float>(frame) * step, kPositionMax));
  }

  void add(std::int64_t time, std::int64_t row, std::int64_t column) {
    made_.axes[0].push_back(time);
    made_.axes[1].push_back(row);
    made_.axes[2].push_back(column);
    largest_ = std::max({largest_, time, row, column});
  }

  const MropeRule& rule_;
  MropePositions made_;
  std::int64_t largest_ = -1;
};

Error mismatch(std::size_t token, const std::string& what) {
  return {.code = Code::invalid, .message = what, .subject = "token " + std::to_string(token)};
}

/// Why the pads from `begin` to `end` are not those of `input`; empty: they are.
std::string flaw_of(std::size_t pads, bool is_video, const VisionInput& input,
                    const MropeRule& rule) {
  const auto merged = rule.merge_side * rule.merge_side;
  const auto wanted = static_cast<std::size_t>(input.grid.patches() / merged);
  if (is_video != input.is_video)
    return is_video ? "pads of a video stand where a picture comes"
                    : "pads of a picture stand where a video comes";
  if (!(input.seconds_of_frame >= 0)) return "a video's frame spans less than no time";
  if (pads == wanted) return "";
  return std::to_string(pads) + " pads for " + std::to_string(wanted) + " tokens of its picture";
}

}  // namespace

Result<MropePositions> mrope_positions(std::span<const std::int32_t> tokens,
                                       std::span<const VisionInput> inputs, const MropeRule& rule) {
  Positions positions(rule);
  std::size_t next_input = 0;
  for (std::size_t at = 0; at < tokens.size();) {
    const auto id = tokens[at];
    const bool is_video = id == rule.ids.video;
    if (!is_video && id != rule.ids.image) {
      positions.add_text();
      ++at;
      continue;
    }
    auto end = at;
    while (end < tokens.size() && tokens[end] == id) ++end;
    if (next_input == inputs.size())
      return mismatch(at, "there are more runs of pads than the " + std::to_string(inputs.size()) +
                              " pictures and videos");
    const auto& input = inputs[next_input++];
    if (const auto flaw = flaw_of(end - at, is_video, input, rule); !flaw.empty())
      return mismatch(at, flaw);
    positions.add_vision(input);
    at = end;
  }
  if (next_input < inputs.size())
    return mismatch(tokens.size(), std::to_string(inputs.size()) + " pictures and videos, but " +
                                       std::to_string(next_input) + " runs of pads");
  return positions.take();
}

}  // namespace tj::trainer
