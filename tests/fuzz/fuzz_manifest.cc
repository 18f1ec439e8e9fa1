// A manifest file as a person wrote it: YAML, every rule, what a local run makes of it, and what is
// printed in place of one of another kind.
#include <nlohmann/json.hpp>

#include "cli/job_conversion.h"
#include "operator/api/json.h"
#include "operator/api/validate.h"
#include "operator/plan/manifest.h"
#include "tests/fuzz/fuzzed.h"
#include "yaml/yaml_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto documents = tj::parse_yaml(tj::fuzz::text_of(data, size), "input");
  if (!documents) return 0;
  for (const auto& converted : tj::convert_jobs(*documents)) {
    if (!converted.errors.empty()) continue;
    const auto printed = tj::parse_yaml(text_of(converted), "printed");
    TJ_CHECK(printed && printed->size() == 1, "one manifest is printed");
    TJ_CHECK(printed->front() == converted.manifest, "it is read as it was meant");
    TJ_CHECK(tj::validate_manifest(printed->front()).empty(), "it is valid");
  }
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
