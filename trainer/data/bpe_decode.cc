#include "trainer/data/bpe_decode.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "contract/utf8.h"
#include "trainer/data/spelled_bpe.h"
#include "trainer/process/durable_file.h"
#include "trainer/values/json_integer.h"
#include "trainer/values/json_text.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

using ByteOfSpelling = std::unordered_map<std::string, char>;

ByteOfSpelling byte_of_spelling() {
  ByteOfSpelling bytes;
  const auto spellings = byte_spellings();
  for (std::size_t byte = 0; byte < spellings.size(); ++byte)
    bytes[spellings[byte]] = static_cast<char>(byte);
  return bytes;
}

/// Absent: some character stands for no byte.
std::optional<std::string> bytes_of(const std::string& spelled, const ByteOfSpelling& of) {
  std::string bytes;
  for (std::string_view rest = spelled; !rest.empty();) {
    const auto size = std::max<std::size_t>(1, utf8_sequence_bytes(rest));
    const auto found = of.find(std::string(rest.substr(0, size)));
    if (found == of.end()) return std::nullopt;
    bytes += found->second;
    rest.remove_prefix(size);
  }
  return bytes;
}

Error invalid(const fs::path& file, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = file.string()};
}

Result<json> read_json(const fs::path& file) {
  const auto text = read_small_file(file, kTokenizerBytesMax);
  if (!text) return text.error();
  auto document = json_of(*text);
  if (!document.is_object()) return invalid(file, "is not a JSON object (cut short?)");
  return document;
}

/// Throws as integer_of().
Result<std::int64_t> id_of(const json& number, const std::string& token, const fs::path& file) {
  const auto id = integer_of(number);
  if (id >= 0 && id < kBpeIdsMax) return id;
  return invalid(file, "the id of \"" + token + "\" is " + std::to_string(id) +
                           "; it must be from 0 to " + std::to_string(kBpeIdsMax - 1));
}

Result<fs::path> file_with_ids(const fs::path& path) {
  std::error_code unreadable;
  if (!fs::is_directory(path, unreadable)) return path;
  const std::pair<const char*, const char*> pairs[] = {{"vocab.json", "merges.txt"},
                                                       {"encoder.json", "vocab.bpe"},
                                                       {kTokenizerFile, kTokenizerFile}};
  for (const auto& [ids, merges] : pairs)
    if (fs::exists(path / ids, unreadable) && fs::exists(path / merges, unreadable))
      return path / ids;
  return Error{.code = Code::not_found,
               .message =
                   "holds neither tokenizer.json, nor vocab.json and merges.txt, nor "
                   "encoder.json and vocab.bpe",
               .subject = path.string()};
}

}  // namespace

std::optional<fs::path> tokenizer_file_beside(const fs::path& path) {
  std::error_code unreadable;
  const auto folder = fs::is_directory(path, unreadable) ? path : path.parent_path();
  const auto file = folder / kTokenizerFile;
  if (!fs::exists(file, unreadable)) return std::nullopt;
  return file;
}

TokenBytes TokenBytes::of_bytes() {
  TokenBytes all;
  for (std::int64_t byte = 0; byte < 256; ++byte)
    all.set(byte, std::string(1, static_cast<char>(byte)));
  return all;
}

Result<TokenBytes> TokenBytes::read(const fs::path& path) {
  const auto file = file_with_ids(path);
  if (!file) return file.error();
  const auto document = read_json(*file);
  if (!document) return document.error();
  const bool is_whole = document->contains("model");  // else it is nothing but the ids
  TokenBytes all;
  try {
    const auto of = byte_of_spelling();
    const json& ids = is_whole ? document->at("model").at("vocab") : *document;
    for (const auto& [token, number] : ids.items()) {
      const auto id = id_of(number, token, *file);
      if (!id) return id.error();
      all.set(*id, bytes_of(token, of));
    }
    const json added = is_whole ? document->value("added_tokens", json::array()) : json::array();
    for (const auto& token : added) {  // these are spelled as they are
      const auto content = token.at("content").get<std::string>();
      const auto id = id_of(token.at("id"), content, *file);
      if (!id) return id.error();
      all.set(*id, content);
    }
  } catch (const json::exception& failure) {
    return invalid(*file, std::string("is not as expected: ") + failure.what());
  }
  return all;
}

std::optional<std::string_view> TokenBytes::find(std::int64_t id) const {
  if (id < 0 || id >= size()) return std::nullopt;
  const auto& bytes = bytes_[static_cast<std::size_t>(id)];
  return bytes ? std::optional<std::string_view>(*bytes) : std::nullopt;
}

void TokenBytes::set(std::int64_t id, std::optional<std::string> bytes) {
  if (id >= size()) bytes_.resize(static_cast<std::size_t>(id) + 1);
  bytes_[static_cast<std::size_t>(id)] = std::move(bytes);
}

}  // namespace tj::trainer
