#include "cli/logs/follow_logs.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <utility>

#include "cli/run_report.h"
#include "operator/api/json.h"
#include "operator/api/read.h"
#include "operator/plan/manifest.h"

namespace tj {
namespace {

using nlohmann::json;

LogTime now() { return std::chrono::system_clock::now(); }

std::string uid_of(const json& pod) {
  return read::string_at(read::object_at(pod, "metadata"), "uid");
}

}  // namespace

FollowLogs::FollowLogs(Session& session, const LogsOptions& options, LogPrinter& printer)
    : session_(session),
      options_(options),
      printer_(printer),
      alarm_(session.loop(), [] { return std::chrono::steady_clock::now(); }),
      pods_watch_(session.api(), alarm_,
                  {.resource = Resource::pods,
                   .ns = session.ns(),
                   .label_selector = job_selector(options.job)},
                  {.on_delta = [this](const WatchDelta& delta) { on_pods(delta); },
                   .on_relist = [](const std::string&) {},
                   .on_problem =
                       [this](const std::optional<Error>& problem) {
                         if (problem) printer_.note("tj: pods: " + describe(*problem));
                       }}) {}

void FollowLogs::on_pods(const WatchDelta& delta) {
  if (const auto* list = std::get_if<Replace>(&delta)) {
    if (!list->continues) listed_.clear();
    for (const std::string& text : list->objects) take_pod(read::parse(text), listed_);
    if (list->resource_version.empty()) return;  // more pages follow
    pods_ = std::exchange(listed_, {});
    has_listed_since_ = job_has_ended_;
  } else if (const auto* upsert = std::get_if<Upsert>(&delta)) {
    take_pod(*upsert->object, pods_);
  } else {
    pods_.erase(uid_of(*std::get<Erase>(delta).object));
  }
  look_soon();
}

/// Of a pod only what is followed is kept: a gang may have thousands.
void FollowLogs::take_pod(const json& pod, Targets& into) {
  const auto targets = log_targets({pod}, options_.selection);
  into.insert_or_assign(uid_of(pod), targets.empty() ? LogTarget{} : targets.front());
}

/// A list comes as many changes: they are looked at once.
void FollowLogs::look_soon() {
  if (std::exchange(is_look_due_, true)) return;
  alarm_.set_after("look", std::chrono::milliseconds{0}, [this] {
    is_look_due_ = false;
    look();
  });
}

void FollowLogs::look() {
  int open_count = 0;
  for (const auto& [uid, target] : pods_) {
    if (!target.has_started) continue;
    const auto known = logs_.find(target.identity());
    if (known == logs_.end()) open(target);
    if (known != logs_.end() && target.has_ended) known->second->container_ended();
  }
  for (const auto& [identity, log] : logs_) {
    if (!pods_.contains(pod_of_log_[identity])) log->pod_gone();
    if (!log->has_ended()) ++open_count;
  }
  printer_.folder().set_rank_count(open_count);
  end_if_done();
}

void FollowLogs::open(const LogTarget& target) {
  PodLogRequest request{.ns = session_.ns(),
                        .pod = target.pod,
                        .uid = target.uid,
                        .container = target.container,
                        .follow = true,
                        .tail_lines = options_.tail_lines,
                        .container_has_ended = target.has_ended};
  if (options_.since) request.since = now() - *options_.since;
  PodLogEvents events{
      .on_line = [this, rank = target.rank](LogTime time,
                                            std::string_view text) { take(rank, time, text); },
      .on_end =
          [this, pod = target.pod](const Result<void>& end) {
            if (!end) printer_.note("tj: " + pod + ": " + describe(end.error()));
            is_all_ = is_all_ && end.ok();
            alarm_.set_after("job", kAskAfterEnd, [this] { ask_about_job(); });
            look_soon();
          },
      .on_problem =
          [this, pod = target.pod](const Error& problem) {
            std::string& said = problems_[pod];
            if (std::exchange(said, describe(problem)) == said) return;
            printer_.note("tj: " + pod + ": " + said + "; trying again");
          }};
  pod_of_log_[target.identity()] = target.uid;
  auto& log = logs_[target.identity()];
  log = std::make_unique<PodLog>(session_.api(), alarm_, std::move(request), std::move(events));
  log->resume();
}

void FollowLogs::take(int rank, LogTime time, std::string_view text) {
  printer_.folder().add(rank, time, text, now());
  write_soon();
}

void FollowLogs::write_soon() {
  if (!printer_.is_read()) {
    is_done_ = true;
    return;
  }
  if (is_write_due_) return;
  is_write_due_ = true;
  alarm_.set_after("write", kWriteWait, [this] {
    is_write_due_ = false;
    printer_.folder().advance(now());
    (void)printer_.flush();
    if (printer_.folder().next_due()) write_soon();
  });
}

void FollowLogs::ask_about_job() {
  session_.api().send({.verb = Verb::get,
                       .resource = Resource::training_jobs,
                       .ns = session_.ns(),
                       .name = options_.job},
                      [this](const Result<std::string>& answer) { on_job(answer); });
}

void FollowLogs::on_job(const Result<std::string>& answer) {
  if (answer) {
    say_job(read::parse(*answer));
  } else if (answer.error().code == Code::not_found) {
    job_has_ended_ = true;
  } else {
    const std::string problem = "tj: " + describe(answer.error());
    if (problem != last_said_) printer_.note(problem);
    last_said_ = problem;
  }
  // What the pods have said so far may be older than this answer.
  if (job_has_ended_ && !has_listed_since_) pods_watch_.distrust();
  alarm_.set_after("job", kAskAboutJob, [this] { ask_about_job(); });
  end_if_done();
}

void FollowLogs::say_job(const json& object) {
  const auto job = job_from_json(object);
  if (!job) return;
  const std::string line = job->status.reason.empty()
                               ? "job " + job->meta.name + ": no operator has looked at it yet"
                               : status_line(*job);
  if (line != last_said_) printer_.note(line);
  last_said_ = line;
  const auto& attempt = options_.selection.attempt;
  job_has_ended_ = is_terminal(job->status.phase) || (attempt && job->status.attempt > *attempt);
}

bool FollowLogs::may_have_more() const {
  if (!job_has_ended_ || !has_listed_since_) return true;
  for (const auto& [identity, log] : logs_) {
    if (!log->has_ended()) return true;
  }
  return false;
}

void FollowLogs::end_if_done() {
  if (!may_have_more() && !is_look_due_) is_done_ = true;
}

bool FollowLogs::run() {
  const auto guard = boost::asio::make_work_guard(session_.loop());
  session_.loop().restart();
  boost::asio::signal_set signals(session_.loop(), SIGINT, SIGTERM);
  int signal = 0;
  signals.async_wait([&](auto failure, int number) {
    if (failure) return;
    signal = number;
    is_done_ = true;
  });
  pods_watch_.start();
  ask_about_job();
  while (!is_done_) session_.loop().run_one();
  pods_watch_.stop();
  logs_.clear();
  printer_.folder().flush();
  (void)printer_.flush();
  signals.clear();
  if (signal != 0) std::raise(signal);  // ends as it would have, with what had come printed
  return is_all_;
}

}  // namespace tj
