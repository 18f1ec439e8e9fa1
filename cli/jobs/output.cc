#include "cli/jobs/output.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/jobs/table.h"
#include "cli/plain_text.h"
#include "cli/yaml_text.h"
#include "contract/names.h"
#include "operator/api/read.h"

namespace tj {
namespace {

using nlohmann::json;

std::string as_text(const json& value, const Output& output) {
  if (output == "yaml") return yaml_text(value);
  return value.dump(4, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string name_of(const json& object) {
  const std::string name = read::string_at(read::object_at(object, "metadata"), "name");
  return read::string_at(object, "kind") == "Event" ? "event/" + name : resource_name(name);
}

std::vector<std::string> words_of(const std::string& forms) {
  std::vector<std::string> words(1);
  for (const char letter : forms) {
    if (letter == '|') {
      words.emplace_back();
    } else {
      words.back() += letter;
    }
  }
  return words;
}

}  // namespace

void add_output_flag(CLI::App& command, Output& output, const std::string& forms) {
  command.add_option("-o,--output", output, "the form of the answer")
      ->check(CLI::IsMember(words_of(forms)).description(""))
      ->type_name(forms);
}

std::string resource_name(const std::string& job) {
  return "trainingjob." + std::string(names::kApiGroup) + "/" + job;
}

std::string formatted(const json& object, const Output& output) {
  return output == "name" ? name_of(object) + "\n" : as_text(object, output);
}

std::string formatted(const std::vector<json>& objects, const Output& output) {
  if (output != "name")
    return as_text({{"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}}, output);
  std::string text;
  for (const json& object : objects) text += name_of(object) + "\n";
  return text;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace tj
