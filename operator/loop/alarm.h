// All waiting of the loop, on one timer: a few named slots, each with a time and what to do then.
// Setting a slot again replaces it, so that the number of waits is bounded by the slots.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "operator/loop/work_queue.h"

namespace tj {

class Alarm {
 public:
  using Now = std::function<SteadyTime()>;

  /// `now` may be turned by hand; then `wake` must be called after each turn.
  Alarm(boost::asio::io_context& loop, Now now) : now_(std::move(now)), timer_(loop) {}

  void set(const std::string& slot, SteadyTime at, std::function<void()> action);
  void set_after(const std::string& slot, std::chrono::milliseconds delay,
                 std::function<void()> action) {
    set(slot, now_() + delay, std::move(action));
  }
  void cancel(const std::string& slot);
  void cancel_all();
  /// Runs `action` in a later turn of the loop, not from inside this call.
  void later(std::function<void()> action);
  /// Runs whatever is due.
  void wake();
  std::optional<SteadyTime> next() const;
  SteadyTime now() const { return now_(); }

 private:
  struct Entry {
    SteadyTime at;
    std::function<void()> action;
  };
  void arm();

  Now now_;
  boost::asio::steady_timer timer_;
  std::map<std::string, Entry> entries_;
  // A handler that asio has queued already outlives a cancelled timer.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace tj
