#include "tests/crd/case_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace tj {
namespace {

using nlohmann::json;

json to_json(const YAML::Node& node) {
  if (node.IsMap()) {
    json object = json::object();
    for (const auto& entry : node) object[entry.first.Scalar()] = to_json(entry.second);
    return object;
  }
  if (node.IsSequence()) {
    json list = json::array();
    for (const auto& entry : node) list.push_back(to_json(entry));
    return list;
  }
  if (!node.IsScalar()) return nullptr;
  const bool is_plain = node.Tag() == "?";
  bool truth = false;
  long long integer = 0;
  double number = 0;
  if (!is_plain) return node.Scalar();
  if (YAML::convert<long long>::decode(node, integer)) return integer;
  if (YAML::convert<double>::decode(node, number)) return number;
  if (YAML::convert<bool>::decode(node, truth)) return truth;
  return node.Scalar();
}

/// The rest of `line` behind "# KEY: ", if it starts so.
bool read_comment(const std::string& line, const std::string& key, std::string& rest) {
  const std::string start = "# " + key + ": ";
  if (line.rfind(start, 0) != 0) return false;
  rest = line.substr(start.size());
  return true;
}

CaseFile read_case_file(const std::filesystem::path& path) {
  CaseFile file{
      .name = path.stem().string(), .manifest = read_yaml(path.string()), .expectations = {}};
  std::ifstream stream(path);
  std::string line;
  std::string rest;
  while (std::getline(stream, line)) {
    if (read_comment(line, "field", rest)) file.expectations.push_back({.field = rest, .says = {}});
    if (read_comment(line, "says", rest))
      file.expectations.at(file.expectations.size() - 1).says = rest;
  }
  const bool is_good = file.name.rfind("good-", 0) == 0;
  if (is_good != file.expectations.empty()) {
    throw std::runtime_error(path.string() +
                             ": files named good-* expect nothing, all others expect a field");
  }
  return file;
}

}  // namespace

json read_yaml(const std::string& path) { return to_json(YAML::LoadFile(path)); }

std::vector<CaseFile> read_case_files() {
  std::vector<CaseFile> files;
  const std::filesystem::path folder = std::filesystem::path(TJ_SOURCE_DIR) / "tests/crd/manifests";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(read_case_file(entry.path()));
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

}  // namespace tj
