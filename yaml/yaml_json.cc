#include "yaml/yaml_json.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "contract/utf8.h"

namespace tj {
namespace {

using Json = nlohmann::json;

/// Leaves the recursion; caught in parse_yaml alone.
struct WrongYaml {
  YAML::Mark mark;
  std::string message;
};

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool all_digits(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

/// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_float(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const auto exponent_at = text.find_first_of("eE");
  if (exponent_at != std::string_view::npos) {
    std::string_view exponent = text.substr(exponent_at + 1);
    if (exponent.starts_with('-') || exponent.starts_with('+')) exponent.remove_prefix(1);
    if (!all_digits(exponent, "0123456789")) return false;
    text = text.substr(0, exponent_at);
  }
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) return all_digits(text, "0123456789");
  const std::string_view whole = text.substr(0, dot);
  const std::string_view fraction = text.substr(dot + 1);
  if (whole.empty()) return all_digits(fraction, "0123456789");
  return all_digits(whole, "0123456789") &&
         (fraction.empty() || all_digits(fraction, "0123456789"));
}

/// The base that a prefix asks for; the prefix is taken away. A leading 0 is octal, as in YAML 1.1.
int take_base(std::string_view& digits) {
  const bool has_prefix = digits.size() > 1 && digits[0] == '0';
  if (!has_prefix) return 10;
  const char letter = digits[1];
  const int base = letter == 'x' || letter == 'X' ? 16 : letter == 'b' || letter == 'B' ? 2 : 8;
  const bool is_bare_octal = base == 8 && letter != 'o' && letter != 'O';
  digits.remove_prefix(is_bare_octal ? 1 : 2);
  return base;
}

/// A discarded value when `text` is no integer, or one that 64 bits do not hold.
Json integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const int base = take_base(text);
  unsigned long long magnitude = 0;
  const auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  const bool whole = !text.empty() && failure == std::errc{} && end == text.data() + text.size();
  if (!whole) return Json(Json::value_t::discarded);
  if (!negative)
    return magnitude <= INT64_MAX ? Json(static_cast<std::int64_t>(magnitude)) : Json(magnitude);
  if (magnitude > static_cast<unsigned long long>(INT64_MAX)) return Json(Json::value_t::discarded);
  return -static_cast<std::int64_t>(magnitude);
}

/// A discarded value when `text` is no number. 2.0 becomes 2, as where kubectl writes its JSON.
Json number(std::string text) {
  const bool starts_well = text.find_first_of("+-.0123456789") == 0;
  if (!starts_well) return Json(Json::value_t::discarded);
  std::erase(text, '_');
  if (Json whole = integer(text); !whole.is_discarded()) return whole;
  if (!is_float(text)) return Json(Json::value_t::discarded);
  constexpr double kExactMax = 9007199254740992.0;  // 2^53: below it each integer is a double
  const double value = std::strtod(text.c_str(), nullptr);
  if (!std::isfinite(value)) return Json(Json::value_t::discarded);  // as kubectl: a text, then
  const bool is_whole = std::abs(value) < kExactMax && value == std::floor(value);
  return is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json plain_scalar(const std::string& text, const YAML::Mark& mark) {
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (is_one_of(text, {"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"})) {
    return true;
  }
  if (is_one_of(text,
                {"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"})) {
    return false;
  }
  if (Json value = number(text); !value.is_discarded()) return value;
  const std::string_view unsigned_text =
      std::string_view(text).substr(text.starts_with('-') || text.starts_with('+'));
  const bool not_json = is_one_of(unsigned_text, {".inf", ".Inf", ".INF"}) ||
                        is_one_of(text, {".nan", ".NaN", ".NAN"});
  if (not_json) throw WrongYaml{mark, "\"" + text + "\" is no number that an API server takes"};
  return text;
}

/// What is written further, into JSON, must be UTF-8.
const std::string& text_of(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (valid_utf8_bytes(text) != text.size()) throw WrongYaml{node.Mark(), "this text is not UTF-8"};
  return text;
}

Json scalar(const YAML::Node& node) {
  const std::string& tag = node.Tag();
  const bool is_text = tag == "!" || tag == "tag:yaml.org,2002:str";  // quoted, or said so
  return is_text ? Json(text_of(node)) : plain_scalar(text_of(node), node.Mark());
}

/// yaml-cpp 0.7 makes documents without end of what it can't begin one with, a lone comma: they are
/// counted before any is kept.
class DocumentCount : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > kYamlDocumentsMax) {
      throw WrongYaml{mark, "this is no YAML, or more than " + std::to_string(kYamlDocumentsMax) +
                                " documents"};
    }
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int documents_ = 0;
};

