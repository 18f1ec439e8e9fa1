#include "cli/jobs/wait_for.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/exit.h"
#include "cli/jobs/output.h"
#include "cli/jobs/requests.h"
#include "cli/jobs/screen.h"
#include "operator/api/words.h"

namespace tj {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr const char* kConditions[] = {"Running",   "Suspended", "Restarting",
                                       "Succeeded", "Failed",    "SpecInvalid"};
constexpr long long kSecondsMax = 365LL * 24 * 3600;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Error wrong_goal(const std::string& text, const std::string& what) {
  return Error{Code::invalid, what, "--for " + text, {}};
}

Result<WaitGoal> phase_goal(const std::string& text, const std::string& name) {
  std::string all;
  for (const auto& word : kWords<Phase>) {
    if (lower(word.text) == name)
      return WaitGoal{.kind = WaitGoal::Kind::phase, .phase = word.value};
    all += (all.empty() ? "" : ", ") + std::string(word.text);
  }
  return wrong_goal(text, "there is no such phase; phases are " + all);
}

Result<WaitGoal> condition_goal(const std::string& text, const std::string& rest) {
  const auto equals = rest.find('=');
  const std::string status = equals == std::string::npos ? "true" : rest.substr(equals + 1);
  if (status != "true" && status != "false")
    return wrong_goal(text, "the status of a condition is True or False");
  std::string all;
  for (const char* type : kConditions) {
    if (lower(type) == rest.substr(0, equals)) {
      return WaitGoal{.kind = WaitGoal::Kind::condition,
                      .condition = type,
                      .condition_status = status == "true"};
    }
    all += (all.empty() ? "" : ", ") + std::string(type);
  }
  return wrong_goal(text, "there is no such condition; conditions are " + all);
}

bool has_condition(const JobView& view, const WaitGoal& goal) {
  for (const Condition& condition : view.job.status.conditions) {
    if (condition.type == goal.condition) return condition.status == goal.condition_status;
  }
  return false;
}

/// What a look at the job led to; absent: not yet.
std::optional<int> conclude(const WaitGoal& goal, const Result<JobView>& view) {
  const bool is_gone = !view && view.error().code == Code::not_found;
  if (goal.kind == WaitGoal::Kind::deletion && is_gone) return tj_exit::kSucceeded;
  if (!view) {
    if (may_pass(view.error())) return std::nullopt;
    return fail(view.error());
  }
  const WaitVerdict verdict = judge_wait(goal, *view);
  if (verdict == WaitVerdict::not_yet) return std::nullopt;
  print(summary_line(*view) + "\n");
  return verdict == WaitVerdict::reached ? tj_exit::kSucceeded : tj_exit::kFailed;
}

/// Of the job alone: its pods don't matter.
Result<JobView> look(Place& place, const std::string& name) {
  const auto job = get_job(place.session(), name);
  if (!job) return job.error();
  return view_of(place, *job);
}

}  // namespace

Result<WaitGoal> parse_wait_goal(const std::string& text) {
  const std::string goal = lower(text);
  if (goal.empty()) return WaitGoal{};
  if (goal == "delete") return WaitGoal{.kind = WaitGoal::Kind::deletion};
  for (const std::string prefix : {"phase=", "jsonpath={.status.phase}="}) {
    if (goal.starts_with(prefix)) return phase_goal(text, goal.substr(prefix.size()));
  }
  if (goal.starts_with("condition=")) return condition_goal(text, goal.substr(10));
  return wrong_goal(text, "write phase=PHASE, condition=TYPE[=True|False] or delete");
}

Result<seconds> parse_duration(const std::string& text) {
  const Error wrong{Code::invalid, "write seconds, or a time such as 90s, 5m or 1h30m", text, {}};
  long long total = 0;
  for (std::size_t at = 0; at < text.size();) {
    long long number = 0;
    const std::size_t begin = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && number <= kSecondsMax; ++at)
      number = number * 10 + (text[at] - '0');
    if (at == begin) return wrong;
    const char unit = at < text.size() ? text[at++] : 's';
    const long long factor = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : 0;
    if (factor == 0 || number > kSecondsMax / factor) return wrong;
    total += number * factor;
  }
  if (total < 1 || total > kSecondsMax) return wrong;
  return seconds{total};
}

WaitVerdict judge_wait(const WaitGoal& goal, const JobView& view) {
  const Phase phase = view.job.status.phase;
  const bool is_final = is_over(view);
  const auto when = [is_final](bool holds) {
    if (holds) return WaitVerdict::reached;
    return is_final ? WaitVerdict::never : WaitVerdict::not_yet;
  };
  switch (goal.kind) {
    case WaitGoal::Kind::deletion: return WaitVerdict::not_yet;
    case WaitGoal::Kind::end: return when(phase == Phase::succeeded);
    case WaitGoal::Kind::condition: return when(has_condition(view, goal));
    case WaitGoal::Kind::phase: break;
  }
  const bool has_passed =
      phase == Phase::succeeded && (goal.phase == Phase::starting || goal.phase == Phase::running);
  return when(phase == goal.phase || has_passed);
}

int wait_for(Place& place, const WaitOptions& options) {
  const auto name = job_name_of(options.job);
  if (!name) return fail(name.error());
  const auto until = options.timeout ? Clock::now() + *options.timeout : Clock::time_point::max();
  std::optional<Clock::time_point> unanswered_since;
  while (true) {
    const auto view = look(place, *name);
    if (const auto code = conclude(options.goal, view)) return *code;
    const auto now = Clock::now();
    if (now >= until) {
      const std::string seen = view ? "; " + summary_line(*view) : ": " + describe(view.error());
      const std::string limit = std::to_string(options.timeout->count());
      complain({Code::timeout, "not within " + limit + " s" + seen, *name, {}});
      return tj_exit::kTimedOut;
    }
    if (view) unanswered_since.reset();
    if (!view && !unanswered_since) unanswered_since = now;
    if (unanswered_since && now - *unanswered_since >= options.pace.outage_max)
      return fail(view.error());
    pause(until - now < options.pace.every
              ? std::chrono::ceil<std::chrono::milliseconds>(until - now)
              : options.pace.every);
    if (const auto read = place.refresh(); !read) return fail(read.error());
  }
}

}  // namespace tj
