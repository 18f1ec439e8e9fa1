#include "operator/loop/watch_driver.h"

#include <type_traits>

namespace tj {
namespace {

/// An orderly end of a stream is no problem, and neither is a version that is too old: both are
/// the normal life of a watch.
std::optional<Error> problem_of(const Result<void>& end) {
  if (end || end.error().code == Code::gone) return std::nullopt;
  return end.error();
}

}  // namespace

WatchDriver::WatchDriver(KubeApi& api, Alarm& alarm, WatchTarget target, WatchEvents events)
    : api_(api),
      alarm_(alarm),
      target_(std::move(target)),
      events_(std::move(events)),
      watcher_(static_cast<unsigned>(target_.resource) + 1) {}

void WatchDriver::start() { take(watcher_.start()); }

void WatchDriver::stop() {
  ++turn_;
  stream_.reset();
  retired_.clear();
  alarm_.cancel(slot("wait"));
  alarm_.cancel(slot("quiet"));
}

void WatchDriver::distrust() {
  if (stream_ == nullptr) return;  // it is about to list or to connect anyway
  stream_ended(
      Error{Code::gone, "the cache is behind the server", to_string(target_.resource), {}});
}

void WatchDriver::take(const WatchStep& step) {
  if (!step.relist_reason.empty()) events_.on_relist(step.relist_reason);
  for (const WatchDelta& delta : step.deltas) events_.on_delta(delta);
  if (step.command) carry_out(*step.command);
}

void WatchDriver::carry_out(const WatchCommand& command) {
  ++turn_;
  if (const auto* next = std::get_if<StartList>(&command)) list(next->continue_token);
  if (const auto* next = std::get_if<StartWatch>(&command)) watch(next->resource_version);
  if (const auto* next = std::get_if<WaitThenStep>(&command)) wait(next->delay);
}

/// Not destroyed at once: it may be the one whose callback we are in.
void WatchDriver::retire_stream() {
  alarm_.cancel(slot("quiet"));
  if (stream_ == nullptr) return;
  retired_.push_back(std::move(stream_));
  alarm_.later([this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) retired_.clear();
  });
}

std::function<bool()> WatchDriver::is_current() const {
  return [this, alive = std::weak_ptr(alive_), turn = turn_] {
    return !alive.expired() && turn == turn_;
  };
}

void WatchDriver::list(const std::string& continue_token) {
  Request request{.verb = Verb::list,
                  .resource = target_.resource,
                  .ns = target_.ns,
                  .label_selector = target_.label_selector,
                  .continue_token = continue_token};
  retire_stream();
  api_.send(std::move(request), [this, is_current = is_current()](Result<std::string> page) {
    if (!is_current()) return;
    events_.on_problem(page ? std::nullopt : std::optional(page.error()));
    take(watcher_.on_list(page));
  });
}

void WatchDriver::watch(const std::string& resource_version) {
  WatchRequest request{.resource = target_.resource,
                       .ns = target_.ns,
                       .label_selector = target_.label_selector,
                       .resource_version = resource_version};
  WatchHandler handler{.on_line =
                           [this, is_current = is_current()](const std::string& line) {
                             if (is_current()) take(watcher_.on_line(line));
                           },
                       .on_end =
                           [this, is_current = is_current()](const Result<void>& end) {
                             if (is_current()) stream_ended(end);
                           }};
  retire_stream();
  stream_ = api_.watch(std::move(request), std::move(handler));
  alarm_.set_after(slot("quiet"), kQuietIsFine, [this] { events_.on_problem(std::nullopt); });
}

void WatchDriver::stream_ended(const Result<void>& end) {
  ++turn_;
  retire_stream();
  if (const auto problem = problem_of(end)) events_.on_problem(problem);
  take(watcher_.on_watch_end(end));
}

void WatchDriver::wait(std::chrono::milliseconds delay) {
  retire_stream();
  alarm_.set_after(slot("wait"), delay, [this] { take(watcher_.on_waited()); });
}

std::string WatchDriver::slot(const char* purpose) const {
  return std::string(purpose) + " " + to_string(target_.resource);
}

}  // namespace tj
