// The trainer with a Qwen2.5-VL that learns from scenes that are rendered as it runs. --data names
// a JSON file that says which. TJ_PASSES names a file for what the engine asked of the model, in
// that order; with TJ_WITHOUT_AHEAD the model does not hear of passes that come.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/trainer/qwen/scenes.h"
#include "trainer/process/durable_file.h"
#include "trainer/train/engine.h"
#include "trainer/workload/model.h"
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

/// Batches by the places of their tokens: those of a step are there together.
class ListedModel final : public Model {
 public:
  ListedModel(std::unique_ptr<Model> model, const char* path)
      : model_(std::move(model)), file_(path, std::ios::app) {}

  PassSums pass(const Batch& batch, std::optional<std::int64_t> first_sample) const override {
    list(first_sample ? "pass" : "evaluation", batch);
    return model_->pass(batch, first_sample);
  }
  void ahead(const Batch& next) const override {
    list("ahead", next);
    if (std::getenv("TJ_WITHOUT_AHEAD") == nullptr) model_->ahead(next);
  }
  const std::vector<at::Tensor>& tensors() const override { return model_->tensors(); }

 private:
  void list(const char* what, const Batch& batch) const {
    file_ << what << ' ' << batch.at(kConversationTokens).data_ptr() << std::endl;
  }

  std::unique_ptr<Model> model_;
  mutable std::ofstream file_;
};

class Scenes final : public QwenVggtWorkload {
 public:
  using QwenVggtWorkload::QwenVggtWorkload;
  std::unique_ptr<Model> make_model(const ModelOptions& options,
                                    const ModelKeeper& keeper) const override {
    auto model = QwenVggtWorkload::make_model(options, keeper);
    const char* const path = std::getenv("TJ_PASSES");
    if (path == nullptr) return model;
    return std::make_unique<ListedModel>(std::move(model), path);
  }
};

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
                                      return std::make_unique<Scenes>(preset, open_scenes);
                                    }}};
  engine_main(argc, argv, entries);
}
