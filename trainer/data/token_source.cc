#include "trainer/data/token_source.h"

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "trainer/data/file_walk.h"
#include "trainer/data/token_file.h"
#include "trainer/data/token_manifest.h"
#include "trainer/process/durable_file.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
constexpr auto kChunk = static_cast<std::int64_t>(kTokenChunkBytes);

/// fineweb_val_000000.bin: "val" is a word of the name; in values.bin it is not.
bool is_held_out(const fs::path& path) {
  std::string word;
  const auto is_held_out_word = [&] {
    return word == "val" || word == "valid" || word == "validation" || word == "test";
  };
  for (const char letter : path.filename().string()) {
    if (std::isalpha(static_cast<unsigned char>(letter)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      continue;
    }
    if (is_held_out_word()) return true;
    word.clear();
  }
  return is_held_out_word();
}

bool is_token_name(const fs::path& path) {
  return path.extension() == ".tok" || path.extension() == ".bin";
}

/// What differs between two files of one dataset; empty if they agree.
std::string disagreement(const TokenLayout& layout, const TokenLayout& first) {
  const auto differ = [](const std::string& what, const std::string& mine,
                         const std::string& theirs) {
    return what + " is " + mine + " here and " + theirs + " there";
  };
  if (layout.format != first.format)
    return differ("the format", to_string(layout.format), to_string(first.format));
  if (layout.vocabulary != first.vocabulary) {
    return differ("the vocabulary", std::to_string(layout.vocabulary),
                  std::to_string(first.vocabulary));
  }
  if (layout.tokenizer_sha256 != first.tokenizer_sha256)
    return differ("the tokenizer", layout.tokenizer_sha256.substr(0, 12),
                  first.tokenizer_sha256.substr(0, 12));
  if (layout.token_bytes != first.token_bytes) {
    return differ("the width of a token in bytes", std::to_string(layout.token_bytes),
                  std::to_string(first.token_bytes));
  }
  return "";
}

template <typename T>
std::int64_t copy_tokens(const std::uint8_t* from, std::span<std::int32_t> tokens) {
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<std::int64_t>(load_little(from + i * sizeof(T), sizeof(T)));
    // A negative int64 becomes as large as can be: no id either way.
    largest = std::max(largest, id < 0 ? INT64_MAX : id);
    tokens[i] = static_cast<std::int32_t>(id);
  }
  return largest;
}

/// Returns the largest id.
std::int64_t copy_tokens(const std::uint8_t* from, std::size_t width,
                         std::span<std::int32_t> tokens) {
  switch (width) {
    case 1: return copy_tokens<std::uint8_t>(from, tokens);
    case 2: return copy_tokens<std::uint16_t>(from, tokens);
    case 4: return copy_tokens<std::uint32_t>(from, tokens);
    default: return copy_tokens<std::uint64_t>(from, tokens);
  }
}

std::int64_t tokens_in(std::span<const TokenFileEntry> files) {
  std::int64_t tokens = 0;
  for (const auto& file : files) tokens += file.tokens;
  return tokens;
}

}  // namespace

std::int64_t held_out_tokens(const fs::path& path) {
  const auto text = read_small_file(path / kTokenManifestFile, kTokenManifestBytesMax);
  if (!text || !is_token_manifest(*text)) return 0;
  const auto manifest = token_manifest_from(*text);
  return manifest ? tokens_in(manifest->val) : 0;
}

Error TokenSource::error(const fs::path& path, std::string message) const {
  return {
      .code = Code::invalid, .message = std::move(message), .subject = flag_ + " " + path.string()};
}

Result<TokenSource> TokenSource::open(std::span<const std::string> paths, std::string flag,
                                      TokenPart part) {
  TokenSource source(std::move(flag), part);
  for (const auto& path : paths) {
    if (const auto added = source.add_path(path); !added) return added.error();
  }
  if (source.token_count_ == 0) {
    return source.error(paths.empty() ? "" : paths.front(),
                        "holds no token in " + std::to_string(source.file_count()) + " files");
  }
  source.ids_end_ = source.vocabulary() > 0 ? source.vocabulary() : source.ids_end_;
  return source;
}

