#include "trainer/data/token_layout.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "trainer/data/token_file.h"
#include "trainer/data/token_header.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

// llm.c: llmc/dataloader.h and dev/data/data_common.py.
constexpr std::size_t kLlmcHeaderBytes = 256 * 4;
constexpr std::int64_t kHeadBytes = 16;  // holds each magic, and llm.c's numbers
struct LlmcKind {
  std::uint32_t magic;
  std::uint32_t version;
  std::size_t token_bytes;
  std::int64_t vocabulary;
  const char* tokenizer;
};
constexpr LlmcKind kLlmcKinds[] = {
    {20240520, 1, 2, 50257, "gpt2-bpe"},
    {20240801, 7, 4, 128256, "llama3"},
};
struct OtherMagic {
  std::uint32_t magic;
  const char* what;
};
constexpr OtherMagic kLlmcOthers[] = {
    {20240326, "llm.c's model"}, {20240327, "llm.c's training state"}, {20240522, "llm.c's eval"}};

std::string hex_head(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes.first(std::min<std::size_t>(8, bytes.size()))) {
    char digits[8];
    std::snprintf(digits, sizeof digits, "%02x ", byte);
    text += digits;
  }
  if (!text.empty()) text.pop_back();
  return text;
}

Error bad_at(const fs::path& path, std::uint64_t offset, const std::string& what) {
  return {.code = Code::invalid,
          .message = "at byte " + std::to_string(offset) + ": " + what,
          .subject = path.string()};
}

Result<TokenLayout> ours(const DataFile& file) {
  const auto header = read_token_header(file);
  if (!header) return header.error();
  return TokenLayout{.format = TokenFormat::ours,
                     .token_bytes = header->token_bytes,
                     .first_byte = static_cast<std::int64_t>(kTokenHeaderBytes),
                     .token_count = header->token_count,
                     .vocabulary = header->vocabulary,
                     .tokenizer = header->tokenizer,
                     .tokenizer_sha256 = header->tokenizer_sha256};
}

Result<TokenLayout> llmc(const DataFile& file, std::span<const std::uint8_t> head,
                         const LlmcKind& kind) {
  const auto& path = file.path();
  const auto file_bytes = static_cast<std::size_t>(file.bytes());
  if (file_bytes < kLlmcHeaderBytes) {
    return bad_at(path, file_bytes, "the file ends within llm.c's header of 1024 bytes");
  }
  const auto version = load_little(head.data() + 4, 4);
  if (version != kind.version) {
    return bad_at(path, 4,
                  "the version is " + std::to_string(version) + "; with magic " +
                      std::to_string(kind.magic) + " it must be " + std::to_string(kind.version));
  }
  const auto count = load_little(head.data() + 8, 4);
  const std::size_t needed = kLlmcHeaderBytes + count * kind.token_bytes;
  if (file_bytes != needed) {
    return bad_at(path, 8,
                  "the token count is " + std::to_string(count) + ", which makes a file of " +
                      std::to_string(needed) + " bytes; this one has " +
                      std::to_string(file_bytes) +
                      (file_bytes < needed ? ": cut short" : ": too long"));
  }
  return TokenLayout{.format = TokenFormat::llmc,
                     .token_bytes = kind.token_bytes,
                     .first_byte = static_cast<std::int64_t>(kLlmcHeaderBytes),
                     .token_count = static_cast<std::int64_t>(count),
                     .vocabulary = kind.vocabulary,
                     .tokenizer = kind.tokenizer,
                     .tokenizer_sha256 = {}};
}

Result<TokenLayout> nanogpt(const DataFile& file) {
  if (file.bytes() % 2 != 0) {
    return bad_at(file.path(), static_cast<std::size_t>(file.bytes()) - 1,
                  "half a token: a .bin without a magic is nanoGPT's, all uint16, and this one "
                  "has " +
                      std::to_string(file.bytes()) + " bytes (cut short?)");
  }
  return TokenLayout{.format = TokenFormat::nanogpt,
                     .token_bytes = 2,
                     .first_byte = 0,
                     .token_count = file.bytes() / 2,
                     .vocabulary = 0,
                     .tokenizer = {},
                     .tokenizer_sha256 = {}};
}

// Megatron-LM: megatron/core/datasets/indexed_dataset.py, class DType.
std::optional<std::size_t> megatron_token_bytes(std::uint8_t type) {
  switch (type) {
    case 1: return 1;  // uint8
    case 8: return 2;  // uint16
    case 4: return 4;  // int32
    case 5: return 8;  // int64
    default: return std::nullopt;
  }
}

Result<std::int64_t> megatron_tokens(const fs::path& path, std::span<const std::uint8_t> index,
                                     std::size_t sequences, std::size_t token_bytes) {
  constexpr std::size_t kLengthsAt = 34;
  const std::size_t pointers_at = kLengthsAt + 4 * sequences;
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < sequences; ++i) {
    const auto length =
        static_cast<std::int32_t>(load_little(index.data() + kLengthsAt + 4 * i, 4));
    const auto pointer =
        static_cast<std::int64_t>(load_little(index.data() + pointers_at + 8 * i, 8));
    const std::int64_t expected = tokens * static_cast<std::int64_t>(token_bytes);
    if (length < 0) {
      return bad_at(path, kLengthsAt + 4 * i,
                    "the length of sequence " + std::to_string(i) + " is " +
                        std::to_string(length) + "; it must not be negative");
    }
    if (pointer != expected) {
      return bad_at(path, pointers_at + 8 * i,
                    "sequence " + std::to_string(i) + " begins at " + std::to_string(pointer) +
                        "; the ones before it end at " + std::to_string(expected));
    }
    tokens += length;
  }
  return tokens;
}

}  // namespace

