// A DeepSpeed configuration as people bring it along.
#include "tests/fuzz/fuzzed.h"
#include "trainer/train/deepspeed_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = tj::fuzz::text_of(data, size);
  for (const int world_size : {1, 16}) {
    const auto config = tj::trainer::deepspeed_config_from(text, world_size);
    if (!config) continue;
    TJ_CHECK(deepspeed_lines(*config).size() == config->keys.size(), "each key is told");
    (void)with_deepspeed({{"--lr", "1e-3"}, {"--batch-size", "8"}}, *config);
  }
  return 0;
}
