// The job that looks whether another one could train where it is: its image, volumes, network and
// nodes, with `trainer check` in place of its command. Pure.
#pragma once
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/api/types.h"

namespace tj::check {

inline constexpr const char* kContainer = "check";
/// After its end the operator deletes a check whose tj was killed before it could.
inline constexpr std::chrono::seconds kLeftOverMax{600};

/// Where a job's workers are, or were.
struct Place {
  std::vector<std::string> nodes;  // each once, in order
  bool is_active = false;          // workers are there now, with their GPUs and ports
};
/// Of those pods that the job of that uid owns.
Place place_of(const std::vector<Pod>& pods, const std::string& job_uid);

struct CheckOptions {
  std::string image;                   // in place of the job's; empty: the job's
  std::vector<std::string> arguments;  // of `trainer check`; empty: those of the job's trainer
  std::chrono::seconds timeout{300};
};

struct CheckJob {
  nlohmann::json job;
  std::vector<std::string> notes;  // what is not looked at, or not in the job's place
};

/// `job` is a valid TrainingJob, of a file or of a server.
CheckJob make_check_job(const nlohmann::json& job, const Place& place, const CheckOptions& options);

/// Flags of `trainer train` in a container's command that `trainer check` has, too; behind `--` the
/// model's own.
std::vector<std::string> check_arguments(const nlohmann::json& container);

}  // namespace tj::check
