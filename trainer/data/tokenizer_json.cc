#include "trainer/data/tokenizer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/data/qwen2_words.h"
#include "trainer/values/json_integer.h"
#include "trainer/values/json_text.h"

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

std::string other_byte_level(const json& words, bool has_pattern) {
  const std::string name = "pre_tokenizer";
  if (words.value("type", "") != "ByteLevel") return name + ".type is not ByteLevel";
  if (words.value("add_prefix_space", true)) return name + ".add_prefix_space is true";
  if (words.value("use_regex", true) != has_pattern)
    return name + ".use_regex is " + (has_pattern ? "false" : "true");
  return "";
}

/// Takes GPT-2's words, or Qwen2's: a pattern of its own, then bytes.
std::string take_words(const json& words, SpelledBpe& spelled) {
  if (words.value("type", "") != "Sequence") return other_byte_level(words, true);
  const auto& parts = words.at("pretokenizers");
  if (parts.size() != 2) return "pre_tokenizer has " + std::to_string(parts.size()) + " parts";
  const auto& split = parts.at(0);
  const bool is_split = split.value("type", "") == "Split" && !split.value("invert", false) &&
                        split.value("behavior", "") == "Isolated";
  if (!is_split) return "pre_tokenizer's first part is not an isolating Split";
  const auto& pattern = split.at("pattern");
  if (!pattern.contains("Regex") || pattern.at("Regex") != kQwen2Pattern)
    return "pre_tokenizer's pattern is not Qwen2's";
  spelled.words = WordRule::qwen2;
  return other_byte_level(parts.at(1), false);
}

/// Takes what stands around the model, or says why it is another tokenizer's. What truncates and
/// pads is about batches.
std::string take_surroundings(const json& document, SpelledBpe& spelled) {
  if (!is_null(document, "normalizer")) {
    if (document.at("normalizer").value("type", "") != "NFC")
      return "it has a normalizer that is not NFC";
    spelled.is_composed = true;
  }
  if (is_null(document, "pre_tokenizer")) return "it has no pre_tokenizer";
  if (auto differs = take_words(document.at("pre_tokenizer"), spelled); !differs.empty())
    return differs;
  if (is_null(document, "post_processor")) return "";
  const auto& after = document.at("post_processor");
  if (after.value("type", "") == "ByteLevel") return "";  // only offsets
  return "post_processor.type is not ByteLevel: it may add tokens";
}

/// A token that is not special is cut out of text where it stands, and so needs no other rule.
std::string other_cut(const json& added) {
  for (const char* const rule : {"single_word", "lstrip", "rstrip", "normalized"})
    if (added.value(rule, false)) return std::string(rule) + " is true";
  return "";
}

/// Adds the added tokens and finds the one that ends documents: <|endoftext|>, or the only special
/// one that there is.
Result<void> add_added_tokens(const json& document, SpelledBpe& spelled) {
  auto& specials = spelled.specials;
  for (const auto& added : document.value("added_tokens", json::array())) {
    const auto content = added.at("content").get<std::string>();
    if (const auto done = add_id(content, integer_of(added.at("id")), spelled); !done) return done;
    if (content.empty()) return invalid("has an added token without a text");
    if (added.value("special", true)) {
      specials.insert(content);
      continue;
    }
    if (const auto differs = other_cut(added); !differs.empty())
      return invalid("is no byte-level BPE that ours equals: of the added token \"" + content +
                     "\", which is not special, " + differs);
    spelled.cut.insert(content);
  }
  spelled.document_end = kEndOfText;
  if (specials.size() == 1 && !spelled.ids.contains(kEndOfText))
    spelled.document_end = *specials.begin();
  if (!spelled.ids.contains(spelled.document_end))
    return invalid("has no token \"" + std::string(kEndOfText) + "\", and " +
                   std::to_string(specials.size()) +
                   " other special tokens: which one ends a document is not known");
  specials.insert(spelled.document_end);
  for (const auto& special : specials) spelled.cut.erase(special);
  return {};
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
  SpelledBpe spelled;
  std::string differs = other_model(model);
  if (differs.empty()) differs = take_surroundings(document, spelled);
  if (!differs.empty()) return invalid("is not GPT-2's byte-level BPE, nor Qwen2's: " + differs);
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

/// By their ids.
std::string list_of_added(const SpelledBpe& spelled) {
  std::vector<std::pair<std::int64_t, std::string>> by_id;
  auto added = spelled.specials;
  added.insert(spelled.document_end);
  added.insert(spelled.cut.begin(), spelled.cut.end());
  for (const auto& token : added) by_id.emplace_back(spelled.ids.at(token), token);
  std::ranges::sort(by_id);
  std::string list;
  for (const auto& [id, token] : by_id) {
    list += list.empty() ? "" : ",\n";
    list += "    {\n      \"id\": " + std::to_string(id) + ",\n      \"content\": " + quoted(token);
    for (const char* const rule : {"single_word", "lstrip", "rstrip", "normalized"})
      list += std::string(",\n      \"") + rule + "\": false";
    list += std::string(",\n      \"special\": ") +
            (spelled.cut.contains(token) ? "false" : "true") + "\n    }";
  }
  return list;
}

std::string words_text(WordRule words) {
  if (words == WordRule::gpt2)
    return R"({
    "type": "ByteLevel",
    "add_prefix_space": false,
    "trim_offsets": true,
    "use_regex": true
  })";
  return R"({
    "type": "Sequence",
    "pretokenizers": [
      {
        "type": "Split",
        "pattern": {
          "Regex": )" +
         quoted(std::string(kQwen2Pattern)) + R"(
        },
        "behavior": "Isolated",
        "invert": false
      },
      {
        "type": "ByteLevel",
        "add_prefix_space": false,
        "trim_offsets": true,
        "use_regex": false
      }
    ]
  })";
}

}  // namespace

Result<SpelledBpe> spelled_from_tokenizer_json(std::string_view text) {
  if (is_nested_too_deep(text))
    return invalid("is nested more than " + std::to_string(kJsonDepthMax) + " levels deep");
  try {
    const auto document = json::parse(text);
    if (!document.is_object()) return invalid("is not a JSON object");
    return spelled_from(document);
  } catch (const json::parse_error& failure) {
    return invalid("at byte " + std::to_string(failure.byte) + ": is no JSON (cut short?)");
  } catch (const json::exception& failure) {  // a missing key or a wrong type
    return invalid("is not as expected: " + json_words(failure));
  }
}

std::string tokenizer_json_text(const SpelledBpe& spelled) {
  return R"({
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [
)" + list_of_added(spelled) +
         R"(
  ],
  "normalizer": )" +
         (spelled.is_composed ? "{\n    \"type\": \"NFC\"\n  }" : "null") + R"(,
  "pre_tokenizer": )" +
         words_text(spelled.words) + R"(,
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
