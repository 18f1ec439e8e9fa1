#include "operator/loop/node_watch.h"

#include <spdlog/spdlog.h>

#include "operator/loop/log_text.h"

namespace tj {
namespace {
constexpr const char* kSlot = "node watch";
}  // namespace

void NodeWatch::set_needed(bool is_needed) {
  if (is_needed == is_needed_) return;
  is_needed_ = is_needed;
  if (refused_until_) return;  // the alarm is set for the next try
  if (!is_needed) return alarm_.set_after(kSlot, kLinger, [this] { end(); });
  // In a later turn, or at once if it still runs: then this takes back its end.
  alarm_.set(kSlot, alarm_.now(), [this] { start(); });
}

void NodeWatch::stop() {
  alarm_.cancel(kSlot);
  if (driver_ != nullptr) driver_->stop();
}

void NodeWatch::start() {
  refused_until_.reset();
  if (driver_ != nullptr || !is_needed_) return;
  WatchEvents events{.on_delta = events_.on_delta,
                     .on_relist = events_.on_relist,
                     .on_problem = [this](const auto& problem) { on_problem(problem); }};
  driver_ = std::make_unique<WatchDriver>(api_, alarm_, WatchTarget{Resource::nodes, "", ""},
                                          std::move(events));
  driver_->start();
}

void NodeWatch::end() {
  if (driver_ == nullptr) return;
  driver_->stop();
  driver_.reset();
  events_.on_end();
}

void NodeWatch::on_problem(const std::optional<Error>& problem) {
  // Any other trouble is the API server's, and the other watches tell of it.
  const bool is_refused =
      problem && (problem->code == Code::forbidden || problem->code == Code::not_found);
  if (!is_refused || refused_until_) return;
  refused_until_ = alarm_.now() + kRefusedRetry;
  if (!std::exchange(refusal_is_logged_, true)) {
    spdlog::warn("msg=\"nodes can't be watched: dead ones will not be noticed\" error={}",
                 log_value(describe(*problem)));
  }
  // Not from inside the driver's own call.
  alarm_.set(kSlot, alarm_.now(), [this] {
    end();
    alarm_.set(kSlot, *refused_until_, [this] { start(); });
  });
}

}  // namespace tj
