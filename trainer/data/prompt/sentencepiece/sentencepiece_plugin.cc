// libtrainer_sentencepiece.so: ids of texts by Google's SentencePiece.
#include <sentencepiece_processor.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/prompt/sentencepiece/abi.h"

namespace tj::trainer {
namespace {

using Processor = sentencepiece::SentencePieceProcessor;

void require(const sentencepiece::util::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

void* open(const char* bytes, std::int64_t count, SentenceModelInfo* info, PluginText* why) try {
  auto model = std::make_unique<Processor>();
  require(model->LoadFromSerializedProto(std::string_view(bytes, static_cast<std::size_t>(count))));
  *info = {.pieces = model->GetPieceSize(), .bos = model->bos_id()};
  return model.release();
} catch (const std::exception& failure) {
  why->write(failure.what());
  return nullptr;
}

void close(void* model) { delete static_cast<Processor*>(model); }

bool encode(void* model, const char* text, std::int64_t bytes, const SentenceIds* ids,
            PluginText* why) try {
  std::vector<int> found;
  require(static_cast<const Processor*>(model)->Encode(
      std::string_view(text, static_cast<std::size_t>(bytes)), &found));
  ids->take(ids->context, found.data(), static_cast<std::int64_t>(found.size()));
  return true;
} catch (const std::exception& failure) {
  why->write(failure.what());
  return false;
}

constexpr SentencePiecePlugin kPlugin{
    .abi = kSentencePieceAbi, .open = open, .close = close, .encode = encode};

}  // namespace
}  // namespace tj::trainer

const tj::trainer::SentencePiecePlugin* trainer_sentencepiece_plugin() {
  return &tj::trainer::kPlugin;
}
