#include "trainer/launch/node_log.h"

#include <ctime>
#include <system_error>
#include <utility>

#include "trainer/launch/env_reader.h"
#include "trainer/launch/supervisor.h"
#include "trainer/process/failed_writes.h"
#include "trainer/process/lines.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

Error not_writable(const std::string& why) {
  return invalid("--node-log", why + "; it must be a folder that this process can write");
}

class Writer {
 public:
  Writer(std::string file, std::uint64_t bytes_max)
      : file_(std::move(file)), bytes_max_(bytes_max) {}

  void take(std::string_view lines) {
    if (is_over_) return;
    if (lines.size() > bytes_max_ - bytes_)
      return end("it has " + std::to_string(bytes_) + " of at most " + std::to_string(bytes_max_) +
                 " bytes");
    bytes_ += lines.size();
    if (const auto written = log_lines(lines); !written) end(describe(written.error()));
  }

 private:
  void end(const std::string& why) {
    is_over_ = true;
    launcher_says("the log of this node, " + file_ +
                  ", holds no more lines of the processes: " + why);
  }

  std::string file_;
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  bool is_over_ = false;
};

}  // namespace

std::string node_log_name(const Identity& identity, std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char time[32];
  std::strftime(time, sizeof time, "%Y%m%dT%H%M%SZ", &parts);
  const std::string rank =
      identity.rank ? "_rank" + std::to_string(identity.rank->value) : std::string();
  return "train_node" + std::to_string(identity.worker_index.value) + rank + "_" + time + ".log";
}

Result<LineSink> open_node_log(const fs::path& file, const std::string& heading,
                               std::uint64_t bytes_max) {
  outlive_file_size_limits();
  const fs::path folder = file.parent_path();
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure)
    return not_writable("is \"" + folder.string() +
                        "\", which can't be made: " + failure.message());
  if (const auto opened = log_lines_to(file, heading); !opened)
    return not_writable("is \"" + folder.string() + "\": " + describe(opened.error()));
  return LineSink([writer = Writer(file.string(), bytes_max)](std::string_view lines) mutable {
    writer.take(lines);
  });
}

Result<LineSink> node_log_of(const std::string& folder, const Identity& identity) {
  if (folder.empty()) return LineSink();
  const auto file = fs::path(folder) / node_log_name(identity, std::chrono::system_clock::now());
  return open_node_log(file, "log of node " + std::to_string(identity.worker_index.value) + " of " +
                                 std::to_string(identity.worker_count.value) + " (" +
                                 identity.node_name.value + ")");
}

}  // namespace tj::trainer
