#include "trainer/comm/reduce_options.h"

#include <array>

namespace tj::trainer {
namespace {
constexpr std::array kNames{"fp32", "bf16", "fp16", "int8", "powersgd"};
}

const char* to_string(Codec codec) { return kNames[static_cast<std::size_t>(codec)]; }

std::optional<Codec> codec_from(std::string_view name) {
  for (std::size_t index = 0; index < kNames.size(); ++index)
    if (name == kNames[index]) return static_cast<Codec>(index);
  return std::nullopt;
}

}  // namespace tj::trainer