Result<void> TokenSource::add_path(const fs::path& path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (fs::is_directory(status)) return add_folder(path);
  if (fs::exists(status)) return add_tokens(path);
  if (failure && failure.value() != ENOENT) return read_error(path, failure.value());
  return Error{.code = Code::not_found,
               .message = "does not exist; it must be a folder of text files, or tokens",
               .subject = flag_ + " " + path.string()};
}

Result<void> TokenSource::add_folder(const fs::path& folder) {
  const auto manifest = read_small_file(folder / kTokenManifestFile, kTokenManifestBytesMax);
  if (manifest && is_token_manifest(*manifest)) return add_prepared(folder, *manifest);
  if (fs::exists(folder / kUnfinishedFile)) {
    return error(folder,
                 "is not finished: `trainer prepare` was at work here; the same command "
                 "again goes on");
  }
  const auto files = files_in(folder);
  if (!files) return files.error();
  if (std::ranges::none_of(*files, is_token_name)) return add_text(folder);
  for (const auto& file : *files) {
    if (!is_token_name(file) || is_held_out(file)) continue;
    if (const auto added = add_tokens(file); !added) return added;
  }
  return {};
}

Result<void> TokenSource::add_prepared(const fs::path& folder, const std::string& text) {
  const auto manifest = token_manifest_from(text);
  if (!manifest) {
    return Error{.code = Code::invalid,
                 .message = manifest.error().message,
                 .subject = (folder / kTokenManifestFile).string()};
  }
  const bool is_val = part_ == TokenPart::val && tokens_in(manifest->val) > 0;
  for (const auto& entry : is_val ? manifest->val : manifest->train) {
    const auto path = folder / entry.file;
    if (entry.tokens == 0) continue;
    auto file = DataFile::open(path);
    if (!file) return file.error();
    const auto layout = layout_of(*file);
    if (!layout) return layout.error();
    const auto header = read_head(*file, kTokenHeaderBytes);
    if (!header) return header.error();
    const auto crc32 = hex32(crc32_of(*header));
    if (crc32 != entry.header_crc32) {
      return Error{.code = Code::invalid,
                   .message = "is not the file of this set: the CRC-32 of its header is " + crc32 +
                              ", the manifest says " + entry.header_crc32,
                   .subject = path.string()};
    }
    if (const auto added = add(std::move(*file), *layout); !added) return added;
  }
  return {};
}

Result<void> TokenSource::add_text(const fs::path& folder) {
  const auto paths = files_below(folder);
  if (!paths) return paths.error();
  const std::size_t before = files_.size();
  for (const auto& path : *paths) {
    auto file = DataFile::open(path);
    if (!file) return file.error();
    if (file->bytes() == 0) continue;
    const TokenLayout layout{.token_count = file->bytes(),
                             .vocabulary = 256,
                             .tokenizer = "byte",
                             .tokenizer_sha256 = {}};
    if (const auto added = add(std::move(*file), layout); !added) return added;
  }
  if (files_.size() > before) return {};
  return error(folder, "is empty: " + std::to_string(paths->size()) +
                           " files with 0 bytes in them; it must hold text");
}

Result<void> TokenSource::add_tokens(const fs::path& path) {
  if (path.extension() == ".idx") return add_tokens(fs::path(path).replace_extension(".bin"));
  auto file = DataFile::open(path);
  if (!file) return file.error();
  const auto layout = layout_of(*file);
  if (!layout) return layout.error();
  return add(std::move(*file), *layout);
}