void check_document_count(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentCount count;
  while (parser.HandleNextDocument(count)) {}
}

class Converter {
 public:
  Json convert(const YAML::Node& node) {
    if (++nodes_ > kYamlNodesMax) {
      throw WrongYaml{node.Mark(),
                      "the document has more than " + std::to_string(kYamlNodesMax) + " nodes"};
    }
    switch (node.Type()) {
      case YAML::NodeType::Scalar: return scalar(node);
      case YAML::NodeType::Sequence:
      case YAML::NodeType::Map: return one_level_down(node);
      default: return nullptr;
    }
  }

 private:
  /// Not lowered when it throws: then the converter has done its work.
  Json one_level_down(const YAML::Node& node) {
    if (++level_ > kYamlLevelsMax) {
      throw WrongYaml{node.Mark(), "lists and maps stand here in more than " +
                                       std::to_string(kYamlLevelsMax) +
                                       " levels, or one holds itself by an alias"};
    }
    Json value = node.IsMap() ? map(node) : sequence(node);
    --level_;
    return value;
  }

  Json sequence(const YAML::Node& node) {
    Json list = Json::array();
    for (const YAML::Node& item : node) list.push_back(convert(item));
    return list;
  }

  Json map(const YAML::Node& node) {
    Json object = Json::object();
    std::vector<Json> merged;
    for (const auto& entry : node) {
      const YAML::Node& key = entry.first;
      const YAML::Node& value = entry.second;
      if (!key.IsScalar()) throw WrongYaml{key.Mark(), "a key must be a text"};
      const std::string& name = text_of(key);
      if (name == "<<" && key.Tag() != "!") {
        merge_sources(value, merged);
      } else if (object.contains(name)) {
        throw WrongYaml{key.Mark(), "the key \"" + name + "\" stands here twice"};
      } else {
        object[name] = convert(value);
      }
    }
    for (const Json& source : merged) {
      for (const auto& [name, value] : source.items())
        object.emplace(name, value);  // what stands here itself wins
    }
    return object;
  }

  /// yaml.org/type/merge.html: `<<: *anchor` or a list of them.
  void merge_sources(const YAML::Node& value, std::vector<Json>& merged) {
    const Json source = convert(value);
    const Json list = source.is_array() ? source : Json::array({source});
    for (const Json& item : list) {
      if (!item.is_object()) throw WrongYaml{value.Mark(), "<< must name a map, or a list of maps"};
      merged.push_back(item);
    }
  }

  int nodes_ = 0;
  int level_ = 0;
};

Error at(const std::string& source, const YAML::Mark& mark, const std::string& message) {
  std::string place = source;
  if (!mark.is_null())
    place += ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
  return Error{.code = Code::invalid, .message = message, .subject = place, .retry_after = {}};
}

}  // namespace

Result<std::vector<Json>> parse_yaml(const std::string& text, const std::string& source) {
  try {
    check_document_count(text);
    std::vector<Json> documents;
    Converter converter;
    for (const YAML::Node& node : YAML::LoadAll(text)) {
      Json document = converter.convert(node);
      if (!document.is_null()) documents.push_back(std::move(document));
    }
    return documents;
  } catch (const WrongYaml& wrong) {
    return at(source, wrong.mark, wrong.message);
  } catch (const YAML::Exception& failure) {
    return at(source, failure.mark, "not YAML: " + failure.msg);
  }
}

bool reads_as_text(const std::string& plain) {
  try {
    return plain_scalar(plain, YAML::Mark()).is_string();
  } catch (const WrongYaml&) {
    return false;
  }
}

}  // namespace tj
