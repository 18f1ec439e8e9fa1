// The log of a worker's pod through the API server: read as `tj logs` reads it (logs/pod_log.h),
// and given in pieces to a browser, which may be slower than the log.
#include "cli/logs/pod_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "cli/ui/log_stream.h"
#include "contract/names.h"

namespace tj::ui {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds kHeartbeatEvery{15};
constexpr std::chrono::seconds kLookEvery{1};  // whether the worker has ended
constexpr std::size_t kLinesPerEvent = 500;

std::chrono::sys_seconds second_of(LogTime time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

/// How far a reader has come, in words that go to a browser and come back: of the lines since
/// `from`, so many, the last of which was no later than `newest`. A kubelet can be asked for lines
/// since a whole second only, and gives those of one second in the same order each time.
struct Mark {
  LogTime newest;
  std::size_t count = 0;
  LogTime from;

  std::string text() const {  // at most 60 bytes: 19 digits, and what a second may hold
    return std::to_string(newest.time_since_epoch().count()) + "/" + std::to_string(count) + "/" +
           std::to_string(from.time_since_epoch().count());
  }
};

/// Absent: nobody has written that text here.
std::optional<Mark> mark_from(const std::string& text) {
  std::array<std::int64_t, 3> numbers{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && (at == end || *at++ != '/')) return std::nullopt;
    const auto read = std::from_chars(at, end, numbers[i]);
    if (read.ec != std::errc{} || numbers[i] < 0) return std::nullopt;
    at = read.ptr;
  }
  const auto [newest, count, from] = numbers;
  if (at != end || from > newest) return std::nullopt;
  return Mark{.newest = LogTime(nanoseconds(newest)),
              .count = static_cast<std::size_t>(count),
              .from = LogTime(nanoseconds(from))};
}

/// What has been given, as a mark: counts lines by their second, as far back as a mark needs them.
class Given {
 public:
  explicit Given(const std::optional<Mark>& before) {
    if (before) first_ = before->from;
  }
  void add(LogTime time) {
    if (time == LogTime{}) return;  // a kubelet's own words: they will not come again
    if (!first_) first_ = time;
    if (time < *first_) return;  // not asked for when it is gone on with
    newest_ = std::max(newest_.value_or(time), time);
    ++counts_[second_of(time)];
    counts_.erase(counts_.begin(), counts_.lower_bound(second_of(*newest_) - kOverlap));
  }
  std::optional<Mark> mark() const {
    if (!newest_) return std::nullopt;
    const LogTime horizon = second_of(*newest_) - kOverlap;
    Mark mark{.newest = *newest_, .from = std::max(horizon, *first_)};
    for (const auto& [second, count] : counts_) mark.count += count;
    return mark;
  }

 private:
  static constexpr std::chrono::seconds kOverlap = ResumePoint::kOverlap;
  std::map<std::chrono::sys_seconds, std::size_t> counts_;
  std::optional<LogTime> first_;
  std::optional<LogTime> newest_;
};

/// Of a stream that was asked for since a mark: whether a line is one of those up to it.
class BeforeMark {
 public:
  explicit BeforeMark(std::optional<Mark> mark) : mark_(mark) {}
  bool has(LogTime time) {
    if (!mark_ || time > mark_->newest) return false;
    if (time < mark_->from) return true;
    return std::exchange(left_, left_ == 0 ? 0 : left_ - 1) > 0;
  }

