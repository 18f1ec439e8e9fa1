// A manifest file as a person wrote it: YAML, every rule, and what a local run makes of it.
#include <nlohmann/json.hpp>

#include "cli/yaml_json.h"
#include "operator/api/json.h"
#include "operator/api/validate.h"
#include "operator/plan/manifest.h"
#include "tests/fuzz/fuzzed.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto documents = tj::parse_yaml(tj::fuzz::text_of(data, size), "input");
  if (!documents) return 0;
  for (const auto& document : *documents) {
    const auto errors = tj::validate_manifest(document);
    (void)describe(errors);
    const auto job = tj::job_from_json(document);
    if (!errors.empty() || !job) continue;
    TJ_CHECK(!job->spec_error, "a valid manifest is one that the operator reads");
    (void)tj::make_pod(*job, {.worker_index = 0, .attempt = 0}).dump();
  }
  return 0;
}
