#include "trainer/train/chosen_flags.h"

#include <nlohmann/json.hpp>

#include "trainer/process/durable_file.h"
#include "trainer/train/accelerate_config.h"
#include "trainer/train/deepspeed_config.h"
#include "yaml/yaml_json.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kFileBytesMax = 1 << 20;

Result<std::string> read(const std::string& flag, const std::string& path) {
  auto text = read_small_file(path, kFileBytesMax);
  if (text) return text;
  return Error{
      .code = Code::invalid, .message = describe(text.error()), .subject = flag + ": " + path};
}

/// Configurations of ours have plain names.
bool names_file(const std::string& config) {
  return config.ends_with(".yaml") || config.ends_with(".yml") || config.ends_with(".json") ||
         config.find('/') != std::string::npos;
}

void add(std::vector<std::string>& lines, std::vector<std::string> more) {
  lines.insert(lines.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

Result<void> add_deepspeed(ChosenFlags& chosen, int world_size) {
  const auto path = chosen.flags.find("--deepspeed");
  if (path == chosen.flags.end()) return {};
  const auto text = read("--deepspeed", path->second);
  if (!text) return text.error();
  const auto config = deepspeed_config_from(*text, world_size);
  if (!config) return config.error();
  auto all = with_deepspeed(chosen.flags, *config);
  if (!all) return all.error();
  for (const auto& [name, value] : config->flags)
    if (!chosen.flags.contains(name)) chosen.origins[name] = "deepspeed";
  chosen.flags = std::move(*all);
  add(chosen.notes, deepspeed_lines(*config));
  return {};
}

Result<nlohmann::json> read_yaml(const std::string& path) {
  const auto text = read("--config", path);
  if (!text) return text.error();
  auto documents = parse_yaml(*text, "--config " + path);
  if (!documents) return documents.error();
  if (documents->size() == 1) return std::move(documents->front());
  return Error{.code = Code::invalid,
               .message = "holds " + std::to_string(documents->size()) +
                          " documents; it must be one, as accelerate writes it",
               .subject = "--config: " + path};
}

/// The JSON that deepspeed_config_file names, beside what the YAML itself says.
Result<std::vector<std::string>> add_deepspeed_file(AccelerateConfig& config, int world_size) {
  const std::string key = "--config: deepspeed_config.deepspeed_config_file";
  const auto text = read(key, config.deepspeed_file);
  if (!text) return text.error();
  const auto inner = deepspeed_config_from(*text, world_size);
  if (!inner) {
    Error error = inner.error();
    error.subject = key + ": " + error.subject.substr(error.subject.find(": ") + 2);
    return error;
  }
  for (const auto& [name, value] : inner->flags) {
    const auto [known, is_new] = config.flags.emplace(name, value);
    if (is_new || is_same_value(known->second, value)) continue;
    return Error{.code = Code::invalid,
                 .message = "says " + name + " " + value + ", and the file of --config itself " +
                            known->second + "; one of the two must go",
                 .subject = key + ": " + config.deepspeed_file};
  }
  return deepspeed_lines(*inner);
}

Result<void> add_accelerate(ChosenFlags& chosen, const ProcessEnv& env) {
  const auto path = chosen.flags.find("--config");
  if (path == chosen.flags.end() || !names_file(path->second)) return {};
  const auto document = read_yaml(path->second);
  if (!document) return document.error();
  auto config = accelerate_config_from(*document, env);
  if (!config) return config.error();
  add(chosen.notes, accelerate_lines(*config));
  if (!config->deepspeed_file.empty()) {
    auto lines = add_deepspeed_file(*config, env.world_size);
    if (!lines) return lines.error();
    add(chosen.notes, std::move(*lines));
  }
  for (const auto& [name, value] : config->flags) {
    const auto [known, is_new] = chosen.flags.emplace(name, value);
    if (is_new) {
      chosen.origins[name] = "accelerate";
    } else if (!is_same_value(known->second, value)) {
      chosen.notes.push_back("accelerate: " + name + " " + value + " | not used: " + name + " " +
                             known->second + " is given");
    }
  }
  chosen.flags.erase("--config");
  return {};
}

}  // namespace

Result<ChosenFlags> choose_flags(const Flags& given, const ProcessEnv& env) {
  ChosenFlags chosen{.flags = given, .origins = {}, .notes = {}};
  if (const auto added = add_deepspeed(chosen, env.world_size); !added) return added.error();
  if (const auto added = add_accelerate(chosen, env); !added) return added.error();
  return chosen;
}

void name_origin(std::vector<Setting>& settings, const Flags& origins) {
  for (auto& row : settings) {
    const auto origin = origins.find("--" + row.name);
    if (origin != origins.end()) row.origin = origin->second;
  }
}

}  // namespace tj::trainer
