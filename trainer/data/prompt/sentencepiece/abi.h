// What the programs and libtrainer_sentencepiece.so know of each other. The programs run where the
// library is not installed; what needs it lies behind this table. No exception crosses it.
#pragma once
#include <cstdint>

#include "trainer/values/plugin_text.h"

namespace tj::trainer {

/// Changes with every change of this file.
inline constexpr int kSentencePieceAbi = 1;
inline constexpr const char* kSentencePieceFactory = "trainer_sentencepiece_plugin";

struct SentenceModelInfo {
  std::int32_t pieces = 0;  // every id is below
  std::int32_t bos = -1;    // begin of a text; -1: the model has none
};

/// Who takes the ids of a text.
struct SentenceIds {
  void (*take)(void* context, const std::int32_t* ids, std::int64_t count) = nullptr;
  void* context = nullptr;
};

struct SentencePiecePlugin {
  int abi = kSentencePieceAbi;  // stays the first in every version
  /// A model by the bytes of its file. Null with the cause in `why`.
  void* (*open)(const char* bytes, std::int64_t count, SentenceModelInfo* info,
                PluginText* why) = nullptr;
  void (*close)(void* model) = nullptr;
  /// The ids of a text in UTF-8. On any thread. False with the cause in `why`.
  bool (*encode)(void* model, const char* text, std::int64_t bytes, const SentenceIds* ids,
                 PluginText* why) = nullptr;
};

}  // namespace tj::trainer

/// The one symbol of the plug-in. Never null.
extern "C" __attribute__((visibility("default"))) const tj::trainer::SentencePiecePlugin*
trainer_sentencepiece_plugin();
