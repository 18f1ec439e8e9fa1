#include "trainer/data/bpe_files.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "contract/utf8.h"
#include "trainer/process/durable_file.h"
#include "trainer/values/json_integer.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kFileBytesMax = 64 << 20;  // GPT-2's tokenizer.json has 1.4 MB
constexpr std::int64_t kIdsMax = 1 << 20;
constexpr const char* kDocumentEnd = "<|endoftext|>";

struct Pair {
  std::string left;
  std::string right;
};

/// What all the files come down to. Tokens are spelled with the printable stand-ins of bytes.
struct Spelled {
  std::map<std::string, std::int64_t> ids;
  std::vector<Pair> merges;
  fs::path ids_file;
  fs::path merges_file;
};

Error invalid(const fs::path& file, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = file.string()};
}

/// The printable character that stands for each byte (openai/gpt-2: bytes_to_unicode).
std::array<std::string, 256> byte_spellings() {
  std::array<std::string, 256> spellings;
  std::uint32_t next = 256;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
    append_utf8(spellings[byte], is_printable ? byte : next++);
  }
  return spellings;
}

Result<json> read_json(const fs::path& file) {
  const auto text = read_small_file(file, kFileBytesMax);
  if (!text) return text.error();
  try {
    return json::parse(*text);
  } catch (const json::parse_error& failure) {
    return invalid(file, "at byte " + std::to_string(failure.byte) + ": is no JSON (cut short?)");
  }
}

Result<void> add_id(const std::string& token, std::int64_t id, Spelled& spelled) {
  if (id < 0 || id >= kIdsMax) {
    return invalid(spelled.ids_file, "the id of \"" + token + "\" is " + std::to_string(id) +
                                         "; it must be from 0 to " + std::to_string(kIdsMax - 1));
  }
  spelled.ids[token] = id;
  return {};
}

Result<void> add_ids(const json& vocabulary, Spelled& spelled) {
  for (const auto& [token, id] : vocabulary.items()) {
    if (const auto added = add_id(token, integer_of(id), spelled); !added) return added;
  }
  return {};
}

std::optional<Pair> pair_from(std::string_view line) {
  const auto space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size())
    return std::nullopt;
  if (line.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
  return Pair{std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

Result<void> add_merge_lines(const std::string& text, Spelled& spelled) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool is_version = begin == 0 && line.starts_with("#version");
    if (!line.empty() && !is_version) {
      auto pair = pair_from(line);
      if (!pair) {
        return invalid(spelled.merges_file, "at byte " + std::to_string(begin) + ": \"" +
                                                std::string(line.substr(0, 40)) +
                                                "\" is not two tokens with a space between");
      }
      spelled.merges.push_back(std::move(*pair));
    }
    begin = end + 1;
  }
  return {};
}

/// Why a tokenizer.json would encode otherwise than we do; empty if it would not.
std::string not_gpt2(const json& document) {
  const auto& model = document.at("model");
  const auto is_null = [](const json& object, const char* name) {
    return !object.contains(name) || object.at(name).is_null();
  };
  if (model.value("type", "BPE") != "BPE") return "model.type is not BPE";
  if (!is_null(document, "normalizer")) return "it has a normalizer";
  if (is_null(document, "pre_tokenizer")) return "it has no pre_tokenizer";
  const auto& words = document.at("pre_tokenizer");
  if (words.value("type", "") != "ByteLevel") return "pre_tokenizer.type is not ByteLevel";
  if (words.value("add_prefix_space", true)) return "pre_tokenizer.add_prefix_space is true";
  if (!words.value("use_regex", true)) return "pre_tokenizer.use_regex is false";
  if (model.value("ignore_merges", false)) return "model.ignore_merges is true";
  if (model.value("byte_fallback", false)) return "model.byte_fallback is true";
  for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!is_null(model, name) && model.at(name) != "") return std::string("model.") + name;
  }
  return "";
}

