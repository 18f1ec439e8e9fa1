#include "trainer/data/token_manifest.h"

#include <nlohmann/json.hpp>

#include "trainer/values/json_integer.h"
namespace tj::trainer {
namespace {
using nlohmann::ordered_json;
constexpr int kVersion = 1;
constexpr const char* kKind = "trainingjob-tokens";

Error unusable(const std::string& message) {
  return {.code = Code::invalid, .message = message, .subject = {}};
}

ordered_json to_json(const PrepareIdentity& identity) {
  return {{"tokenizer", identity.tokenizer},
          {"tokenizer_sha256", identity.tokenizer_sha256},
          {"vocabulary", identity.vocabulary},
          {"document_end", identity.document_end},
          {"format", identity.format},
          {"field", identity.field},
          {"val_fraction", identity.val_fraction},
          {"part_bytes", identity.part_bytes},
          {"input_files", identity.input_files},
          {"input_bytes", identity.input_bytes},
          {"input_sha256", identity.input_sha256}};
}

PrepareIdentity identity_of(const ordered_json& json) {
  PrepareIdentity identity;
  json.at("tokenizer").get_to(identity.tokenizer);
  json.at("tokenizer_sha256").get_to(identity.tokenizer_sha256);
  identity.vocabulary = integer_of(json.at("vocabulary"));
  identity.document_end = integer_of(json.at("document_end"));
  json.at("format").get_to(identity.format);
  json.at("field").get_to(identity.field);
  json.at("val_fraction").get_to(identity.val_fraction);
  identity.part_bytes = integer_of(json.at("part_bytes"));
  identity.input_files = integer_of(json.at("input_files"));
  identity.input_bytes = integer_of(json.at("input_bytes"));
  json.at("input_sha256").get_to(identity.input_sha256);
  return identity;
}

ordered_json to_json(const std::vector<TokenFileEntry>& files) {
  ordered_json list = ordered_json::array();
  std::int64_t tokens = 0;
  std::int64_t documents = 0;
  for (const auto& file : files) {
    tokens += file.tokens;
    documents += file.documents;
    list.push_back({{"file", file.file},
                    {"tokens", file.tokens},
                    {"documents", file.documents},
                    {"header_crc32", file.header_crc32}});
  }
  return {{"tokens", tokens}, {"documents", documents}, {"shards", std::move(list)}};
}

std::vector<TokenFileEntry> token_files_of(const ordered_json& json) {
  std::vector<TokenFileEntry> files;
  for (const auto& entry : json.at("shards")) {
    files.push_back({.file = entry.at("file").get<std::string>(),
                     .tokens = integer_of(entry.at("tokens")),
                     .documents = integer_of(entry.at("documents")),
                     .header_crc32 = entry.at("header_crc32").get<std::string>()});
  }
  return files;
}

/// Folders of before it was kept have none. It lies in the folder itself.
TokenizerFile tokenizer_file_of(const ordered_json& document) {
  if (!document.contains("tokenizer_file")) return {};
  const auto& json = document.at("tokenizer_file");
  const auto name = json.at("file").get<std::string>();
  if (name.empty() || name.find('/') != std::string::npos) return {};
  return {.file = name,
          .bytes = integer_of(json.at("bytes")),
          .sha256 = json.at("sha256").get<std::string>()};
}

/// The document, if it says of itself that it is of `kind` and of a version we read.
Result<ordered_json> document_from(std::string_view text) {
  auto document = ordered_json::parse(text, nullptr, false);
  if (!document.is_object()) return unusable("is not a JSON object (cut short?)");
  if (document.value("kind", "") != kKind)
    return unusable("has no \"kind\": \"" + std::string(kKind) + "\"");
  const auto version = document.contains("version") ? integer_of<int>(document["version"]) : 0;
  if (version != kVersion) {
    return unusable("is of version " + std::to_string(version) + "; this trainer reads version " +
                    std::to_string(kVersion));
  }
  return document;
}

/// nlohmann throws on a missing key or a wrong type.
template <typename Read>
auto checked(std::string_view text, Read&& read) -> Result<decltype(read(ordered_json()))> {
  try {
    const auto document = document_from(text);
    if (!document) return document.error();
    return read(*document);
  } catch (const nlohmann::json::exception& failure) {
    return unusable(std::string("is not as expected: ") + failure.what());
  }
}

}  // namespace

bool is_token_manifest(std::string_view text) { return text.find(kKind) != std::string_view::npos; }

std::string token_manifest_text(const TokenManifest& manifest) {
  ordered_json document = {
      {"kind", kKind}, {"version", kVersion}, {"made_from", to_json(manifest.made_from)}};
  if (const auto& file = manifest.tokenizer_file; !file.file.empty())
    document["tokenizer_file"] = {
        {"file", file.file}, {"bytes", file.bytes}, {"sha256", file.sha256}};
  document["train"] = to_json(manifest.train);
  document["val"] = to_json(manifest.val);
  return document.dump(1) + "\n";
}

Result<TokenManifest> token_manifest_from(std::string_view text) {
  return checked(text, [](const ordered_json& document) {
    return TokenManifest{.made_from = identity_of(document.at("made_from")),
                         .tokenizer_file = tokenizer_file_of(document),
                         .train = token_files_of(document.at("train")),
                         .val = token_files_of(document.at("val"))};
  });
}

std::string identity_text(const PrepareIdentity& identity) {
  const ordered_json document = {
      {"kind", kKind}, {"version", kVersion}, {"made_from", to_json(identity)}};
  return document.dump(1) + "\n";
}

Result<PrepareIdentity> identity_from(std::string_view text) {
  return checked(
      text, [](const ordered_json& document) { return identity_of(document.at("made_from")); });
}

std::string difference(const PrepareIdentity& now, const PrepareIdentity& before) {
  const auto new_values = to_json(now);
  const auto old_values = to_json(before);
  for (const auto& [name, value] : new_values.items()) {
    if (value != old_values.at(name))
      return name + " is " + value.dump() + " and was " + old_values.at(name).dump();
  }
  return "";
}

}  // namespace tj::trainer
