// meta/info.json of a robot's data set, and statistics of one: they lie beside data of any origin.
#include "tests/fuzz/fuzzed.h"
#include "trainer/data/lerobot/lerobot_info.h"
#include "trainer/data/lerobot/statistics.h"

namespace {
using namespace tj::trainer;

void check_paths(const LeRobotInfo& info) {
  const std::map<std::string, PathValue> values{{"episode_chunk", std::int64_t{1}},
                                                {"episode_index", std::int64_t{2}},
                                                {"chunk_index", std::int64_t{3}},
                                                {"file_index", std::int64_t{4}},
                                                {"video_key", std::string("camera")}};
  for (const auto& pattern : {info.data_path, info.video_path}) {
    const auto path = filled_path(pattern, values);
    if (path) TJ_CHECK(("/" + *path + "/").find("/../") == std::string::npos, "it stays inside");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = tj::fuzz::text_of(data, size);
  if (const auto info = lerobot_info_from(text)) {
    TJ_CHECK(info->fps > 0 && info->episodes > 0 && info->chunk_size > 0, "as it must be");
    for (const auto& [name, feature] : info->features)
      TJ_CHECK(feature.width() >= 1, "a feature has a number");
    check_paths(*info);
  }
  const auto statistics = statistics_from(text);
  if (!statistics) return 0;
  const auto again = statistics_from(statistics_json(*statistics));
  TJ_CHECK(again && again->rule == statistics->rule, "they are read as they were written");
  return 0;
}
