// Manifests that a user of a namespace may apply, wrong in every place that the operator reads of
// one: what tests/hostile, tests/loop, tests/cli and tests/e2e hold it to.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tj {

struct HostileManifest {
  std::string what;  // the place, and what stands there
  nlohmann::json manifest;
};

/// A good job of one worker with a value in nearly every place.
nlohmann::json good_manifest(const std::string& name);

/// Each place with each wrong value.
std::vector<HostileManifest> all_hostile_manifests();

/// `count` of them by chance, the same for the same seed, with names of their own.
std::vector<HostileManifest> some_hostile_manifests(std::size_t count, std::uint32_t seed);

}  // namespace tj
