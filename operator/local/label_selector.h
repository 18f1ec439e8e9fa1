// Kubernetes label and field selectors as the operator and its tests use them: `key`, `!key`,
// `key=value`, `key!=value`, joined by commas. The in-memory API server answers lists and watches
// with it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj {

class LabelSelector {
 public:
  using Labels = std::map<std::string, std::string>;

  /// Empty text selects everything. Fails with Code::invalid on what it can't read.
  static Result<LabelSelector> parse(const std::string& text);
  bool matches(const Labels& labels) const;
  /// What it asks about.
  std::vector<std::string> keys() const;

 private:
  enum class Operator { exists, absent, equal, not_equal };
  struct Requirement {
    Operator op = Operator::exists;
    std::string key;
    std::string value;
  };
  std::vector<Requirement> requirements_;
};

}  // namespace tj
