#include "trainer/data/token_file_builder.h"

#include <algorithm>

#include "trainer/data/token_file.h"
#include "trainer/process/durable_file.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

TokenFileEntry entry_of(const std::string& name, const TokenHeader& header) {
  return {.file = name,
          .tokens = header.token_count,
          .documents = header.document_count,
          .header_crc32 = hex32(crc32_of(encode(header)))};
}

}  // namespace

TokenFileBuilder::TokenFileBuilder(const Tokenizer& tokenizer)
    : tokenizer_(tokenizer), token_bytes_(token_bytes_for(tokenizer.vocabulary)) {}

void TokenFileBuilder::append(std::span<const std::uint32_t> ids) {
  token_count_ += static_cast<std::int64_t>(ids.size());
  while (!ids.empty()) {
    if (chunks_.empty() || chunks_.back().size() == kTokenChunkBytes) {
      chunks_.emplace_back();
      chunks_.back().reserve(kTokenChunkBytes);
    }
    auto& chunk = chunks_.back();
    const std::size_t room = (kTokenChunkBytes - chunk.size()) / token_bytes_;
    const auto taken = ids.first(std::min(room, ids.size()));
    const std::size_t begin = chunk.size();
    chunk.resize(begin + taken.size() * token_bytes_);
    std::uint8_t* to = chunk.data() + begin;
    for (const std::uint32_t id : taken) {
      for (std::uint32_t i = 0; i < token_bytes_; ++i)
        *to++ = static_cast<std::uint8_t>(id >> (8 * i));
    }
    ids = ids.subspan(taken.size());
  }
}

void TokenFileBuilder::end_document() {
  append({&tokenizer_.document_end, 1});
  ++document_count_;
}

Result<TokenFileEntry> TokenFileBuilder::write(const fs::path& folder,
                                               const std::string& name) const {
  std::vector<std::uint8_t> table(4 * chunks_.size());
  for (std::size_t i = 0; i < chunks_.size(); ++i)
    store_little(table.data() + 4 * i, crc32_of(chunks_[i]), 4);
  const TokenHeader header{.token_bytes = token_bytes_,
                           .vocabulary = tokenizer_.vocabulary,
                           .token_count = token_count_,
                           .document_count = document_count_,
                           .table_crc32 = crc32_of(table),
                           .tokenizer = tokenizer_.name,
                           .tokenizer_sha256 = tokenizer_.sha256};
  const fs::path draft = folder / ("." + name + ".draft");
  auto file = DurableFile::create(draft);
  if (!file) return file.error();
  std::vector<std::span<const std::uint8_t>> pieces;
  const auto head = encode(header);
  pieces.emplace_back(head);
  for (const auto& chunk : chunks_) pieces.emplace_back(chunk);
  pieces.emplace_back(table);
  for (const auto piece : pieces) {
    if (const auto written = file->write(std::as_bytes(piece)); !written) return written.error();
  }
  if (const auto finished = file->finish(); !finished) return finished.error();
  std::error_code failure;
  fs::rename(draft, folder / name, failure);
  if (!failure) return entry_of(name, header);
  return Error{.code = Code::unavailable,
               .message = "can't be renamed: " + failure.message(),
               .subject = draft.string()};
}

Result<TokenFileEntry> finished_token_file(const fs::path& folder, const std::string& name,
                                           const Tokenizer& tokenizer) {
  const auto path = folder / name;
  const auto file = DataFile::open(path);
  if (!file) return file.error();
  const auto header = read_token_header(*file);
  if (!header) return header.error();
  if (header->tokenizer_sha256 != tokenizer.sha256) {
    return Error{.code = Code::invalid,
                 .message = "was made by another tokenizer",
                 .subject = path.string()};
  }
  for (std::int64_t chunk = 0; chunk < header->chunk_count(); ++chunk) {
    const auto checked = check_token_chunk(*file, header->payload_bytes(), chunk);
    if (!checked) return checked.error();
  }
  return entry_of(name, *header);
}

}  // namespace tj::trainer