Result<void> TokenSource::add(DataFile file, const TokenLayout& layout) {
  const auto& path = file.path();
  if (files_.empty()) layout_ = layout;
  const std::string differs = disagreement(layout, layout_);
  if (!differs.empty()) {
    return Error{.code = Code::invalid,
                 .message = "does not belong to one dataset with " +
                            files_.front().data.path().string() + ": " + differs,
                 .subject = path.string()};
  }
  if (files_.size() == kFilesMax) {
    return error(path, "is one file too many; at most " + std::to_string(kFilesMax) +
                           " can be open at once, join some of them");
  }
  const bool is_text = layout.format == TokenFormat::text;
  TokenFile token_file{.data = std::move(file),
                       .layout = layout,
                       .first_token = token_count_,
                       .tokens = layout.token_count + (is_text ? 1 : 0)};
  if (layout.format == TokenFormat::ours) {
    const auto payload = layout.token_count * static_cast<std::int64_t>(layout.token_bytes);
    token_file.chunk_is_good =
        std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(payload / kChunk + 1));
  }
  token_count_ += token_file.tokens;
  files_.push_back(std::move(token_file));
  return {};
}

Result<void> TokenSource::read(std::int64_t offset, std::span<std::int32_t> tokens) const {
  const auto wanted = static_cast<std::int64_t>(tokens.size());
  TJ_CHECK(offset >= 0 && offset + wanted <= token_count_, "tokens outside of the data");
  auto token_file = std::ranges::upper_bound(files_, offset, {}, &TokenFile::first_token) - 1;
  std::int64_t position = offset - token_file->first_token;
  while (!tokens.empty()) {
    const auto stored = static_cast<std::size_t>(
        std::max<std::int64_t>(0, token_file->layout.token_count - position));
    const std::size_t count = std::min(stored, tokens.size());
    if (const auto read = read_from(*token_file, position, tokens.first(count)); !read) return read;
    tokens = tokens.subspan(count);
    if (!tokens.empty() && token_file->layout.format == TokenFormat::text) {
      tokens[0] = kDocumentEnd;
      tokens = tokens.subspan(1);
    }
    ++token_file;
    position = 0;
  }
  return {};
}

/// Each chunk that holds some of these tokens, but for those that were good before.
Result<void> TokenSource::check_chunks(const TokenFile& token_file, std::int64_t position,
                                       std::int64_t count) {
  const auto width = static_cast<std::int64_t>(token_file.layout.token_bytes);
  const std::int64_t last = (position + count - 1) * width / kChunk;
  for (auto chunk = position * width / kChunk; chunk <= last; ++chunk) {
    auto& is_good = token_file.chunk_is_good[static_cast<std::size_t>(chunk)];
    if (is_good.load(std::memory_order_relaxed)) continue;
    const auto checked =
        check_token_chunk(token_file.data, token_file.layout.token_count * width, chunk);
    if (!checked) return checked;
    is_good.store(true, std::memory_order_relaxed);
  }
  return {};
}

Result<void> TokenSource::read_from(const TokenFile& token_file, std::int64_t position,
                                    std::span<std::int32_t> tokens) const {
  if (tokens.empty()) return {};
  if (token_file.chunk_is_good) {
    const auto checked =
        check_chunks(token_file, position, static_cast<std::int64_t>(tokens.size()));
    if (!checked) return checked;
  }
  const auto width = token_file.layout.token_bytes;
  const std::int64_t begin =
      token_file.layout.first_byte + position * static_cast<std::int64_t>(width);
  std::vector<std::uint8_t> bytes(tokens.size() * width);
  if (const auto read = token_file.data.read(begin, bytes); !read) return read;
  if (copy_tokens(bytes.data(), width, tokens) < ids_end_) return {};
  for (std::size_t at = 0;; at += width) {
    std::int32_t ignored = 0;
    const auto id = copy_tokens(bytes.data() + at, width, {&ignored, 1});
    if (id < ids_end_) continue;
    return Error{.code = Code::invalid,
                 .message = "at byte " + std::to_string(begin + static_cast<std::int64_t>(at)) +
                            ": the token is " + std::to_string(id) +
                            "; it must be less than the vocabulary, " + std::to_string(ids_end_),
                 .subject = token_file.data.path().string()};
  }
}

}  // namespace tj::trainer
