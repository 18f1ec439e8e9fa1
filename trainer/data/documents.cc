#include "trainer/data/documents.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "contract/utf8.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kScanBytes = 64 << 10;
constexpr std::int64_t kHeadBytes = 4096;
/// Plain text without a fitting end of line for so long is cut anywhere between two characters.
constexpr std::int64_t kLineBytesMax = 1 << 20;

Error bad_at(const std::string& path, std::int64_t offset, const std::string& what) {
  return {.code = Code::invalid,
          .message = "at byte " + std::to_string(offset) + ": " + what,
          .subject = path};
}

/// Whether `text` ends with a character that is surely no white space: ASCII that shows, or one
/// from U+3001 on, behind all that Unicode calls white space.
bool ends_with_ink(std::string_view text) {
  if (text.empty()) return false;
  const auto last = static_cast<std::uint8_t>(text.back());
  if (last < 0x80) return last > ' ' && last != 0x7f;
  std::size_t bytes = 1;
  while (bytes < 4 && bytes < text.size() && is_utf8_continuation(text[text.size() - bytes]))
    ++bytes;
  const auto character = text.substr(text.size() - bytes);
  return utf8_sequence_bytes(character) == bytes && character > "\xe3\x80\x80";
}

/// A cut in `window`, which begins `before` bytes ahead of the place to search from.
std::optional<std::size_t> cut_in(std::string_view window, std::size_t before, TextFormat format) {
  if (format == TextFormat::jsonl) {
    const auto line_end = window.find('\n', before == 0 ? 0 : before - 1);
    if (line_end == std::string_view::npos) return std::nullopt;
    return line_end + 1;
  }
  if (format == TextFormat::mediawiki) {
    const auto page = window.find("<page>", before);  // in text a < is written &lt;
    return page == std::string_view::npos ? std::nullopt : std::optional(page);
  }
  if (format == TextFormat::wiki_extractor) {
    const auto doc = window.find("\n<doc ", before == 0 ? 0 : before - 1);
    return doc == std::string_view::npos ? std::nullopt : std::optional(doc + 1);
  }
  for (auto at = window.find('\n', before); at != std::string_view::npos;
       at = window.find('\n', at + 1)) {
    if (ends_with_ink(window.substr(0, at))) return at;
  }
  return std::nullopt;
}

Result<std::int64_t> any_character(const DataFile& file, std::int64_t at) {
  const auto text = file.read(at, 4);
  if (!text) return text.error();
  std::int64_t skipped = 0;
  for (const char byte : *text) {
    if (!is_utf8_continuation(byte) || skipped == 3) break;
    ++skipped;
  }
  return at + skipped;
}

std::string unescaped(std::string_view text) {
  static constexpr std::pair<std::string_view, char> kNamed[] = {
      {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto ampersand = std::min(text.find('&'), text.size());
    result += text.substr(0, ampersand);
    text.remove_prefix(ampersand);
    if (text.empty()) break;
    const auto end = text.substr(0, 12).find(';');
    const auto name = end == std::string_view::npos ? "" : text.substr(1, end - 1);
    const auto* const known = std::ranges::find(kNamed, name, [](auto& row) { return row.first; });
    const bool is_hex = name.starts_with("#x");
    const auto digits = name.substr(std::min<std::size_t>(name.size(), is_hex ? 2 : 1));
    std::uint32_t code = 0;
    const auto parsed =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, is_hex ? 16 : 10);
    const bool is_number = name.starts_with('#') && !digits.empty() && parsed.ec == std::errc{} &&
                           parsed.ptr == digits.data() + digits.size();
    if (known != std::end(kNamed)) {
      result += known->second;
    } else if (is_number) {
      append_utf8(result, code);
    } else {  // as it stands: it is no entity of ours
      result += '&';
      text.remove_prefix(1);
      continue;
    }
    text.remove_prefix(end + 1);
  }
  return result;
}

