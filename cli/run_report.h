// The words of `tj run`: the line that follows the job's status, and the table at the end. Pure.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/api/types.h"
#include "operator/local/process_runner.h"

namespace tj {

/// `job gpt2-nano: Running (2/2 workers ready)`; with the message where there is something to wait
/// for or to know.
std::string status_line(const TrainingJob& job);

/// Columns WORKER, PHASE, EXIT, SECONDS, LOG; paths relative to `folder` where they lie below it.
std::string worker_table(const std::vector<PodReport>& reports,
                         const std::filesystem::path& folder);

}  // namespace tj
