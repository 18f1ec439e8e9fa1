#include "operator/loop/event_outbox.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "operator/loop/log_text.h"

namespace tj {

void EventOutbox::add(const ObjectKey& job, std::string body) {
  if (waiting_.size() >= kWaitingMax) {
    spdlog::warn("job={} msg=\"event dropped\" error=\"{} events wait already\"", to_string(job),
                 kWaitingMax);
    return;
  }
  waiting_.push_back({job, std::move(body)});
  if (waiting_.size() == 1) send_first();
}

void EventOutbox::send_first() {
  Letter& letter = waiting_.front();
  ++letter.tries;
  Request request{
      .verb = Verb::create, .resource = Resource::events, .ns = letter.job.ns, .body = letter.body};
  api_.send(std::move(request), [this](const Result<std::string>& answer) { answered(answer); });
}

void EventOutbox::answered(const Result<std::string>& answer) {
  const Letter& letter = waiting_.front();
  const bool is_delivered = answer || answer.error().code == Code::conflict;
  if (!is_delivered) {
    const Code code = answer.error().code;
    const bool may_pass = code == Code::unavailable || code == Code::timeout;
    if (may_pass && letter.tries < kTriesMax) {
      const auto wished = answer.error().retry_after.value_or(kRetryWait);
      const auto wait = std::clamp(wished, kRetryWait * (1 << letter.tries) / 2, kRetryWaitMax);
      alarm_.set_after("events", wait, [this] { send_first(); });
      return;
    }
    spdlog::warn("job={} msg=\"event dropped\" error={}", to_string(letter.job),
                 log_value(describe(answer.error())));
  }
  waiting_.pop_front();
  if (!waiting_.empty()) send_first();
}

}  // namespace tj
