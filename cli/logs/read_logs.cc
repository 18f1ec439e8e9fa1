#include "cli/logs/read_logs.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>

namespace tj {
namespace {

LogTime since_of(const LogsOptions& options) {
  return std::chrono::system_clock::now() - options.since.value_or(std::chrono::seconds{0});
}

}  // namespace

ReadLogs::ReadLogs(Session& session, const LogsOptions& options, LogPrinter& printer,
                   ReadBounds bounds)
    : bounds_(bounds),
      session_(session),
      options_(options),
      printer_(printer),
      alarm_(session.loop(), [] { return std::chrono::steady_clock::now(); }),
      merger_([this](std::size_t source, LogTime time, std::string_view text) {
        printer_.folder().add(logs_[source].target.rank, time, text, /*now=*/time);
      }) {}

void ReadLogs::add(const LogTarget& target) {
  const std::size_t source = merger_.add_source();
  PodLogRequest request{.ns = session_.ns(),
                        .pod = target.pod,
                        .uid = target.uid,
                        .container = target.container,
                        .previous = options_.previous,
                        .tail_lines = options_.tail_lines};
  if (options_.since) request.since = since_of(options_);
  PodLogEvents events{
      .on_line = [this, source](LogTime time, std::string_view text) { take(source, time, text); },
      .on_end = [this, source](const Result<void>& end) { ended(source, end); },
      .on_problem =
          [this, pod = target.pod](const Error& problem) {
            printer_.note("tj: " + pod + ": " + describe(problem) + "; trying again");
          }};
  logs_.push_back({target, std::make_unique<PodLog>(session_.api(), alarm_, std::move(request),
                                                    std::move(events))});
}

void ReadLogs::take(std::size_t source, LogTime time, std::string_view text) {
  merger_.push(source, time, text);
  if (merger_.waiting_bytes(source) >= share_bytes_) logs_[source].log->pause();
}

void ReadLogs::ended(std::size_t source, const Result<void>& end) {
  ++ended_count_;
  if (!end) {
    is_all_ = false;
    printer_.note("tj: " + logs_[source].target.pod + ": " + describe(end.error()));
  }
  merger_.end(source);
}

/// Those without a line go first: all others wait for them.
void ReadLogs::open_more() {
  int open = 0;
  std::vector<std::size_t> closed;
  for (std::size_t source = 0; source < logs_.size(); ++source) {
    const PodLog& log = *logs_[source].log;
    if (log.has_ended()) continue;
    if (log.is_open()) {
      ++open;
    } else if (merger_.waiting_bytes(source) < share_bytes_ / 2) {
      closed.push_back(source);
    }
  }
  std::stable_sort(closed.begin(), closed.end(), [this](std::size_t a, std::size_t b) {
    return merger_.waiting_bytes(a) < merger_.waiting_bytes(b);
  });
  for (const std::size_t source : closed) {
    if (open++ >= bounds_.open_max) return;
    logs_[source].log->resume();
  }
}

bool ReadLogs::run(const std::vector<LogTarget>& targets) {
  for (const LogTarget& target : targets) add(target);
  printer_.folder().set_rank_count(static_cast<int>(targets.size()));
  share_bytes_ = std::max(bounds_.waiting_bytes_min,
                          bounds_.waiting_bytes_max / std::max<std::size_t>(1, targets.size()));
  const auto guard = boost::asio::make_work_guard(session_.loop());
  session_.loop().restart();
  while (ended_count_ < logs_.size() && printer_.is_read()) {
    open_more();
    session_.loop().run_one();
  }
  printer_.folder().flush();
  (void)printer_.flush();
  logs_.clear();
  return is_all_;
}

}  // namespace tj
