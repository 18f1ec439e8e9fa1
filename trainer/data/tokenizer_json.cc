#include "trainer/data/tokenizer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/values/json_integer.h"

namespace tj::trainer {
namespace {
using nlohmann::json;

Error invalid(std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = {}};
}

bool is_null(const json& object, const char* name) {
  return !object.contains(name) || object.at(name).is_null();
}

/// Why `model` would merge otherwise than we do; empty if it would not.
std::string other_model(const json& model) {
  if (model.value("type", "BPE") != "BPE") return "model.type is not BPE";
  if (model.value("ignore_merges", false)) return "model.ignore_merges is true";
  if (model.value("byte_fallback", false)) return "model.byte_fallback is true";
  if (!is_null(model, "dropout") && model.at("dropout") != 0)
    return "model.dropout is " + model.at("dropout").dump();
  for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!is_null(model, name) && model.at(name) != "") return std::string("model.") + name;
  }
  return "";
}

/// The same of what stands around the model. What truncates and pads is about batches.
std::string other_surroundings(const json& document) {
  if (!is_null(document, "normalizer")) return "it has a normalizer";
  if (is_null(document, "pre_tokenizer")) return "it has no pre_tokenizer";
  const auto& words = document.at("pre_tokenizer");
  if (words.value("type", "") != "ByteLevel") return "pre_tokenizer.type is not ByteLevel";
  if (words.value("add_prefix_space", true)) return "pre_tokenizer.add_prefix_space is true";
  if (!words.value("use_regex", true)) return "pre_tokenizer.use_regex is false";
  if (is_null(document, "post_processor")) return "";
  const auto& after = document.at("post_processor");
  if (after.value("type", "") == "ByteLevel") return "";  // only offsets
  return "post_processor.type is not ByteLevel: it may add tokens";
}

/// Adds the added tokens and finds the one that ends documents: <|endoftext|>, or the only special
/// one that there is.
Result<void> add_added_tokens(const json& document, SpelledBpe& spelled) {
  std::vector<std::string> specials;
  for (const auto& added : document.value("added_tokens", json::array())) {
    const auto content = added.at("content").get<std::string>();
    if (const auto done = add_id(content, integer_of(added.at("id")), spelled); !done) return done;
    if (!added.value("special", true))
      return invalid("is not GPT-2's byte-level BPE: the added token \"" + content +
                     "\" is not special: it would be cut out of text");
    specials.push_back(content);
  }
  spelled.document_end = kEndOfText;
  if (specials.size() == 1 && !spelled.ids.contains(kEndOfText))
    spelled.document_end = specials.front();
  if (spelled.ids.contains(spelled.document_end)) return {};
  return invalid("has no token \"" + std::string(kEndOfText) + "\", and " +
                 std::to_string(specials.size()) +
                 " other special tokens: which one ends a document is not known");
}

Result<SpelledBpe::Merge> merge_from(const json& merge) {
  if (!merge.is_string())
    return SpelledBpe::Merge{merge.at(0).get<std::string>(), merge.at(1).get<std::string>()};
  const auto& text = merge.get_ref<const std::string&>();
  const auto space = text.find(' ');
  if (space != std::string::npos && space == text.rfind(' ') && space > 0 &&
      space + 1 < text.size())
    return SpelledBpe::Merge{text.substr(0, space), text.substr(space + 1)};
  return invalid("the merge " + merge.dump() + " is not two tokens");
}

Result<SpelledBpe> spelled_from(const json& document) {
  const auto& model = document.at("model");
  std::string differs = other_model(model);
  if (differs.empty()) differs = other_surroundings(document);
  if (!differs.empty()) return invalid("is not GPT-2's byte-level BPE: " + differs);
  SpelledBpe spelled;
  for (const auto& [token, id] : model.at("vocab").items()) {
    if (const auto added = add_id(token, integer_of(id), spelled); !added) return added.error();
  }
  if (const auto added = add_added_tokens(document, spelled); !added) return added.error();
  for (const auto& merge : model.at("merges")) {
    auto pair = merge_from(merge);
    if (!pair) return pair.error();
    spelled.merges.push_back(std::move(*pair));
  }
  return spelled;
}

std::string quoted(const std::string& text) { return json(text).dump(); }

std::string lines_of_ids(const SpelledBpe& spelled) {
  std::vector<std::pair<std::int64_t, const std::string*>> by_id;
  for (const auto& [token, id] : spelled.ids) by_id.emplace_back(id, &token);
  std::ranges::sort(by_id);
  std::string lines;
  for (const auto& [id, token] : by_id) {
    if (!lines.empty()) lines += ",\n";
    lines += "      " + quoted(*token) + ": " + std::to_string(id);
  }
  return lines;
}

std::string list_of_merges(const SpelledBpe& spelled) {
  if (spelled.merges.empty()) return "[]";
  std::string list = "[";
  for (const auto& [left, right] : spelled.merges) {
    list += list.size() == 1 ? "\n" : ",\n";
    list += "      [\n        " + quoted(left) + ",\n        " + quoted(right) + "\n      ]";
  }
  return list + "\n    ]";
}

}  // namespace

Result<SpelledBpe> spelled_from_tokenizer_json(std::string_view text) {
  try {
    return spelled_from(json::parse(text));
  } catch (const json::parse_error& failure) {
    return invalid("at byte " + std::to_string(failure.byte) + ": is no JSON (cut short?)");
  } catch (const json::exception& failure) {  // a missing key or a wrong type
    return invalid(std::string("is not as expected: ") + failure.what());
  }
}

std::string tokenizer_json_text(const SpelledBpe& spelled) {
  return R"({
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [
    {
      "id": )" +
         std::to_string(spelled.ids.at(spelled.document_end)) + R"(,
      "content": )" +
         quoted(spelled.document_end) + R"(,
      "single_word": false,
      "lstrip": false,
      "rstrip": false,
      "normalized": false,
      "special": true
    }
  ],
  "normalizer": null,
  "pre_tokenizer": {
    "type": "ByteLevel",
    "add_prefix_space": false,
    "trim_offsets": true,
    "use_regex": true
  },
  "post_processor": null,
  "decoder": {
    "type": "ByteLevel",
    "add_prefix_space": true,
    "trim_offsets": true,
    "use_regex": true
  },
  "model": {
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": false,
    "vocab": {
)" + lines_of_ids(spelled) +
         R"(
    },
    "merges": )" +
         list_of_merges(spelled) + "\n  }\n}";
}

}  // namespace tj::trainer
