#include "trainer/data/prompt/sentence_model.h"

#include "trainer/process/durable_file.h"
#include "trainer/process/plugin.h"
#include "trainer/process/program_folder.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kModelBytesMax = 256 << 20;

std::string without(const std::string& missing, bool is_itself) {
  if (is_itself)
    return "is missing; it must lie beside trainer-engine, with SentencePiece's library, to read a "
           "tokenizer.model";
  return "can't be loaded: " + missing +
         ", which it needs, is missing; SentencePiece's library (Debian: libsentencepiece0) must "
         "be "
         "installed, to read a tokenizer.model";
}

Error wrong(const std::string& file, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = file};
}

}  // namespace

std::filesystem::path default_sentencepiece_plugin() {
  return program_folder() / "libtrainer_sentencepiece.so";
}

Result<SentenceModel> SentenceModel::open(const std::filesystem::path& file,
                                          const std::filesystem::path& plugin_path) {
  auto bytes = read_small_file(file, kModelBytesMax);
  if (!bytes) return bytes.error();
  const auto plugin = load_plugin<SentencePiecePlugin>({.path = plugin_path,
                                                        .factory = kSentencePieceFactory,
                                                        .program = "trainer",
                                                        .without = without},
                                                       kSentencePieceAbi);
  if (!plugin) return plugin.error();
  PluginText why;
  SentenceModelInfo info;
  if (bytes->empty()) return wrong(file.string(), "is empty");
  void* const opened =
      (*plugin)->open(bytes->data(), static_cast<std::int64_t>(bytes->size()), &info, &why);
  if (opened == nullptr)
    return wrong(file.string(),
                 "is no SentencePiece model (PaliGemma's is paligemma_tokenizer.model "
                 "or tokenizer.model): " +
                     std::string(why.bytes));
  SentenceModel model(**plugin, opened, info);
  if (info.bos < 0)
    return wrong(file.string(), "has no piece for the begin of a text (bos), which a prompt has");
  model.path_ = file.string();
  Sha256 hash;
  hash.update(std::as_bytes(std::span(*bytes)));
  model.sha256_ = std::move(hash).hex();
  model.content_ = std::move(*bytes);
  return model;
}

Result<std::vector<std::int32_t>> SentenceModel::encode(std::string_view text) const {
  std::vector<std::int32_t> found;
  const SentenceIds ids{.take =
                            [](void* context, const std::int32_t* more, std::int64_t count) {
                              auto& into = *static_cast<std::vector<std::int32_t>*>(context);
                              into.assign(more, more + count);
                            },
                        .context = &found};
  PluginText why;
  if (plugin_->encode(model_.get(), text.data(), static_cast<std::int64_t>(text.size()), &ids,
                      &why))
    return found;
  return wrong(path_, why.bytes);
}

}  // namespace tj::trainer
