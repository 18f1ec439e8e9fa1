// The trainer with a Qwen2.5-VL that learns from scenes that are rendered as it runs. --data names
// a JSON file that says which.
#include <nlohmann/json.hpp>

#include "tests/trainer/qwen/scenes.h"
#include "trainer/process/durable_file.h"
#include "trainer/train/engine.h"
#include "trainer/workloads/qwen_vggt/qwen_vggt_workload.h"
#include "trainer/workloads/registry.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kFileBytesMax = 1000;

OpenedConversations open_scenes(const DataPaths& data, const std::vector<std::string>&,
                                const ConversationShape& shape, const ConversationOptions&) {
  const auto text = read_small_file(data.paths.front(), kFileBytesMax);
  if (!text) return {.source = {}, .failure = bad_data(text.error())};
  const auto said = nlohmann::json::parse(*text);
  const SceneSet set{.task = said.value("task", std::string("rooms")) == "depth" ? SceneTask::depth
                                                                                 : SceneTask::rooms,
                     .count = said.at("count").get<std::int64_t>(),
                     .first = said.value("first", std::int64_t{0}),
                     .text_percent = said.value("text_percent", std::int64_t{0}),
                     .history = said.value("history", std::int64_t{1})};
  return {.source = std::make_unique<SceneSamples>(set, shape)};
}

}  // namespace
}  // namespace tj::trainer

int main(int argc, char** argv) {
  using namespace tj::trainer;
  const WorkloadEntry entries[] = {{.name = "qwen_vggt",
                                    .title = "a Qwen2.5-VL on rendered scenes",
                                    .data_help = "JSON file that says which scenes",
                                    .presets = qwen_vggt_presets(),
                                    .flags = qwen_vggt_flags(),
                                    .make = [](const Preset& preset) -> std::unique_ptr<Workload> {
                                      return std::make_unique<QwenVggtWorkload>(preset,
                                                                                open_scenes);
                                    }}};
  engine_main(argc, argv, entries);
}
