#include "operator/local/label_selector.h"

namespace tj {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const auto end = std::min(text.find(',', begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

Result<LabelSelector> LabelSelector::parse(const std::string& text) {
  LabelSelector selector;
  if (trimmed(text).empty()) return selector;
  for (const std::string& part : split_commas(text)) {
    Requirement requirement;
    const auto equals = part.find('=');
    if (equals != std::string::npos) {
      const bool negated = equals > 0 && part[equals - 1] == '!';
      const std::size_t value_at = part.compare(equals, 2, "==") == 0 ? equals + 2 : equals + 1;
      requirement = {.op = negated ? Operator::not_equal : Operator::equal,
                     .key = trimmed(part.substr(0, negated ? equals - 1 : equals)),
                     .value = trimmed(part.substr(value_at))};
    } else if (part.starts_with('!')) {
      requirement = {.op = Operator::absent, .key = trimmed(part.substr(1)), .value = ""};
    } else {
      requirement = {.op = Operator::exists, .key = part, .value = ""};
    }
    const bool readable =
        !requirement.key.empty() && requirement.key.find_first_of(" ()!=") == std::string::npos;
    if (!readable) {
      return Error{.code = Code::invalid,
                   .message = "unable to parse requirement: found '" + part + "'",
                   .subject = "labelSelector",
                   .retry_after = {}};
    }
    selector.requirements_.push_back(std::move(requirement));
  }
  return selector;
}

std::vector<std::string> LabelSelector::keys() const {
  std::vector<std::string> keys;
  for (const Requirement& requirement : requirements_) keys.push_back(requirement.key);
  return keys;
}

bool LabelSelector::matches(const Labels& labels) const {
  for (const Requirement& requirement : requirements_) {
    const auto found = labels.find(requirement.key);
    const bool there = found != labels.end();
    const bool equal = there && found->second == requirement.value;
    switch (requirement.op) {
      case Operator::exists:
        if (!there) return false;
        break;
      case Operator::absent:
        if (there) return false;
        break;
      case Operator::equal:
        if (!equal) return false;
        break;
      case Operator::not_equal:
        if (equal) return false;
        break;
    }
  }
  return true;
}

}  // namespace tj
