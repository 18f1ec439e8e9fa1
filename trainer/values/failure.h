// How a run of the trainer ends other than well: the exit code, the reason for machines and the
// sentence for people.
#pragma once
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>

#include "contract/outcome.h"
#include "contract/result.h"

namespace tj::trainer {

struct Failure {
  int exit_code = exit_code::kInternal;
  std::string reason = "Internal";  // UpperCamel, as in Outcome
  std::string message;              // the cause, in one sentence
  bool operator==(const Failure&) const = default;
};

/// Thrown out of a collective when another rank went away: a training step has nothing to repair
/// locally.
struct PeerLostError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thrown when the data of a step can't be used, or (`is_lost`) not be read any more, which another
/// attempt may do: this rank ends at once, and the others, which wait for it in a collective, see a
/// lost peer.
struct BadDataError : std::runtime_error {
  explicit BadDataError(const std::string& cause) : std::runtime_error(cause) {}
  explicit BadDataError(const Error& error)
      : std::runtime_error(describe(error)), is_lost(error.code != Code::invalid) {}
  bool is_lost = false;
};

inline Failure bad_data(const BadDataError& bad) {
  return {.exit_code = bad.is_lost ? exit_code::kInputOutput : exit_code::kBadData,
          .reason = bad.is_lost ? "DataLost" : "BadData",
          .message = bad.what()};
}

/// Thrown by std::thread, and by libraries that start one.
inline bool is_refused_thread(const std::exception& thrown) {
  const auto* failure = dynamic_cast<const std::system_error*>(&thrown);
  return failure != nullptr && failure->code() == std::errc::resource_unavailable_try_again;
}

/// What was thrown, in one line: of torch's texts the first is the cause, the rest a stack.
inline std::string cause_of(const std::exception& thrown) {
  const std::string what = thrown.what();
  if (is_refused_thread(thrown))
    return "a thread can't be started: " + what +
           "; its stack has no room (ulimit -v), or no more may run (ulimit -u, pids.max)";
  return what.substr(0, what.find('\n'));
}

/// A flag, a variable or a document of the user's is wrong.
inline Failure bad_config(const Error& error) {
  return {.exit_code = exit_code::kBadConfig, .reason = "BadConfig", .message = describe(error)};
}

/// `error` as one of what a flag names: "--vggt PATH: why", with the path said once.
inline Error of_flag(const std::string& flag, const std::string& path, Error error) {
  const bool is_named = !path.empty() && error.subject.starts_with(path);
  const bool is_name = !error.subject.empty() && path.ends_with("/" + error.subject);
  if (!is_named && !is_name) error.message = describe(error);
  error.subject = flag + " " + (is_named ? error.subject : path);
  return error;
}

/// Of a file that can't be used: a disk that fails, or a file that is cut while it is read
/// (Code::internal, see DataFile), may be read in another attempt.
inline int exit_code_of_file(const Error& error) {
  return error.code == Code::internal ? exit_code::kInputOutput : exit_code::kBadData;
}

/// Weights that a run was to begin with can't be used.
inline Failure bad_init(const std::string& path, const Error& error) {
  return {.exit_code = exit_code_of_file(error),
          .reason = "InitFromNotUsable",
          .message = describe(of_flag("--init-from", path, error))};
}

/// Data that can't be trained on was found before training began.
inline Failure bad_data(const Error& error) {
  return {.exit_code = exit_code_of_file(error), .reason = "BadData", .message = describe(error)};
}

/// Data could not be opened: a flag is to blame (but not one of those that name data), the data, or
/// the disk, which another attempt may read.
inline Failure data_failure(const Error& error) {
  const auto flag = error.subject.substr(0, error.subject.find(' '));
  const bool names_data = flag == "--data" || flag == "--eval-data";
  if (flag.starts_with("--") && !names_data) return bad_config(error);
  const bool is_known = error.code == Code::invalid || error.code == Code::not_found;
  return is_known ? bad_data(error) : bad_data(BadDataError(error));
}

/// This process can't write to --out: it is another attempt's (Code::conflict), which stays so, or,
/// for `reason`, it may go well in another attempt.
inline Failure out_failure(const Error& error, const std::string& reason,
                           const std::string& message) {
  if (error.code == Code::conflict)
    return {.exit_code = exit_code::kBadConfig, .reason = "Superseded", .message = message};
  return {.exit_code = exit_code::kInputOutput, .reason = reason, .message = message};
}

inline Failure peer_lost(const PeerLostError& lost) {
  return {.exit_code = exit_code::kPeerLost, .reason = "PeerLost", .message = lost.what()};
}

}  // namespace tj::trainer
