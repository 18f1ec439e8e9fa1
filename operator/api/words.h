// The words of the resource's enumerations, as they stand in manifests, statuses and metrics: one
// table for each, which everything that reads, checks, writes or counts them goes by.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "operator/api/types.h"

namespace tj {

template <typename Value>
struct Word {
  Value value{};
  const char* text = "";
};

template <typename Value>
inline constexpr std::array<Word<Value>, 0> kWords{};

template <>
inline constexpr auto kWords<Phase> = std::to_array<Word<Phase>>({
    {Phase::pending, "Pending"},
    {Phase::starting, "Starting"},
    {Phase::running, "Running"},
    {Phase::restarting, "Restarting"},
    {Phase::suspended, "Suspended"},
    {Phase::succeeded, "Succeeded"},
    {Phase::failed, "Failed"},
});

template <>
inline constexpr auto kWords<FailureAction> = std::to_array<Word<FailureAction>>({
    {FailureAction::restart, "Restart"},
    {FailureAction::restart_ignoring_budget, "RestartIgnoringBudget"},
    {FailureAction::fail, "Fail"},
    {FailureAction::exclude_node_and_restart, "ExcludeNodeAndRestart"},
});

template <>
inline constexpr auto kWords<FailureCause> = std::to_array<Word<FailureCause>>({
    {FailureCause::exit_code, "ExitCode"},
    {FailureCause::signal, "Signal"},
    {FailureCause::oom_killed, "OOMKilled"},
    {FailureCause::disrupted, "Disrupted"},
    {FailureCause::node_lost, "NodeLost"},
    {FailureCause::pod_deleted, "PodDeleted"},
    {FailureCause::pod_rejected, "PodRejected"},
    {FailureCause::start_deadline, "StartDeadline"},
    {FailureCause::hung, "Hung"},
});

template <>
inline constexpr auto kWords<CleanPods> = std::to_array<Word<CleanPods>>({
    {CleanPods::running, "Running"},
    {CleanPods::all, "All"},
    {CleanPods::none, "None"},
});

template <>
inline constexpr auto kWords<RestartScope> = std::to_array<Word<RestartScope>>({
    {RestartScope::gang, "Gang"},
});

template <>
inline constexpr auto kWords<SuccessPolicy> = std::to_array<Word<SuccessPolicy>>({
    {SuccessPolicy::all_workers, "AllWorkers"},
    {SuccessPolicy::worker0, "Worker0"},
});

template <typename Value>
inline constexpr auto kTexts = [] {
  std::array<std::string_view, kWords<Value>.size()> texts;
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i] = kWords<Value>[i].text;
  return texts;
}();

/// The causes that a rule can name: for exit codes and signals it has lists of their own.
inline constexpr auto kRuleCauses = std::span(kTexts<FailureCause>).subspan<2>();
static_assert(kRuleCauses.front() == "OOMKilled");

template <typename Value>
constexpr const char* text_of(Value value) {
  for (const auto& word : kWords<Value>) {
    if (word.value == value) return word.text;
  }
  return kWords<Value>.front().text;
}

template <typename Value>
constexpr std::optional<Value> value_of(std::string_view text) {
  for (const auto& word : kWords<Value>) {
    if (text == word.text) return word.value;
  }
  return std::nullopt;
}

}  // namespace tj
