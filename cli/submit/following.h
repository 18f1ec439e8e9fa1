// A job that is followed to its end, and signals that end the following and not the program.
#pragma once
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/cluster/session.h"
#include "operator/api/types.h"

namespace tj::submit {

/// While it lives, INT, TERM and HUP end nothing: they are put down here.
class Interrupts {
 public:
  explicit Interrupts(boost::asio::io_context& loop);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// The first signal that came.
  std::optional<int> number() const;
  /// What tj exits with because of it: 128 and the signal.
  int exit_code() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// That long, or until a signal comes. Runs the session's loop.
void wait(Session& session, std::chrono::milliseconds time, const Interrupts& interrupts);

struct FollowOptions {
  std::chrono::milliseconds period{1'000};         // between two looks
  int failed_looks_max = 120;                      // in a row
  std::optional<std::chrono::seconds> limit = {};  // of the whole; absent: none
  std::function<void(const std::string& line)> print;
};

/// Prints each change of the job's status and returns the job when it has ended; none after a
/// signal. Fails where the job is deleted, or is another one, or the server stays away, or the job
/// has not ended within the limit.
Result<std::optional<TrainingJob>> follow(Session& session, const ObjectMeta& meta,
                                          const Interrupts& interrupts,
                                          const FollowOptions& options);

}  // namespace tj::submit
