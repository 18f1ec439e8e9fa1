#include "operator/loop/event_outbox.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "operator/loop/log_text.h"

namespace tj {

void EventOutbox::add(const ObjectKey& job, std::string body) {
  auto& pending = pending_[job.ns];
  if (pending.size() >= kWaitingMax) {
    spdlog::warn("job={} msg=\"event dropped\" error=\"{} events wait already\"", to_string(job),
                 kWaitingMax);
    return;
  }
  pending.push_back({job, std::move(body)});
  if (pending.size() == 1) send_first(job.ns);
}

void EventOutbox::send_first(const std::string& ns) {
  PendingEvent& event = pending_.at(ns).front();
  ++event.tries;
  Request request{.verb = Verb::create, .resource = Resource::events, .ns = ns, .body = event.body};
  api_.send(std::move(request),
            [this, ns](const Result<std::string>& answer) { answered(ns, answer); });
}

void EventOutbox::answered(const std::string& ns, const Result<std::string>& answer) {
  const auto pending = pending_.find(ns);
  const PendingEvent& event = pending->second.front();
  const bool is_delivered = answer || answer.error().code == Code::conflict;
  if (!is_delivered) {
    const Code code = answer.error().code;
    const bool may_pass = code == Code::unavailable || code == Code::timeout;
    if (may_pass && event.tries < kTriesMax) {
      const auto wished = answer.error().retry_after.value_or(kRetryWait);
      const auto wait = std::clamp(wished, kRetryWait * (1 << event.tries) / 2, kRetryWaitMax);
      alarm_.set_after("events of " + ns, wait, [this, ns] { send_first(ns); });
      return;
    }
    spdlog::warn("job={} msg=\"event dropped\" error={}", to_string(event.job),
                 log_value(describe(answer.error())));
  }
  pending->second.pop_front();
  if (!pending->second.empty()) return send_first(ns);
  pending_.erase(pending);
}

}  // namespace tj
