// The TrainingJob, and the ConfigMap of its script, that the flags of `tj submit` describe. Pure.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/submit/script.h"
#include "cli/submit/submit_flags.h"
#include "operator/api/validate.h"

namespace tj::submit {

/// By which the device plug-in of many clusters gives InfiniBand; they may call it otherwise.
inline constexpr const char* kInfiniBandResource = "rdma/hca";
inline constexpr int kGpusMax = 1024;

struct MadeJob {
  nlohmann::json job;
  std::optional<nlohmann::json> config_map;  // holds the script; without an owner yet
};

/// Valid where `errors` stays empty; they are by flag. All texts of `flags` must be UTF-8.
MadeJob make_job(const SubmitFlags& flags, const std::optional<Script>& script,
                 std::vector<FieldError>& errors);

}  // namespace tj::submit
