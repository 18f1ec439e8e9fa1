#include "tests/crd/case_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/places.h"
#include "yaml/yaml_json.h"

namespace tj {
namespace {

/// The rest of `line` behind "# KEY: ", if it starts so.
bool read_comment(const std::string& line, const std::string& key, std::string& rest) {
  const std::string start = "# " + key + ": ";
  if (line.rfind(start, 0) != 0) return false;
  rest = line.substr(start.size());
  return true;
}

CaseFile read_case_file(const std::filesystem::path& path) {
  CaseFile file{.name = path.stem().string(),
                .manifest = read_yaml(path.string()),
                .expectations = {},
                .reading = nullptr};
  std::ifstream stream(path);
  std::string line;
  std::string rest;
  while (std::getline(stream, line)) {
    if (read_comment(line, "field", rest)) file.expectations.push_back({.field = rest, .says = {}});
    if (read_comment(line, "read", rest)) file.reading = nlohmann::json::parse(rest);
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

std::vector<nlohmann::json> read_yaml_documents(const std::string& path) {
  std::ifstream stream(path);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  auto documents = parse_yaml(text, path);
  if (!documents) throw std::runtime_error(describe(documents.error()));
  return *std::move(documents);
}

nlohmann::json read_yaml(const std::string& path) {
  const auto documents = read_yaml_documents(path);
  if (documents.size() != 1) throw std::runtime_error(path + ": must hold one document");
  return documents.front();
}

std::vector<CaseFile> read_case_files() {
  std::vector<CaseFile> files;
  const std::filesystem::path folder = std::filesystem::path(source_dir()) / "tests/crd/manifests";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(read_case_file(entry.path()));
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

}  // namespace tj
