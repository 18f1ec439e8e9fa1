// --mount and --shm: the volumes of the workers' pods and where their containers see them. Pure.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/api/validate.h"

namespace tj::submit {

struct Volumes {
  nlohmann::json volumes = nlohmann::json::array();  // of the pod
  nlohmann::json mounts = nlohmann::json::array();   // of the container
};

/// What is wrong is added to `errors` by flag.
Volumes read_volumes(const std::vector<std::string>& mounts, const std::string& shm,
                     std::vector<FieldError>& errors);

}  // namespace tj::submit
