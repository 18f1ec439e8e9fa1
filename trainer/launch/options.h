// The command line of `trainer`: which of its programs is meant, and what it is told. Pure.
#pragma once
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "contract/result.h"
#include "trainer/launch/identity.h"

namespace tj::trainer {

inline constexpr std::chrono::seconds kGraceDefault{30};
/// After the others' limit of silence, so that they say that it is frozen, and not that it is gone.
inline constexpr std::chrono::seconds kFrozenDefault{9};
inline constexpr int kGraceSecondsMax = 86400;
inline constexpr int kRestartsMax = 1000;
inline constexpr std::chrono::seconds kCheckWaitDefault{60};

struct LaunchOptions {
  IdentityOptions identity;
  std::chrono::seconds grace = kGraceDefault;
  std::chrono::seconds frozen =
      kFrozenDefault;                // a process may be stopped by a signal; 0: for ever
  int max_restarts = 0;              // in place, of all processes of this worker
  std::string node_log;              // folder of a log of all that this worker prints; empty: none
  std::vector<std::string> command;  // never empty
  bool operator==(const LaunchOptions&) const = default;
};

/// Tells what `launch` would find out.
struct EnvOptions {
  IdentityOptions identity;
  bool explain = false;  // as a table with origins, else as variables
  bool operator==(const EnvOptions&) const = default;
};

/// Looks whether a training could begin.
struct CheckOptions {
  IdentityOptions identity;
  std::string model;  // as for trainer train; may be empty, as all that follows
  std::vector<std::string> data;
  std::string out;
  std::string init_from;
  /// Flags of trainer train that say what a rank holds in memory, and the model's own after "--".
  std::vector<std::string> training;
  std::chrono::seconds rendezvous_timeout = kCheckWaitDefault;
  bool json = false;
  bool operator==(const CheckOptions&) const = default;
};

struct EngineOptions {
  std::string command;                 // of engine_commands.h
  std::vector<std::string> arguments;  // for trainer-engine, untouched
  bool operator==(const EngineOptions&) const = default;
};

struct PrepareArguments {
  std::vector<std::string> arguments;  // for run_prepare(), untouched
  bool operator==(const PrepareArguments&) const = default;
};

struct ExportArguments {
  std::vector<std::string> arguments;  // for run_export(), untouched
  bool operator==(const ExportArguments&) const = default;
};

struct ShowText {
  std::string text;  // --help, --version
  bool operator==(const ShowText&) const = default;
};

using CommandLine = std::variant<LaunchOptions, EnvOptions, CheckOptions, PrepareArguments,
                                 ExportArguments, EngineOptions, ShowText>;

/// `arguments` without the program's name. Fails with Code::invalid.
Result<CommandLine> parse_command_line(std::span<const std::string> arguments,
                                       std::string_view version);

}  // namespace tj::trainer
