// What tensors of adapters are called, in a checkpoint and in PEFT's files (peft/utils/
// save_and_load.py): begin, the module's name, and one of the ends.
#pragma once
#include <string_view>

namespace tj::trainer {

inline constexpr std::string_view kAdapterBegin = "base_model.model.";
inline constexpr std::string_view kAdapterBaseEnd = ".base_layer.weight";
inline constexpr std::string_view kAdapterAEnd = ".lora_A.weight";
inline constexpr std::string_view kAdapterBEnd = ".lora_B.weight";
// Of a table whose rows are looked up. PEFT has these transposed, without ".weight", and leaves
// out what else the table is used for.
inline constexpr std::string_view kAdapterTableAEnd = ".lora_embedding_A.weight";
inline constexpr std::string_view kAdapterTableBEnd = ".lora_embedding_B.weight";

// Keys of a checkpoint's manifest.
inline constexpr const char* kLoraRankKey = "lora_rank";
inline constexpr const char* kLoraAlphaKey = "lora_alpha";
inline constexpr const char* kLoraTransposedKey = "lora_transposed";  // matrices [inputs, outputs]

}  // namespace tj::trainer
