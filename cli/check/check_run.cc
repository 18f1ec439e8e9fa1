#include "cli/check/check_run.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "cli/check/check_job.h"
#include "cli/plain_text.h"
#include "cli/submit/creation.h"
#include "cli/submit/output.h"
#include "operator/api/json.h"
#include "operator/plan/manifest.h"

namespace tj::check {
namespace {

using Json = nlohmann::json;

/// `trainer check` gives up a rank that does not come after a minute; its pod ends soon after.
constexpr int kLooksAfterEndMax = 90;
constexpr std::size_t kLogLinesMax = 2'000;
constexpr std::size_t kLogBytesMax = 1024 * 1024;
constexpr std::chrono::seconds kLogDeadline{20};

/// Ended, or never begun: nothing more will come of it once its job has ended.
bool is_settled(const Pod& pod) { return pod.exit || pod.phase != PodPhase::running; }

class Check {
 public:
  Check(const CheckCalls& calls, ObjectMeta meta) : calls_(calls), meta_(std::move(meta)) {}

  Result<std::vector<RankResult>> observe(int workers) {
    const auto ended =
        submit::follow(calls_.session, meta_, calls_.interrupts,
                       {.period = calls_.period, .limit = calls_.limit, .print = calls_.print});
    if (!ended) return ended.error();
    if (!*ended) return std::vector<RankResult>{};
    const auto pods = settled_pods();
    if (!pods) return pods.error();
    std::map<int, RankResult> results;
    for (int rank = 0; rank < workers; ++rank) results[rank].rank = rank;
    for (const Pod& pod : *pods) {
      const auto found = results.find(pod.worker_index);
      if (found != results.end()) found->second = result_of(pod);
    }
    std::vector<RankResult> list;
    for (auto& [rank, result] : results) list.push_back(std::move(result));
    return list;
  }

  void remove() {
    const auto removed = submit::remove_job(calls_.session, meta_.key(), meta_.uid);
    if (removed) return;
    calls_.print("job " + to_string(meta_.key()) + " can't be deleted: " +
                 plain_line(describe(removed.error())) + "; the operator deletes it " +
                 std::to_string(kLeftOverMax.count()) + " s after its end");
  }

 private:
  /// The job ends with the first rank that fails; the others are given the time to say what they
  /// found.
  Result<std::vector<Pod>> settled_pods() {
    auto pods = pods_of(calls_.session, meta_.key());
    for (int look = 0; look < kLooksAfterEndMax; ++look) {
      const bool is_over = !pods || std::ranges::all_of(*pods, is_settled);
      if (is_over || calls_.interrupts.number()) break;
      submit::wait(calls_.session, calls_.period, calls_.interrupts);
      pods = pods_of(calls_.session, meta_.key());
    }
    return pods;
  }

  RankResult result_of(const Pod& pod) const {
    RankResult result{.rank = pod.worker_index, .node = pod.node, .exit = pod.exit};
    result.waiting = pod.waiting_message.empty() ? pod.waiting_reason : pod.waiting_message;
    if (!pod.exit || calls_.interrupts.number()) return result;
    auto log = calls_.read_log(pod.meta.key());
    result.log = log ? *std::move(log)
                     : std::vector<std::string>{"its log can't be read: " + describe(log.error())};
    return result;
  }

  const CheckCalls& calls_;
  ObjectMeta meta_;
};

}  // namespace

Result<std::vector<RankResult>> run_check(const CheckCalls& calls, const Json& check_job) {
  const auto created =
      submit::create(calls.session, {.job = check_job, .config_map = {}}, {.replaces = false});
  if (!created) return created.error();
  const auto job = job_from_json(*created);
  if (!job) return job.error();
  Check check(calls, job->meta);
  auto results = check.observe(job->spec.worker_count);
  check.remove();
  return results;
}

Result<std::vector<Pod>> pods_of(Session& session, const ObjectKey& job) {
  const auto objects = session.list({.verb = Verb::list,
                                     .resource = Resource::pods,
                                     .ns = job.ns,
                                     .label_selector = job_selector(job.name)});
  if (!objects) return objects.error();
  std::vector<Pod> pods;
  for (const Json& object : *objects) {
    if (auto pod = trim_pod(object)) pods.push_back(*std::move(pod));
  }
  return pods;
}

Result<std::vector<std::string>> read_log(Session& session, const ObjectKey& pod) {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  std::optional<Result<void>> end;
  boost::asio::steady_timer timer(session.loop(), kLogDeadline);
  const auto is_late = std::make_shared<bool>(false);  // the timer's handler may outlive this call
  timer.async_wait([is_late](auto failure) { *is_late = !failure; });
  const auto stream = session.api().watch(
      {.resource = Resource::pods,
       .ns = pod.ns,
       .log = LogOptions{.container = kContainer, .tail_lines = kLogLinesMax},
       .name = pod.name},
      {.on_line =
           [&](std::string line) {
             bytes += line.size();
             const bool fits = bytes <= kLogBytesMax && lines.size() < kLogLinesMax;
             if (fits) lines.push_back(std::move(line));
           },
       .on_end = [&](Result<void> why) { end = std::move(why); }});
  session.loop().restart();
  while (!end && !*is_late) session.loop().run_one();
  if (!end) return Error{Code::timeout, "no end within 20 s", to_string(pod), {}};
  if (!*end) return end->error();
  return lines;
}

}  // namespace tj::check
