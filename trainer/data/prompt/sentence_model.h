// A SentencePiece model, such as PaliGemma's tokenizer.model: ids of texts. By a plug-in, where the
// library is installed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"
#include "trainer/data/prompt/sentencepiece/abi.h"

namespace tj::trainer {

/// libtrainer_sentencepiece.so beside this program.
std::filesystem::path default_sentencepiece_plugin();

class SentenceModel {
 public:
  /// Fails with Code::invalid and the file where it is no model, or one without a begin of text;
  /// with Code::not_found where the plug-in or its library is missing.
  static Result<SentenceModel> open(const std::filesystem::path& file,
                                    const std::filesystem::path& plugin);

  std::int32_t vocabulary() const { return info_.pieces; }
  std::int32_t bos() const { return info_.bos; }
  /// The file's own bytes.
  const std::string& content() const { return content_; }
  /// SHA-256 of the file.
  const std::string& sha256() const { return sha256_; }
  /// On any thread. Without a begin of text.
  Result<std::vector<std::int32_t>> encode(std::string_view text) const;

 private:
  SentenceModel(const SentencePiecePlugin& plugin, void* model, SentenceModelInfo info)
      : plugin_(&plugin), model_(model, plugin.close), info_(info) {}
  const SentencePiecePlugin* plugin_;
  std::unique_ptr<void, void (*)(void*)> model_;
  SentenceModelInfo info_;
  std::string path_;
  std::string content_;
  std::string sha256_;
};

}  // namespace tj::trainer
