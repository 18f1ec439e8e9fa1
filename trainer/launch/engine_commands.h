// The commands of `trainer` that are trainer-engine's: the one place that knows their names without
// libtorch. Those of workloads are the same as in their registry's lines (workload/command.h),
// which a test compares.
#pragma once
#include <algorithm>
#include <string_view>

namespace tj::trainer {

struct EngineCommand {
  std::string_view name;
  std::string_view does;  // for `trainer --help`
};

inline constexpr EngineCommand kEngineCommands[] = {
    {"train", "trains"},
    {"sample", "goes on with a text by a trained GPT-2"},
    {"plan",
     "says what a training will cost: traffic, time, memory, and what a slow link asks for"},
    {"encode", "makes latents of a video by a trained autoencoder"},
    {"decode", "makes a video of latents"},
    {"act", "says what a trained robot policy does next, of what it sees"},
    {"generate", "says what a trained Qwen2.5-VL answers, of pictures and text"},
    {"reconstruct", "says how close a video comes back: PSNR and SSIM"},
};

inline bool is_engine_command(std::string_view name) {
  return std::ranges::find(kEngineCommands, name, &EngineCommand::name) !=
         std::end(kEngineCommands);
}

}  // namespace tj::trainer
