// `tj run`: the operator's core over an API server in memory, with processes of this machine as
// pods, on one thread.
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/manifest_file.h"

namespace tj {

struct LocalRunOptions {
  std::filesystem::path out;  // empty: out/<job> below the current folder
  bool no_colour = false;
  std::optional<std::chrono::seconds>
      grace;  // in place of the template's terminationGracePeriodSeconds
};

/// Runs the job to its end and returns the exit code; the last line that it prints says how the job
/// ended.
int run_locally(const JobManifest& manifest, const LocalRunOptions& options);

}  // namespace tj
