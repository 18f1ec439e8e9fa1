// The log of a node, where one is asked for: all that the launcher says and its processes print, in
// one file, each line after the time. What goes wrong with it later than at the start is said once,
// and costs the training nothing.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "contract/result.h"
#include "trainer/launch/identity.h"
#include "trainer/launch/line_relay.h"

namespace tj::trainer {

/// What the processes print is kept up to so many bytes.
inline constexpr std::uint64_t kNodeLogBytesMax = 1ULL << 30;

/// "train_node1_20260131T123456Z.log"; of a launcher that starts one process of a node alone, with
/// its rank: "train_node1_rank11_20260131T123456Z.log".
std::string node_log_name(const Identity& identity, std::chrono::system_clock::time_point now);

/// Opens `file` for the lines of this whole process, and gives what takes those of the others.
/// Fails with Code::invalid where the folder can't be made, or the file not be written.
Result<LineSink> open_node_log(const std::filesystem::path& file, const std::string& heading,
                               std::uint64_t bytes_max = kNodeLogBytesMax);

/// The same for --node-log; without a folder an empty one, and nothing is opened.
Result<LineSink> node_log_of(const std::string& folder, const Identity& identity);

}  // namespace tj::trainer