/// Text may begin with these four letters; it doesn't end with them, too.
Result<bool> is_parquet(const DataFile& file) {
  constexpr std::string_view kMagic = "PAR1";
  if (file.path().extension() == ".parquet") return true;
  for (const std::int64_t at : {std::int64_t{0}, file.bytes() - 4}) {
    const auto end = file.read(std::max<std::int64_t>(0, at), 4);
    if (!end) return end.error();
    if (*end != kMagic) return false;
  }
  return file.bytes() > 8;
}

using Take = std::function<bool(const Document&)>;

Result<void> json_documents(const RecordSlice& slice, const std::string& path, const Take& take) {
  const std::string field(slice.field);
  std::string_view rest = slice.bytes;
  std::int64_t offset = slice.offset;
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find('\n'));
    const auto next = std::min(rest.size(), line.size() + 1);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      nlohmann::json record;
      try {
        record = nlohmann::json::parse(line);
      } catch (const nlohmann::json::exception& failure) {
        return bad_at(path, offset, std::string("the line is no JSON: ") + failure.what());
      }
      const auto text = record.is_object() ? record.find(field) : record.end();
      if (text == record.end() || !text->is_string()) {
        return bad_at(
            path, offset,
            "the line has no text under \"" + field + "\"; --field names the member that holds it");
      }
      const auto& words = text->get_ref<const std::string&>();
      if (!words.empty() && !take({.text = words, .offset = offset})) return {};
    }
    rest.remove_prefix(next);
    offset += static_cast<std::int64_t>(next);
  }
  return {};
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with('\n')) text.remove_prefix(1);
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

Result<void> extracted_documents(const RecordSlice& slice, const std::string& path,
                                 const Take& take) {
  const std::string_view bytes = slice.bytes;
  std::size_t at =
      bytes.starts_with("<doc ") ? 0 : std::min(bytes.find("\n<doc ") + 1, bytes.size());
  while (at < bytes.size()) {
    const std::int64_t offset = slice.offset + static_cast<std::int64_t>(at);
    const auto next = std::min(bytes.find("\n<doc ", at), bytes.size() - 1) + 1;
    const auto record = bytes.substr(at, next - at);
    const auto head = record.find('>');
    const auto end = record.rfind("</doc>");
    if (head == std::string_view::npos || end == std::string_view::npos || end < head) {
      return bad_at(path, offset, "the <doc> that begins here has no </doc> (cut short?)");
    }
    const std::string text = unescaped(trimmed(record.substr(head + 1, end - head - 1)));
    if (!text.empty() && !take({.text = text, .offset = offset})) return {};
    at = next;
  }
  return {};
}

/// What stands in <text ...>...</text> of an article; empty for redirects and other namespaces.
std::string_view article_text(std::string_view page) {
  const auto tag = page.find("<text");
  if (tag == std::string_view::npos || page.find("<ns>0</ns>") > tag) return {};
  if (page.substr(0, tag).find("<redirect ") != std::string_view::npos) return {};
  const auto open = page.find('>', tag);
  const auto close = page.find("</text>", tag);
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return page.substr(open + 1, close - open - 1);
}

Result<void> mediawiki_documents(const RecordSlice& slice, const std::string& path,
                                 const Take& take) {
  constexpr std::string_view kEnd = "</page>";
  const std::string_view bytes = slice.bytes;
  for (auto at = bytes.find("<page>"); at != std::string_view::npos;) {
    const std::int64_t offset = slice.offset + static_cast<std::int64_t>(at);
    const auto end = bytes.find(kEnd, at);
    if (end == std::string_view::npos)
      return bad_at(path, offset, "the <page> that begins here has no </page> (cut short?)");
    const std::string text = unescaped(article_text(bytes.substr(at, end - at)));
    if (!text.empty() && !take({.text = text, .offset = offset})) return {};
    at = bytes.find("<page>", end);
  }
  return {};
}

}  // namespace

