// The config.json of a Qwen2.5-VL: read as Hugging Face's files have it, with the old keys and with
// the new ones, and written with the old ones, which all versions of transformers load.
#pragma once
#include <filesystem>
#include <string>

#include "contract/result.h"
#include "trainer/workloads/qwen_vggt/qwen_config.h"

namespace tj::trainer {

std::string qwen_config_json(const QwenConfig& config);

/// Of a text that somebody else may have written; `file`: where it stands. Fails with Code::invalid
/// for what is no config of a Qwen2.5-VL, or of none that could be made.
Result<QwenConfig> qwen_config_from(const std::string& text, const std::filesystem::path& file);

}  // namespace tj::trainer