Result<Spelled> read_tokenizer_json(const fs::path& file) {
  Spelled spelled{.ids = {}, .merges = {}, .ids_file = file, .merges_file = file};
  const auto document = read_json(file);
  if (!document) return document.error();
  const std::string differs = not_gpt2(*document);
  if (!differs.empty()) return invalid(file, "is not GPT-2's byte-level BPE: " + differs);
  const auto& model = document->at("model");
  if (const auto added = add_ids(model.at("vocab"), spelled); !added) return added.error();
  for (const auto& special : document->value("added_tokens", json::array())) {
    const auto added =
        add_id(special.at("content").get<std::string>(), integer_of(special.at("id")), spelled);
    if (!added) return added.error();
  }
  for (const auto& merge : model.at("merges")) {
    const auto pair = merge.is_string()
                          ? pair_from(merge.get<std::string>())
                          : Pair{merge.at(0).get<std::string>(), merge.at(1).get<std::string>()};
    if (!pair) return invalid(file, "the merge " + merge.dump() + " is not two tokens");
    spelled.merges.push_back(*pair);
  }
  return spelled;
}

Result<Spelled> read_two_files(const fs::path& ids_file, const fs::path& merges_file) {
  Spelled spelled{.ids = {}, .merges = {}, .ids_file = ids_file, .merges_file = merges_file};
  const auto vocabulary = read_json(ids_file);
  if (!vocabulary) return vocabulary.error();
  if (const auto added = add_ids(*vocabulary, spelled); !added) return added.error();
  const auto merges = read_small_file(merges_file, kFileBytesMax);
  if (!merges) return merges.error();
  if (const auto added = add_merge_lines(*merges, spelled); !added) return added.error();
  return spelled;
}

Result<Spelled> read_spelled(const fs::path& path) {
  if (!fs::is_directory(path)) return read_tokenizer_json(path);
  if (fs::exists(path / "vocab.json") && fs::exists(path / "merges.txt"))
    return read_two_files(path / "vocab.json", path / "merges.txt");
  if (fs::exists(path / "encoder.json") && fs::exists(path / "vocab.bpe"))
    return read_two_files(path / "encoder.json", path / "vocab.bpe");
  if (fs::exists(path / "tokenizer.json")) return read_tokenizer_json(path / "tokenizer.json");
  return Error{.code = Code::not_found,
               .message =
                   "holds neither tokenizer.json, nor vocab.json and merges.txt, nor "
                   "encoder.json and vocab.bpe",
               .subject = path.string()};
}

std::string hash_of(const Spelled& spelled) {
  Sha256 hash;
  const auto add = [&](const std::string& line) { hash.update(std::as_bytes(std::span(line))); };
  for (const auto& [token, id] : spelled.ids) add(token + '\t' + std::to_string(id) + '\n');
  for (const auto& [left, right] : spelled.merges) add(left + ' ' + right + '\n');
  return std::move(hash).hex();
}

Result<BpeVocabulary> compile(const Spelled& spelled) {
  BpeVocabulary vocabulary;
  const auto id_of = [&](const std::string& token) -> Result<std::uint32_t> {
    const auto found = spelled.ids.find(token);
    if (found == spelled.ids.end())
      return invalid(spelled.ids_file, "has no token \"" + token + "\"");
    return static_cast<std::uint32_t>(found->second);
  };
  const auto spellings = byte_spellings();
  for (std::size_t byte = 0; byte < spellings.size(); ++byte) {
    const auto id = id_of(spellings[byte]);
    if (!id) return id.error();
    vocabulary.byte_ids[byte] = *id;
  }
  for (const auto& [left, right] : spelled.merges) {
    const auto left_id = id_of(left);
    const auto right_id = id_of(right);
    const auto merged_id = id_of(left + right);
    for (const auto* const id : {&left_id, &right_id, &merged_id})
      if (!*id) return id->error();
    const auto rank = static_cast<std::uint32_t>(vocabulary.merges.size());
    vocabulary.merges.try_emplace(pair_key(*left_id, *right_id),
                                  BpeVocabulary::Merge{.rank = rank, .id = *merged_id});
  }
  const auto document_end = id_of(kDocumentEnd);
  if (!document_end) return document_end.error();
  vocabulary.document_end = *document_end;
  for (const auto& [token, id] : spelled.ids) vocabulary.size = std::max(vocabulary.size, id + 1);
  vocabulary.sha256 = hash_of(spelled);
  return vocabulary;
}

}  // namespace

Result<BpeVocabulary> read_bpe_vocabulary(const fs::path& path) {
  try {
    const auto spelled = read_spelled(path);
    if (!spelled) return spelled.error();
    return compile(*spelled);
  } catch (const json::exception& failure) {  // a missing key or a wrong type
    return invalid(path, std::string("is not as expected: ") + failure.what());
  }
}

}  // namespace tj::trainer