 private:
  std::optional<Mark> mark_;
  std::size_t left_ = mark_ ? mark_->count : 0;
};

PodLogRequest request_of(const LogQuestion& question, const PodPlace& place,
                         const std::optional<Mark>& mark) {
  PodLogRequest request{.ns = question.job.ns,
                        .pod = names::worker_pod(question.job.name, question.rank),
                        .uid = place.uid,
                        .container = place.container,
                        .follow = true};
  if (mark)
    request.since = mark->from;
  else
    request.tail_lines = kLogTailLines;
  return request;
}

class PodStream final : public HttpStream {
 public:
  PodStream(boost::asio::io_context& loop, KubeApi& api, const LogQuestion& question,
            PodPlace place)
      : alarm_(loop, [] { return std::chrono::steady_clock::now(); }),
        has_ended_(std::move(place.has_ended)),
        before_(mark_from(question.last_id)),
        given_(mark_from(question.last_id)),
        log_(api, alarm_, request_of(question, place, mark_from(question.last_id)),
             {.on_line = [this](LogTime time, std::string_view text) { take(time, text); },
              .on_end = [this](const Result<void>& end) { ended(end); },
              .on_problem = [](const Error&) {}}) {
    look();
    log_.resume();
  }

  void next(Give give) override {
    give_ = std::move(give);
    if (offer()) return;
    alarm_.set_after("heartbeat", kHeartbeatEvery, [this] {
      if (give_) std::exchange(give_, nullptr)(kHeartbeat);
    });
  }

 private:
  struct Line {
    LogTime time;
    std::string text;
  };

  void look() {
    if (has_ended_()) return log_.container_ended();
    alarm_.set_after("look", kLookEvery, [this] { look(); });
  }

  void take(LogTime time, std::string_view text) {
    has_lines_ = true;
    if (before_.has(time)) return given_.add(time);
    // A line can be as long as its program likes; one byte more than is shown tells that it is cut.
    lines_.push_back({time, std::string(text.substr(0, kLogLineBytesMax + 1))});
    queued_bytes_ += lines_.back().text.size();
    while (lines_.size() > kLogQueueLinesMax || queued_bytes_ > kLogQueueBytesMax) {
      (void)take_first();
      ++lost_;
    }
    offer_later();
  }

  std::string take_first() {
    Line first = std::move(lines_.front());
    lines_.pop_front();
    queued_bytes_ -= first.text.size();
    given_.add(first.time);
    return std::move(first.text);
  }

  void ended(const Result<void>& end) {
    if (!end)
      why_ended_ = describe(end.error());
    else if (has_lines_)
      why_ended_ = "this worker's log has ended";
    else
      why_ended_ = "this worker has no log: it said nothing, or its pod has gone";
    offer_later();
  }

  /// Not from inside the reader: lines that come together go in one event.
  void offer_later() {
    if (std::exchange(will_offer_, true)) return;
    alarm_.set_after("offer", std::chrono::milliseconds{0}, [this] {
      will_offer_ = false;
      offer();
    });
  }

  /// Whether there was something to give, and somebody to give it to.
  bool offer() {
    if (!give_) return false;
    std::vector<std::string> lines;
    while (!lines_.empty() && lines.size() < kLinesPerEvent) lines.push_back(take_first());
    if (!lines.empty() || lost_ > 0) {
      const auto mark = given_.mark();
      give(lines_event(lines, mark ? mark->text() : "", std::exchange(lost_, 0)));
      return true;
    }
    if (!why_ended_) return false;
    if (std::exchange(is_over_, true))
      give({});
    else
      give(end_event(*why_ended_));
    return true;
  }

  void give(std::optional<std::string> chunk) {
    alarm_.cancel("heartbeat");
    std::exchange(give_, nullptr)(std::move(chunk));
  }

  Alarm alarm_;
  std::function<bool()> has_ended_;
  BeforeMark before_;
  Given given_;
  Give give_;
  std::deque<Line> lines_;
  std::size_t queued_bytes_ = 0;  // of them
  std::size_t lost_ = 0;
  std::optional<std::string> why_ended_;
  bool has_lines_ = false;
  bool will_offer_ = false;
  bool is_over_ = false;
  PodLog log_;
};

}  // namespace

std::unique_ptr<HttpStream> follow_pod(boost::asio::io_context& loop, KubeApi& api,
                                       const LogQuestion& question, PodPlace place) {
  return std::make_unique<PodStream>(loop, api, question, std::move(place));
}

}  // namespace tj::ui
