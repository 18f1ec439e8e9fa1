#include "cli/logs/pod_log.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/json.h"
#include "operator/api/read.h"

namespace tj {
namespace {

/// The API server's words for a container whose log is still to come: a 400, as everything that it
/// will never give (pkg/registry/core/pod/strategy.go, LogLocation; pkg/kubelet/kubelet_pods.go).
bool is_to_come(const Error& problem) {
  constexpr std::array kWords = {"waiting to start", "is not available", "does not have a host"};
  return std::any_of(kWords.begin(), kWords.end(), [&](const char* words) {
    return problem.message.find(words) != std::string::npos;
  });
}

bool is_final(const Error& problem) {
  const bool is_refused = problem.code == Code::forbidden || problem.code == Code::invalid;
  return problem.code == Code::not_found || (is_refused && !is_to_come(problem));
}

/// What ends a stream again and again and is nobody's fault: a server's own bound on its length, or
/// a log that says nothing for long.
bool is_expected(const Error& problem) { return problem.code == Code::timeout; }

}  // namespace

PodLog::PodLog(KubeApi& api, Alarm& alarm, PodLogRequest request, PodLogEvents events)
    : api_(api),
      alarm_(alarm),
      request_(std::move(request)),
      events_(std::move(events)),
      slot_("log of " + request_.pod + "/" + request_.container),
      point_(request_.tail_lines.has_value()) {}

PodLog::~PodLog() { alarm_.cancel(slot_); }

void PodLog::resume() {
  if (has_ended_ || !std::exchange(is_paused_, false)) return;
  open();
}

void PodLog::pause() {
  if (std::exchange(is_paused_, true)) return;
  alarm_.cancel(slot_);
  stream_.reset();
  trusts_next_ = false;
  ++stream_number_;
}

WatchRequest PodLog::watch_request() const {
  LogOptions log{.container = request_.container,
                 .follow = request_.follow && !request_.container_has_ended && !is_pod_gone_,
                 .previous = request_.previous,
                 .timestamps = true};
  auto since = point_.since();
  if (!since) log.tail_lines = request_.tail_lines;
  if (request_.since) since = std::max(since.value_or(*request_.since), *request_.since);
  if (since) {
    log.since_time =
        format_time(std::chrono::floor<std::chrono::seconds>(*since));  // it takes whole seconds
  }
  return {.resource = Resource::pods,
          .ns = request_.ns,
          .log = std::move(log),
          .name = request_.pod,
          .timeout = kStreamMax};
}

void PodLog::open() {
  is_waiting_ = false;
  opened_after_end_ = request_.container_has_ended;
  point_.stream_begins();
  is_checked_ = std::exchange(trusts_next_, false) || request_.uid.empty();
  held_lines_.clear();
  held_bytes_ = 0;
  held_end_.reset();
  ++stream_number_;
  stream_ = api_.watch(watch_request(),
                       {.on_line = [this](const std::string& line) { on_line(line); },
                        .on_end = [this](const Result<void>& end) { on_stream_end(end); }});
}

void PodLog::on_line(std::string_view line) {
  if (is_checked_) return deliver(line);
  hold(line);
}

/// The pod is asked for after the stream has said something: if it is the one that was meant then,
/// the stream, which was opened before, is its own.
void PodLog::hold(std::string_view line) {
  if (held_lines_.empty()) ask_whose();
  held_bytes_ += line.size();
  held_lines_.emplace_back(line);
  if (held_bytes_ <= kHeldBytesMax) return;
  stream_.reset();
  trusts_next_ = true;
}

void PodLog::ask_whose() {
  api_.send(
      {.verb = Verb::get, .resource = Resource::pods, .ns = request_.ns, .name = request_.pod},
      [this, alive = std::weak_ptr(alive_),
       number = stream_number_](const Result<std::string>& answer) {
        if (!alive.expired() && number == stream_number_ && !has_ended_) on_pod(answer);
      });
}

void PodLog::on_pod(const Result<std::string>& answer) {
  // Who may read logs and no pods can't be answered; and a pod that has gone was there before.
  const bool cant_tell =
      !answer && (answer.error().code == Code::forbidden || answer.error().code == Code::not_found);
  if (!answer && !cant_tell) {
    trusts_next_ = false;
    stream_.reset();
    return retry(answer.error());
  }
  const bool is_other = answer && meta_from_json(read::parse(*answer)).uid != request_.uid;
  if (is_other) {
    stream_.reset();
    return finish({});
  }
  is_checked_ = true;
  const auto number = stream_number_;
  for (const std::string& line : std::exchange(held_lines_, {})) {
    deliver(line);
    if (number != stream_number_) return;  // paused: the others will come again
  }
  if (trusts_next_) return open_after(std::chrono::milliseconds{0});
  if (const auto end = std::exchange(held_end_, std::nullopt)) after_stream_end(*end);
}

void PodLog::deliver(std::string_view line) {
  const StampedLine stamped = split_stamp(line);
  // What a kubelet says itself ("unable to retrieve container logs for ...") has no time.
  const LogTime time = stamped.time.value_or(point_.newest().value_or(LogTime{}));
  if (stamped.time && !point_.take(time, stamped.text)) return;
  tries_ = 0;
  retry_wait_ = kRetryMin;
  events_.on_line(time, stamped.text);
}

void PodLog::on_stream_end(const Result<void>& end) {
  if (has_ended_ || is_paused_) return;
  if (!is_checked_ && !held_lines_.empty()) {
    held_end_ = end;
    return;
  }
  after_stream_end(end);
}

void PodLog::after_stream_end(const Result<void>& end) {
  if (!end) {
    const bool is_gone = end.error().code == Code::not_found;
    if (is_gone && request_.follow) return finish({});
    // A container that has ended, or never will begin, gets no log any more.
    const bool is_too_late = opened_after_end_ && is_to_come(end.error());
    if (is_final(end.error()) || is_too_late) return finish(end.error());
    return retry(end.error());
  }
  const bool is_all = !request_.follow || opened_after_end_ || is_pod_gone_;
  if (is_all) return finish({});
  // Once more to be sure, at once if the container is known to have ended.
  open_after(request_.container_has_ended ? std::chrono::milliseconds{0} : kRetryMin * 2);
}

void PodLog::retry(const Error& problem) {
  const bool is_given_up = (!request_.follow && ++tries_ >= kTriesMax) || is_pod_gone_;
  if (is_given_up) return finish(is_pod_gone_ ? Result<void>() : problem);
  const bool is_news = !is_expected(problem) && !is_to_come(problem);
  if (is_news) events_.on_problem(problem);
  open_after(std::max(retry_wait_, problem.retry_after.value_or(retry_wait_)));
  retry_wait_ = std::min(retry_wait_ * 2, kRetryMax);
}

void PodLog::open_after(std::chrono::milliseconds wait) {
  is_waiting_ = true;
  alarm_.set_after(slot_, wait, [this] {
    stream_.reset();
    open();
  });
}

void PodLog::container_ended() {
  if (std::exchange(request_.container_has_ended, true) || has_ended_) return;
  // The stream that is open ends by itself; one that waits to be opened waits no longer.
  if (is_waiting_) open_after(std::chrono::milliseconds{0});
}

void PodLog::pod_gone() {
  if (std::exchange(is_pod_gone_, true) || has_ended_) return;
  if (is_waiting_) return finish({});
  alarm_.set_after(slot_, kGoneMax, [this] { finish({}); });
}

void PodLog::finish(Result<void> end) {
  if (std::exchange(has_ended_, true)) return;
  alarm_.cancel(slot_);
  events_.on_end(std::move(end));
}

}  // namespace tj
