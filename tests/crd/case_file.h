// One manifest of the table that the CRD and validate.cc share: what is wrong with it stands in its
// comments.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tj {

/// `says` is part of what validate.cc says of `field`. The lines for the server are read by
/// tests/crd/run alone.
struct Expectation {
  std::string field;
  std::string says;
};

struct CaseFile {
  std::string name;
  nlohmann::json manifest;
  std::vector<Expectation> expectations;  // empty: a good manifest
  nlohmann::json reading;  // what fieldOfTheFuture must be after reading; null: not checked
};

/// All of tests/crd/manifests, by name. Throws where a file can't be read: the tests then fail.
std::vector<CaseFile> read_case_files();

/// A YAML file as the JSON that kubectl would send.
nlohmann::json read_yaml(const std::string& path);
/// All documents of a file that may have several.
std::vector<nlohmann::json> read_yaml_documents(const std::string& path);

}  // namespace tj
