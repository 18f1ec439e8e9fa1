#include "trainer/checkpoint/manifest.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/values/json_integer.h"
namespace tj::trainer {
namespace {
using json = nlohmann::ordered_json;  // a model's numbers in their order
constexpr int kIndent = 2;

Error unusable(const std::string& message) {
  return {.code = Code::invalid, .message = message, .subject = "manifest.json"};
}

/// The key of the number of tokens, frames or rows names what it counts.
const std::string kDataPrefix = "data_";
constexpr const char* kDigestKey = "data_digest";
constexpr const char* kMemoryKey = "memory_rows";   // 0 where it is missing
constexpr const char* kSyncKey = "sync";            // missing: in each step
constexpr const char* kReductionKey = "reduction";  // as of an exact one where it is missing

Result<DataMark> data_mark_of(const json& document) {
  DataMark mark{.unit = "", .count = 0, .digest = document.value(kDigestKey, "")};
  bool is_found = false;
  for (const auto& [key, value] : document.items()) {
    if (!key.starts_with(kDataPrefix) || key == kDigestKey) continue;
    if (std::exchange(is_found, true))
      return unusable("has two keys that begin with " + kDataPrefix);
    mark.unit = key.substr(kDataPrefix.size());
    mark.count = integer_of(value);
  }
  if (!is_found) return unusable("lacks a field: data_tokens, or the like");
  return mark;
}

ReductionMark reduction_mark_of(const json& document) {
  return {.ranks = integer_of(document.at("ranks")),
          .factors_rank = integer_of(document.at("factors_rank")),
          .is_exact = document.at("is_exact").get<bool>(),
          .scale = document.at("scale").get<double>()};
}

}  // namespace

bool Manifest::has_group(std::string_view stem) const {
  constexpr std::string_view kEnd = ".safetensors";
  for (const auto& [name, digest] : files) {
    if (!name.starts_with(stem) || !name.ends_with(kEnd)) continue;
    const char next = name[stem.size()];
    if (next == '.' || next == '-') return true;  // the only file, or one of several
  }
  return false;
}

std::string manifest_text(const Manifest& manifest) {
  json model = json::object();
  for (const auto& entry : manifest.model) model[entry.key] = entry.value;
  json document = {
      {"version", kManifestVersion},
      {"step", manifest.step},
      {"next_sample", manifest.next_sample},
      {"optimizer_steps", manifest.optimizer_steps},
      {"loss_scale",
       {{"scale", manifest.loss_scale.scale}, {"good_steps", manifest.loss_scale.good_steps}}},
      {"seed", manifest.seed},
      {kDataPrefix + manifest.data.unit, manifest.data.count},
      {"loss", manifest.loss},
      {"model", model},
      {"numerics",
       {{"logical_shards", manifest.numerics.logical_shards},
        {"batch_size", manifest.numerics.batch_size},
        {"threads", manifest.numerics.threads},
        {"has_averages", manifest.numerics.has_averages}}},
      {"files", json::object()}};
  if (!manifest.data.digest.empty()) document[kDigestKey] = manifest.data.digest;
  if (manifest.memory_rows > 0) document[kMemoryKey] = manifest.memory_rows;
  if (manifest.sync != SyncMark())
    document[kSyncKey] = {{"kind", manifest.sync.kind}, {"ranks", manifest.sync.ranks}};
  if (manifest.reduction != ReductionMark{})
    document[kReductionKey] = {{"ranks", manifest.reduction.ranks},
                               {"factors_rank", manifest.reduction.factors_rank},
                               {"is_exact", manifest.reduction.is_exact},
                               {"scale", manifest.reduction.scale}};
  for (const auto& [name, digest] : manifest.files) {
    document["files"][name] = {{"bytes", digest.bytes}, {"sha256", digest.sha256}};
  }
  return document.dump(kIndent) + "\n";
}

Result<Manifest> manifest_from(std::string_view text) {
  const auto document = json::parse(text, nullptr, false);
  if (!document.is_object()) return unusable("is not a JSON object (cut short?)");
  Manifest manifest;
  try {
    const int version = integer_of<int>(document.at("version"));
    if (version != kManifestVersion) {
      return unusable("is of version " + std::to_string(version) + "; this trainer reads version " +
                      std::to_string(kManifestVersion));
    }
    manifest.step = integer_of(document.at("step"));
    manifest.next_sample = integer_of(document.at("next_sample"));
    manifest.optimizer_steps = integer_of(document.at("optimizer_steps"));
    const auto& scale = document.at("loss_scale");
    manifest.loss_scale = {.scale = scale.at("scale").get<double>(),
                           .good_steps = integer_of(scale.at("good_steps"))};
    manifest.seed = integer_of<std::uint64_t>(document.at("seed"));
    const auto data = data_mark_of(document);
    if (!data) return data.error();
    manifest.data = *data;
    manifest.loss = document.at("loss").get<double>();
    for (const auto& [key, value] : document.at("model").items())
      manifest.model.push_back({.key = key, .flag = "", .value = integer_of(value)});
    const auto& numerics = document.at("numerics");
    manifest.numerics = {.logical_shards = integer_of(numerics.at("logical_shards")),
                         .batch_size = integer_of(numerics.at("batch_size")),
                         .threads = integer_of<int>(numerics.at("threads")),
                         .has_averages = numerics.at("has_averages").get<bool>()};
    if (document.contains(kMemoryKey)) manifest.memory_rows = integer_of(document.at(kMemoryKey));
    if (document.contains(kSyncKey)) {
      const auto& sync = document.at(kSyncKey);
      manifest.sync = {.kind = sync.at("kind").get<std::string>(),
                       .ranks = integer_of<int>(sync.at("ranks"))};
    }
    if (document.contains(kReductionKey))
      manifest.reduction = reduction_mark_of(document.at(kReductionKey));
    for (const auto& [name, digest] : document.at("files").items()) {
      manifest.files[name] = {.bytes = integer_of(digest.at("bytes")),
                              .sha256 = digest.at("sha256").get<std::string>()};
    }
  } catch (const nlohmann::json::exception& failure) {
    return unusable(std::string("lacks a field: ") + failure.what());
  }
  return manifest;
}

}  // namespace tj::trainer
