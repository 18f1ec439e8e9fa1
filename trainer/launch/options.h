// The command line of `trainer`: which of its programs is meant, and what it is told. Pure.
#pragma once
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

inline constexpr int kNprocMax = 1024;
inline constexpr std::chrono::seconds kGraceDefault{30};
inline constexpr int kGraceSecondsMax = 86400;

/// How the number of processes on this worker is found.
struct NprocChoice {
  enum class Source {
    environment,    // NPROC_PER_NODE when it is a number, else the devices
    count_devices,  // --nproc auto
    fixed,          // --nproc N
  };
  Source source = Source::environment;
  int count = 0;  // only for Source::fixed
  bool operator==(const NprocChoice&) const = default;
};

struct LaunchOptions {
  NprocChoice nproc;
  std::chrono::seconds grace = kGraceDefault;
  std::vector<std::string> command;  // never empty
  bool operator==(const LaunchOptions&) const = default;
};

struct TrainOptions {
  std::vector<std::string> arguments;  // for trainer-engine, untouched
  bool operator==(const TrainOptions&) const = default;
};

struct ShowText {
  std::string text;  // --help, --version
  bool operator==(const ShowText&) const = default;
};

using CommandLine = std::variant<LaunchOptions, TrainOptions, ShowText>;

/// `arguments` without the program's name. Fails with Code::invalid.
Result<CommandLine> parse_command_line(std::span<const std::string> arguments,
                                       std::string_view version);

}  // namespace tj::trainer
