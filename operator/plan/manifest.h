// From a job to the JSON of its children. Pure; the launch contract is injected here.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "operator/api/types.h"
#include "operator/plan/plan.h"

namespace tj {

// On the operator's own pods, by the chart: the NetworkPolicy of a job lets them in.
inline constexpr const char* kOperatorLabel = "kubebrain.io/component";
inline constexpr const char* kOperatorLabelValue = "trainingjob-operator";

/// Label selector of everything the operator owns: kubebrain.io/trainingjob.
std::string owned_selector();
/// Label selector of one job's pods: job-name=<job>,kubebrain.io/trainingjob=<job>.
std::string job_selector(const std::string& job_name);

/// The pod of one rank: the template, plus name, labels, ownerReference, subdomain, hostname,
/// restartPolicy Never and the contract's variables before the user's own (`$(VAR)` expands only
/// backwards), in init containers too. World size and attempt are those on record, not the spec's.
/// Kept off the nodes that the job's status excludes.
nlohmann::json make_pod(const TrainingJob& job, const CreatePod& action);

/// Headless, publishNotReadyAddresses, one port; named as the job. That of attempt 0 says in its
/// annotations what the attempt's pods are made from (Service::first_attempt).
nlohmann::json make_service(const TrainingJob& job);

/// Lets only the job's own pods reach each other's ports, and operators in `operator_ns` the port
/// where rank 0 says how it is doing (empty: there is none); what they reach themselves stays open.
nlohmann::json make_network_policy(const TrainingJob& job, const std::string& operator_ns);
/// Names what that allows, wherever operators run; empty: the job wants none.
std::string network_policy_hash(const TrainingJob& job);

/// Names what the pods of an attempt are made from: another hash needs another attempt. It begins
/// with a version of its own, that of the way it is made.
std::string template_hash(const JobSpec& spec);
/// `hash` is comparable with those of template_hash(): the operator that wrote it counted alike.
bool is_comparable_hash(const std::string& hash);

/// An events.v1 core Event that says `event` about the job; `now` stamps it.
nlohmann::json make_event(const TrainingJob& job, const PlannedEvent& event, TimePoint now);

}  // namespace tj
