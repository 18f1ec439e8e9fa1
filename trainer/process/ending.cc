#include "trainer/process/ending.h"

#include <unistd.h>

#include "trainer/process/deadline_guard.h"
#include "trainer/process/last_words.h"
#include "trainer/process/lines.h"

namespace tj::trainer {

[[noreturn]] void end_process(int code, const std::function<void()>& last_things) {
  const DeadlineGuard guard(std::chrono::steady_clock::now() + kEndMax, [code] { ::_exit(code); });
  last_things();
  ::_exit(code);
}

int end_with(const Failure& failure, const ProcessEnv& env, std::optional<long long> step,
             const std::optional<SavedStep>& last_checkpoint) {
  const DeadlineGuard guard(std::chrono::steady_clock::now() + kEndMax,
                            [&failure] { ::_exit(failure.exit_code); });
  const std::string rank = "rank " + std::to_string(env.rank);
  const bool is_named = env.world_size == 1 || failure.message.starts_with(rank + " ") ||
                        failure.message.starts_with(rank + ":");
  write_last_words({.reason = failure.reason,
                    .message = failure.message,
                    .rank = env.rank,
                    .step = step,
                    .attempt = env.attempt,
                    .last_checkpoint = last_checkpoint});
  say_error("trainer: " + (is_named ? "" : rank + ": ") + failure.message);
  return failure.exit_code;
}

}  // namespace tj::trainer
