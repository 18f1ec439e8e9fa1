#include "operator/api/types.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tj {
namespace {

template <typename Value, std::size_t n>
using Words = std::array<std::pair<Value, const char*>, n>;

constexpr Words<Phase, 7> kPhases = {{{Phase::pending, "Pending"},
                                      {Phase::starting, "Starting"},
                                      {Phase::running, "Running"},
                                      {Phase::restarting, "Restarting"},
                                      {Phase::suspended, "Suspended"},
                                      {Phase::succeeded, "Succeeded"},
                                      {Phase::failed, "Failed"}}};

constexpr Words<FailureAction, 4> kActions = {
    {{FailureAction::restart, "Restart"},
     {FailureAction::restart_ignoring_budget, "RestartIgnoringBudget"},
     {FailureAction::fail, "Fail"},
     {FailureAction::exclude_node_and_restart, "ExcludeNodeAndRestart"}}};

constexpr Words<FailureCause, 9> kCauses = {{{FailureCause::exit_code, "ExitCode"},
                                             {FailureCause::signal, "Signal"},
                                             {FailureCause::oom_killed, "OOMKilled"},
                                             {FailureCause::disrupted, "Disrupted"},
                                             {FailureCause::node_lost, "NodeLost"},
                                             {FailureCause::pod_deleted, "PodDeleted"},
                                             {FailureCause::pod_rejected, "PodRejected"},
                                             {FailureCause::start_deadline, "StartDeadline"},
                                             {FailureCause::hung, "Hung"}}};

template <typename Value, std::size_t n>
const char* word_of(const Words<Value, n>& words, Value value) {
  for (const auto& [known, word] : words) {
    if (known == value) return word;
  }
  return words.front().second;
}

template <typename Value, std::size_t n>
std::optional<Value> value_of(const Words<Value, n>& words, const std::string& text) {
  for (const auto& [value, word] : words) {
    if (text == word) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string to_string(const ObjectKey& key) {
  return key.ns.empty() ? key.name : key.ns + "/" + key.name;
}

const char* to_string(Phase phase) { return word_of(kPhases, phase); }
const char* to_string(FailureAction action) { return word_of(kActions, action); }
const char* to_string(FailureCause cause) { return word_of(kCauses, cause); }
std::optional<Phase> parse_phase(const std::string& text) { return value_of(kPhases, text); }
std::optional<FailureAction> parse_action(const std::string& text) {
  return value_of(kActions, text);
}
std::optional<FailureCause> parse_cause(const std::string& text) { return value_of(kCauses, text); }

std::optional<int> percent_of(const JobProgress& progress) {
  if (progress.total_steps <= 0) return std::nullopt;
  const long double part = static_cast<long double>(progress.step) / progress.total_steps;
  return static_cast<int>(std::clamp(part, 0.0L, 1.0L) * 100);
}

std::string to_text(const JobProgress& progress) {
  const auto percent = percent_of(progress);
  if (!percent) return std::to_string(progress.step);
  return std::to_string(progress.step) + "/" + std::to_string(progress.total_steps) + " (" +
         std::to_string(*percent) + "%)";
}

}  // namespace tj
