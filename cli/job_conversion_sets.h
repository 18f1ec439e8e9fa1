// The kinds that describe a group of pods in a way of their own: Kubeflow's TrainJob, JobSet and
// LeaderWorkerSet. A part of job_conversion.h, which says which kind is which.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "cli/job_conversion.h"

namespace tj {

ConvertedJob from_train_job(const nlohmann::json& object);
ConvertedJob from_job_set(const nlohmann::json& object);
ConvertedJob from_leader_worker_set(const nlohmann::json& object);

}  // namespace tj
