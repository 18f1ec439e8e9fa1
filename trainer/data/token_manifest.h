// manifest.json of a prepared folder: which token files make the set, and from what they were made.
// While it is not there, the folder is not finished.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

inline constexpr const char* kTokenManifestFile = "manifest.json";
inline constexpr const char* kUnfinishedFile = ".prepare.json";  // only while prepare is at work
inline constexpr std::int64_t kTokenManifestBytesMax = 64 << 20;

/// What decides the result, and nothing else.
struct PrepareIdentity {
  std::string tokenizer;
  std::string tokenizer_sha256;
  std::int64_t vocabulary = 0;
  std::int64_t document_end = 0;
  std::string format;
  std::string field;  // of JSON lines
  std::string val_fraction;
  std::int64_t part_bytes = 0;
  std::int64_t input_files = 0;
  std::int64_t input_bytes = 0;
  std::string input_sha256;  // of the list of names and sizes
  bool operator==(const PrepareIdentity&) const = default;
};

struct TokenFileEntry {
  std::string file;
  std::int64_t tokens = 0;
  std::int64_t documents = 0;
  std::string header_crc32;  // binds this very file: its header covers its checksums
  bool operator==(const TokenFileEntry&) const = default;
};

/// The vocabulary that made the tokens, for whoever makes them text again.
struct TokenizerFile {
  std::string file;  // in the folder; empty: the tokenizer has none
  std::int64_t bytes = 0;
  std::string sha256;  // of the file
  bool operator==(const TokenizerFile&) const = default;
};

struct TokenManifest {
  PrepareIdentity made_from;
  TokenizerFile tokenizer_file;
  std::vector<TokenFileEntry> train;
  std::vector<TokenFileEntry> val;
  bool operator==(const TokenManifest&) const = default;
};

std::string token_manifest_text(const TokenManifest& manifest);
/// Fails with Code::invalid and says what is wrong in it.
Result<TokenManifest> token_manifest_from(std::string_view text);
/// Whether `text` claims to be one: a folder of text may hold a manifest.json of somebody else.
bool is_token_manifest(std::string_view text);

std::string identity_text(const PrepareIdentity& identity);
Result<PrepareIdentity> identity_from(std::string_view text);
/// "--tokenizer is byte, was gpt2-bpe": the first thing that differs; empty if nothing does.
std::string difference(const PrepareIdentity& now, const PrepareIdentity& before);

}  // namespace tj::trainer
