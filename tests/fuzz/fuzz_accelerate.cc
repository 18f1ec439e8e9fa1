// A configuration of accelerate as people bring it along.
#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzzed.h"
#include "trainer/train/accelerate_config.h"
#include "yaml/yaml_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto documents = tj::parse_yaml(tj::fuzz::text_of(data, size), "input");
  if (!documents) return 0;
  for (const auto& document : *documents) {
    for (const int world_size : {1, 16}) {
      const auto config = tj::trainer::accelerate_config_from(document, {.world_size = world_size});
      if (!config) continue;
      const auto lines = accelerate_lines(*config);
      TJ_CHECK(lines.size() == config->keys.size(), "each key is told");
      for (const auto& line : lines)
        TJ_CHECK(line.find('\n') == std::string::npos, "a key is one line");
    }
  }
  return 0;
}
