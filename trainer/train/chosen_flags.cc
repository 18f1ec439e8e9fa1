#include "trainer/train/chosen_flags.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "trainer/process/durable_file.h"
#include "trainer/train/accelerate_config.h"
#include "trainer/train/deepspeed_config.h"
#include "trainer/workload/flag_reader.h"
#include "yaml/yaml_json.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kFileBytesMax = 1 << 20;
constexpr std::string_view kEnvironment = "environment ";  // begins the origin of a variable's flag

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
  if (!all) return named_by_variable(all.error(), chosen.origins);
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

/// Absent: not set, or empty.
std::optional<std::string> value_of(const EnvironmentFlag& known, const FlagVariables& variables) {
  auto value = variables.lookup ? variables.lookup(known.variable) : std::nullopt;
  return value && value->empty() ? std::nullopt : value;
}

std::string variable_line(const EnvironmentFlag& known, const std::string& value,
                          const std::string& outcome) {
  return std::string("environment: ") + known.variable + " " + value + " | " + outcome;
}

void set_by_variable(ChosenFlags& chosen, const EnvironmentFlag& known, const std::string& value,
                     const std::string& flag_value) {
  const auto [flag, is_new] = chosen.flags.emplace(known.flag, flag_value);
  const std::string name = known.flag;
  if (is_new) {
    chosen.origins[name] = std::string(kEnvironment) + known.variable;
    chosen.notes.push_back(variable_line(known, value, name + " " + flag_value));
  } else if (!is_same_value(flag->second, flag_value)) {
    std::string set = flag->second;
    std::ranges::replace(set, '\n', ' ');
    chosen.notes.push_back(variable_line(known, value, "not used: " + name + " is " + set));
  }
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = failure == std::errc{} && end == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

/// Samples of a pass x passes x ranks. Where nothing says how many passes, as many as make the
/// preset's batch of them.
Result<void> add_pass(ChosenFlags& chosen, const EnvironmentFlag& known, const std::string& value,
                      std::int64_t batch_size, int world_size) {
  constexpr std::int64_t kPassMax = 1'000'000;
  constexpr const char* kPasses = "--accumulation";
  const auto samples = whole_number(value);
  if (!samples || *samples < 1 || *samples > kPassMax)
    return Error{.code = Code::invalid,
                 .message = "is \"" + value + "\"; it must be a whole number from 1 to " +
                            std::to_string(kPassMax),
                 .subject = known.variable};
  const auto together = *samples * world_size;
  const auto is_chosen = chosen.flags.contains(known.flag);
  auto passes = chosen.flags.contains(kPasses) ? whole_number(chosen.flags[kPasses])
                                               : std::optional<std::int64_t>();
  if (!is_chosen && !chosen.flags.contains(kPasses)) {
    passes = std::max<std::int64_t>(1, (batch_size + together - 1) / together);
    set_by_variable(chosen, {known.variable, kPasses}, value, std::to_string(*passes));
  }
  // What is wrong with the flag its reader says.
  if (!passes || *passes < 1 || *passes > kCountMax / together) return {};
  set_by_variable(chosen, known, value, std::to_string(together * *passes));
  return {};
}

}  // namespace

Error named_by_variable(Error error, const Flags& origins) {
  const auto flag_end = std::min(error.subject.find(' '), error.subject.size());
  const auto origin = origins.find(error.subject.substr(0, flag_end));
  if (origin != origins.end() && origin->second.starts_with(kEnvironment))
    error.subject.insert(flag_end, " (" + origin->second + ")");
  return error;
}

std::optional<Error> missing_flag(const Flags& flags, const std::string& flag,
                                  std::span<const EnvironmentFlag> known) {
  const auto variable =
      std::ranges::find_if(known, [&](const auto& each) { return each.flag == flag; });
  if (variable == known.end() || flags.contains(flag)) return std::nullopt;
  return Error{.code = Code::invalid,
               .message = std::string("is missing: give it, or set ") + variable->variable +
                          ", which says it in start scripts and is not set here",
               .subject = flag};
}

void add_variables(ChosenFlags& chosen, const FlagVariables& variables) {
  for (const auto& known : variables.known)
    if (const auto value = value_of(known, variables); value && !known.is_of_pass)
      set_by_variable(chosen, known, *value, *value);
}

Result<ChosenFlags> choose_flags(const Flags& given, const ProcessEnv& env,
                                 const FlagVariables& variables) {
  ChosenFlags chosen{.flags = given, .origins = {}, .notes = {}};
  add_variables(chosen, variables);
  if (const auto added = add_deepspeed(chosen, env.world_size); !added) return added.error();
  if (const auto added = add_accelerate(chosen, env); !added) return added.error();
  for (const auto& known : variables.known) {
    const auto value = value_of(known, variables);
    if (!value || !known.is_of_pass) continue;
    const auto added = add_pass(chosen, known, *value, variables.batch_size, env.world_size);
    if (!added) return added.error();
  }
  return chosen;
}

void name_origin(std::vector<Setting>& settings, const Flags& origins) {
  for (auto& row : settings) {
    const auto origin = origins.find("--" + row.name);
    if (origin != origins.end()) row.origin = origin->second;
  }
}

}  // namespace tj::trainer