const char* to_string(TokenFormat format) {
  switch (format) {
    case TokenFormat::text: return "text";
    case TokenFormat::ours: return ".tok";
    case TokenFormat::llmc: return "llm.c .bin";
    case TokenFormat::megatron: return "Megatron .bin/.idx";
    case TokenFormat::nanogpt: return "nanoGPT uint16 .bin";
  }
  return "text";
}

Result<TokenLayout> megatron_layout(const fs::path& index_path, std::span<const std::uint8_t> index,
                                    std::int64_t bin_bytes) {
  constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
  constexpr std::size_t kHeaderBytes = 34;
  if (index.size() < kHeaderBytes)
    return bad_at(index_path, index.size(), "the file ends within the header of 34 bytes");
  if (!std::ranges::equal(index.first(kMagic.size()), kMagic)) {
    return bad_at(index_path, 0,
                  "begins with " + hex_head(index) + "; an index of Megatron begins with MMIDIDX");
  }
  const auto version = load_little(index.data() + 9, 8);
  if (version != 1) {
    return bad_at(index_path, 9, "the version is " + std::to_string(version) + "; it must be 1");
  }
  const auto token_bytes = megatron_token_bytes(index[17]);
  if (!token_bytes) {
    return bad_at(index_path, 17,
                  "the type of the tokens is " + std::to_string(index[17]) +
                      "; it must be 1 (uint8), 8 (uint16), 4 (int32) or 5 (int64)");
  }
  const auto sequences = load_little(index.data() + 18, 8);
  const auto documents = load_little(index.data() + 26, 8);
  const std::size_t rest = index.size() - kHeaderBytes;
  const bool fits = sequences <= rest / 12 && documents <= (rest - 12 * sequences) / 8;
  if (!fits || 12 * sequences + 8 * documents != rest) {
    return bad_at(index_path, 18,
                  "there are " + std::to_string(sequences) + " sequences and " +
                      std::to_string(documents) + " document marks, which does not fit a file of " +
                      std::to_string(index.size()) + " bytes (cut short?)");
  }
  const auto tokens = megatron_tokens(index_path, index, sequences, *token_bytes);
  if (!tokens) return tokens.error();
  const std::int64_t needed = *tokens * static_cast<std::int64_t>(*token_bytes);
  if (needed != bin_bytes) {
    return bad_at(fs::path(index_path).replace_extension(".bin"),
                  static_cast<std::size_t>(bin_bytes),
                  "the file ends here; its index " + index_path.filename().string() + " asks for " +
                      std::to_string(needed) + " bytes");
  }
  return TokenLayout{.format = TokenFormat::megatron,
                     .token_bytes = *token_bytes,
                     .first_byte = 0,
                     .token_count = *tokens,
                     .vocabulary = 0,
                     .tokenizer = {},
                     .tokenizer_sha256 = {}};
}

Result<TokenLayout> layout_of(const DataFile& file) {
  const auto& path = file.path();
  if (file.bytes() == 0)
    return Error{.code = Code::invalid, .message = "is empty", .subject = path.string()};
  const auto bytes = read_head(file, kHeadBytes);
  if (!bytes) return bytes.error();
  const bool is_ours = path.extension() == ".tok";
  const auto head = std::span(*bytes).first(std::min(bytes->size(), kTokenMagic.size()));
  if (std::ranges::equal(head, kTokenMagic)) return ours(file);
  if (is_ours && std::ranges::equal(head, kTokenMagic.substr(0, head.size()))) {
    return bad_at(path, head.size(), "the file ends within its magic, TJTOKENS: cut short");
  }
  const auto magic = static_cast<std::uint32_t>(
      load_little(bytes->data(), std::min<std::size_t>(bytes->size(), 4)));
  const auto* const kind = std::ranges::find(kLlmcKinds, magic, &LlmcKind::magic);
  if (!is_ours && kind != std::end(kLlmcKinds)) return llmc(file, *bytes, *kind);
  const auto* const other = std::ranges::find(kLlmcOthers, magic, &OtherMagic::magic);
  if (!is_ours && other != std::end(kLlmcOthers)) {
    return bad_at(path, 0,
                  "the magic is " + std::to_string(magic) + ", " + other->what +
                      "; tokens have 20240520 (GPT-2) or 20240801 (Llama 3)");
  }
  if (path.extension() != ".bin") {
    return bad_at(path, 0,
                  "begins with " + hex_head(*bytes) + "; " +
                      (is_ours ? "a .tok begins with TJTOKENS"
                               : "that is no token file: it must be a .tok, an llm.c .bin, a "
                                 "Megatron .bin with its .idx, or a .bin of uint16 (nanoGPT)"));
  }
  const auto index_path = fs::path(path).replace_extension(".idx");
  if (!fs::exists(index_path)) return nanogpt(file);
  const auto index_file = DataFile::open(index_path);
  if (!index_file) return index_file.error();
  const auto index = read_head(*index_file, index_file->bytes());
  if (!index) return index.error();
  return megatron_layout(index_path, *index, file.bytes());
}

}  // namespace tj::trainer
