// An answer in words from a plug-in: plain bytes, so that both sides may be of different builds.
#pragma once
#include <algorithm>
#include <cstring>
#include <string_view>

namespace tj::trainer {

/// With a final zero; cut where it is longer.
struct PluginText {
  char bytes[512] = {};
  /// The first line of `words`: c10's texts go on with a stack.
  void write(std::string_view words) {
    const auto line = words.substr(0, words.find('\n'));
    const auto length = std::min(line.size(), sizeof bytes - 1);
    std::memcpy(bytes, line.data(), length);
    bytes[length] = '\0';
  }
};

}  // namespace tj::trainer
