// How long a Matroska file says that it is, WebM too. Each piece of one can be read alone, so that
// a reader doesn't miss what was cut off behind them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace tj::trainer {

/// In bytes from its begin. Absent where it says none (a live stream), or where it is no such file.
std::optional<std::int64_t> matroska_bytes(const std::string& path);

}  // namespace tj::trainer