const char* to_string(TextFormat format) {
  switch (format) {
    case TextFormat::plain: return "folder";
    case TextFormat::jsonl: return "jsonl";
    case TextFormat::wiki_extractor:
    case TextFormat::mediawiki: return "wiki";
    case TextFormat::parquet: return "parquet";
  }
  return "folder";
}

Result<TextFormat> detect_format(const DataFile& file) {
  const auto is_of_parquet = is_parquet(file);
  if (!is_of_parquet) return is_of_parquet.error();
  if (*is_of_parquet) return TextFormat::parquet;
  const auto read = file.read(0, kHeadBytes);
  if (!read) return read.error();
  std::string_view head = *read;
  constexpr std::pair<std::string_view, const char*> kCompressed[] = {{"\x1f\x8b", "gzip"},
                                                                      {"BZh", "bzip2"},
                                                                      {"\xfd"
                                                                       "7zXZ",
                                                                       "xz"},
                                                                      {"\x28\xb5\x2f\xfd", "zstd"},
                                                                      {"PK\x03\x04", "zip"}};
  for (const auto& [magic, name] : kCompressed) {
    if (head.starts_with(magic)) {
      return Error{.code = Code::invalid,
                   .message = std::string("is compressed (") + name + "); unpack it first",
                   .subject = file.path().string()};
    }
  }
  const auto begin = std::min(head.find_first_not_of(" \t\r\n"), head.size());
  head.remove_prefix(begin);
  const auto extension = file.path().extension();
  if (extension == ".jsonl" || extension == ".ndjson") return TextFormat::jsonl;
  if (extension == ".json" && head.starts_with('{')) return TextFormat::jsonl;
  if (head.starts_with("<doc ")) return TextFormat::wiki_extractor;
  if (head.starts_with("<mediawiki") || head.starts_with("<page>")) return TextFormat::mediawiki;
  return TextFormat::plain;
}

Result<std::int64_t> next_cut(const DataFile& file, TextFormat format, std::int64_t at) {
  if (at <= 0) return std::int64_t{0};
  constexpr std::int64_t kOverlap = 16;  // a mark, or the character before it, may lie across
  const bool is_plain = format == TextFormat::plain;
  const std::int64_t end = at + (is_plain ? kLineBytesMax : kRecordBytesMax);
  for (std::int64_t from = at; from < end; from += kScanBytes) {
    if (from >= file.bytes()) return file.bytes();
    const std::int64_t begin = std::max<std::int64_t>(0, from - kOverlap);
    const auto window = file.read(begin, from - begin + kScanBytes);
    if (!window) return window.error();
    // What began before `at` is behind us; later windows look back for what lies across.
    const std::int64_t search_from = from == at ? at : std::max(at, begin + 1);
    const auto cut = cut_in(*window, static_cast<std::size_t>(search_from - begin), format);
    if (cut) return begin + static_cast<std::int64_t>(*cut);
  }
  if (is_plain) return any_character(file, end);
  return bad_at(file.path().string(), at,
                "no record begins within " + std::to_string(kRecordBytesMax >> 20) +
                    " MiB from here on, and none may be longer");
}

Result<void> for_each_document(const RecordSlice& slice, const std::string& path,
                               const Take& take) {
  switch (slice.format) {
    case TextFormat::plain:
      if (!slice.bytes.empty() || slice.ends_file)
        (void)take({.text = slice.bytes, .offset = 0, .ends = slice.ends_file});
      return {};
    case TextFormat::jsonl: return json_documents(slice, path, take);
    case TextFormat::wiki_extractor: return extracted_documents(slice, path, take);
    case TextFormat::mediawiki: return mediawiki_documents(slice, path, take);
    case TextFormat::parquet: TJ_CHECK(false, "Parquet is read by its rows");
  }
  return {};
}

}  // namespace tj::trainer
