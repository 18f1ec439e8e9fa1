#include "trainer/data/bpe_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "trainer/data/spelled_bpe.h"
#include "trainer/data/tokenizer_json.h"
#include "trainer/process/durable_file.h"
#include "trainer/values/json_integer.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kFileBytesMax = 64 << 20;  // GPT-2's tokenizer.json has 1.4 MB

Error invalid(std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = {}};
}

Error in_file(Error error, const fs::path& file) {
  error.subject = file.string();
  return error;
}

Result<void> add_ids(const std::string& vocabulary, SpelledBpe& spelled) {
  try {
    const json document = json::parse(vocabulary);
    for (const auto& [token, id] : document.items()) {
      if (const auto added = add_id(token, integer_of(id), spelled); !added) return added;
    }
    return {};
  } catch (const json::parse_error& failure) {
    return invalid("at byte " + std::to_string(failure.byte) + ": is no JSON (cut short?)");
  } catch (const json::exception& failure) {
    return invalid(std::string("is not as expected: ") + failure.what());
  }
}

std::optional<SpelledBpe::Merge> merge_from(std::string_view line) {
  const auto space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size())
    return std::nullopt;
  if (line.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
  return SpelledBpe::Merge{std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

Result<void> add_merge_lines(const std::string& text, SpelledBpe& spelled) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool is_version = begin == 0 && line.starts_with("#version");
    if (!line.empty() && !is_version) {
      auto merge = merge_from(line);
      if (!merge) {
        return invalid("at byte " + std::to_string(begin) + ": \"" +
                       std::string(line.substr(0, 40)) +
                       "\" is not two tokens with a space between");
      }
      spelled.merges.push_back(std::move(*merge));
    }
    begin = end + 1;
  }
  return {};
}

std::string hash_of(const SpelledBpe& spelled) {
  Sha256 hash;
  const auto add = [&](const std::string& line) { hash.update(std::as_bytes(std::span(line))); };
  for (const auto& [token, id] : spelled.ids) add(token + '\t' + std::to_string(id) + '\n');
  for (const auto& [left, right] : spelled.merges) add(left + ' ' + right + '\n');
  for (const auto& token : spelled.cut) add("cut " + token + '\n');
  if (spelled.words == WordRule::qwen2) add("qwen2's words\n");
  if (spelled.is_composed) add("form C\n");
  return std::move(hash).hex();
}

/// The largest id, and one.
Result<std::int64_t> size_of(const SpelledBpe& spelled) {
  std::vector<const std::string*> by_id;
  for (const auto& [token, id] : spelled.ids) {
    const auto at = static_cast<std::size_t>(id);
    if (by_id.size() <= at) by_id.resize(at + 1);
    if (by_id[at] != nullptr)
      return invalid("\"" + *by_id[at] + "\" and \"" + token + "\" have the same id, " +
                     std::to_string(id));
    by_id[at] = &token;
  }
  return static_cast<std::int64_t>(by_id.size());
}

Result<std::uint32_t> id_of(const SpelledBpe& spelled, const std::string& token) {
  const auto found = spelled.ids.find(token);
  if (found == spelled.ids.end()) return invalid("has no token \"" + token + "\"");
  return static_cast<std::uint32_t>(found->second);
}

Result<MergeTable> merges_of(const SpelledBpe& spelled) {
  if (spelled.merges.size() > MergeTable::kNone)
    return invalid("has " + std::to_string(spelled.merges.size()) + " merges; at most " +
                   std::to_string(MergeTable::kNone) + " are possible");
  MergeTable merges(spelled.merges.size());
  for (const auto& [left, right] : spelled.merges) {
    const auto left_id = id_of(spelled, left);
    const auto right_id = id_of(spelled, right);
    const auto merged_id = id_of(spelled, left + right);
    for (const auto* const id : {&left_id, &right_id, &merged_id})
      if (!*id) return id->error();
    if (!merges.add(*left_id, *right_id, *merged_id))
      return invalid("has the merge of \"" + left + "\" and \"" + right + "\" twice");
  }
  return merges;
}

Result<BpeVocabulary> compile(const SpelledBpe& spelled) {
  BpeVocabulary vocabulary;
  const auto size = size_of(spelled);
  if (!size) return size.error();
  vocabulary.size = *size;
  const auto spellings = byte_spellings();
  for (std::size_t byte = 0; byte < spellings.size(); ++byte) {
    const auto id = id_of(spelled, spellings[byte]);
    if (!id) return id.error();
    vocabulary.byte_ids[byte] = *id;
  }
  auto merges = merges_of(spelled);
  if (!merges) return merges.error();
  vocabulary.merges = std::move(*merges);
  const auto document_end = id_of(spelled, spelled.document_end);
  if (!document_end) return document_end.error();
  vocabulary.document_end = *document_end;
  const auto of = [&](const std::string& token) {
    return static_cast<std::uint32_t>(spelled.ids.at(token));
  };
  for (const auto& token : spelled.specials) vocabulary.specials[token] = of(token);
  for (const auto& token : spelled.cut) vocabulary.cut[token] = of(token);
  vocabulary.words = spelled.words;
  vocabulary.is_composed = spelled.is_composed;
  vocabulary.sha256 = hash_of(spelled);
  return vocabulary;
}

Result<BpeVocabulary> read_tokenizer_json(const fs::path& file) {
  auto text = read_small_file(file, kFileBytesMax);
  if (!text) return text.error();
  auto vocabulary = bpe_vocabulary_from(std::move(*text));
  if (!vocabulary) return in_file(vocabulary.error(), file);
  return vocabulary;
}

Result<BpeVocabulary> read_two_files(const fs::path& ids_file, const fs::path& merges_file) {
  SpelledBpe spelled;
  spelled.document_end = kEndOfText;
  const auto ids = read_small_file(ids_file, kFileBytesMax);
  if (!ids) return ids.error();
  if (const auto added = add_ids(*ids, spelled); !added) return in_file(added.error(), ids_file);
  const auto merges = read_small_file(merges_file, kFileBytesMax);
  if (!merges) return merges.error();
  if (const auto added = add_merge_lines(*merges, spelled); !added)
    return in_file(added.error(), merges_file);
  auto vocabulary = compile(spelled);
  if (!vocabulary) return in_file(vocabulary.error(), ids_file);
  vocabulary->tokenizer_json = tokenizer_json_text(spelled);
  return vocabulary;
}

}  // namespace

Result<BpeVocabulary> bpe_vocabulary_from(std::string tokenizer_json) {
  const auto spelled = spelled_from_tokenizer_json(tokenizer_json);
  if (!spelled) return spelled.error();
  auto vocabulary = compile(*spelled);
  if (vocabulary) vocabulary->tokenizer_json = std::move(tokenizer_json);
  return vocabulary;
}

Result<BpeVocabulary> read_bpe_vocabulary(const fs::path& path) {
  if (!fs::is_directory(path)) return read_tokenizer_json(path);
  if (fs::exists(path / "vocab.json") && fs::exists(path / "merges.txt"))
    return read_two_files(path / "vocab.json", path / "merges.txt");
  if (fs::exists(path / "encoder.json") && fs::exists(path / "vocab.bpe"))
    return read_two_files(path / "encoder.json", path / "vocab.bpe");
  if (fs::exists(path / kTokenizerJsonFile)) return read_tokenizer_json(path / kTokenizerJsonFile);
  return Error{.code = Code::not_found,
               .message =
                   "holds neither tokenizer.json, nor vocab.json and merges.txt, nor "
                   "encoder.json and vocab.bpe",
               .subject = path.string()};
}

}  // namespace tj::trainer
