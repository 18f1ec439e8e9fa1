// Documents in text: where they begin, so that a file can be cut for many workers, and what they
// say. Plain text (a file is a document), JSON lines, and XML of wikis. Of Parquet only that it is
// that: parquet/parquet_text.h reads it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "contract/result.h"
#include "trainer/process/data_file.h"

namespace tj::trainer {

enum class TextFormat {
  plain,           // the file is one document
  jsonl,           // a line is a JSON object with a text in it
  wiki_extractor,  // <doc ...> ... </doc>, as WikiExtractor writes them
  mediawiki,       // <page> ... <text> of a dump of MediaWiki
  parquet,         // a row of Apache Parquet
};

/// "folder", "jsonl", "wiki" or "parquet": as --format names it.
const char* to_string(TextFormat format);

/// No record (a line, a <doc>, a <page>) may be longer; one of the worker's buffers holds it.
inline constexpr std::int64_t kRecordBytesMax = 64 << 20;

/// By the first bytes of a file, for JSON lines its name, and for Parquet its name or both ends.
/// Plain text otherwise. Compressed files are refused by name.
Result<TextFormat> detect_format(const DataFile& file);

/// The first place from `at` on (0 and the end of the file included) where the file may be cut: the
/// beginning of a record; in plain text the end of a line, at which no word of GPT-2's is cut in
/// two. Depends on nothing else, so that neighbours agree on it. Fails when there is none within
/// kRecordBytesMax. Not for Parquet, as for_each_document() below.
Result<std::int64_t> next_cut(const DataFile& file, TextFormat format, std::int64_t at);

/// A document, or a piece of one of plain text.
struct Document {
  std::string_view text;
  std::int64_t offset = 0;  // of the document's record in its file; with the name it is identity
  bool ends = true;         // false: more of it follows
};

struct RecordSlice {
  TextFormat format = TextFormat::plain;
  std::string_view bytes;       // between two cuts
  std::int64_t offset = 0;      // of `bytes` in the file
  bool ends_file = false;       // nothing follows
  std::string_view field = {};  // of JSON lines: which member is the text
};

/// Calls `take` with each document in order, until it returns false. Fails with Code::invalid; the
/// message has the offset of the record in the file.
Result<void> for_each_document(const RecordSlice& slice, const std::string& path,
                               const std::function<bool(const Document&)>& take);

}  // namespace tj::trainer
