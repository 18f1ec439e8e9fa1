// Qwen2.5-VL, with or without a frozen VGGT, on conversations with pictures, as a workload.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/workload/workload.h"
#include "trainer/workloads/qwen_vggt/conversation_data.h"
#include "trainer/workloads/qwen_vggt/qwen_vggt_config.h"
#include "trainer/workloads/qwen_vggt/qwen_vggt_memory.h"

namespace tj::trainer {

/// As open_conversations().
using ConversationOpener = std::function<OpenedConversations(
    const DataPaths& data, const std::vector<std::string>& training_paths,
    const ConversationShape& shape, const ConversationOptions& options)>;

class QwenVggtWorkload : public Workload {
 public:
  explicit QwenVggtWorkload(const Preset& preset, ConversationOpener opener = open_conversations);

  /// Sizes are those of the weights' config.json, whatever the preset.
  Result<void> read_init(const std::string& path) override;
  void configure(FlagReader& reader) override;
  OpenedData open_data(const DataPaths& data) override;
  OpenedData make_up_data() override;
  HeldOut held_out(const std::vector<std::string>& data) const override;

  std::vector<Setting> settings() const override;
  std::vector<TensorSpec> tensors() const override { return qwen_vggt_tensors(config_).specs; }
  std::vector<ModelBlock> blocks() const override { return qwen_vggt_tensors(config_).blocks; }
  /// Rates of their own of what came trained: the vision tower and what joins it to the language.
  std::vector<ParameterGroup> groups() const override;
  /// Batches without pictures leave out the vision tower, and those without a VGGT's frames the
  /// coupling.
  bool may_leave_tensors_unused() const override { return true; }
  std::unique_ptr<Model> make_model(const ModelOptions& options,
                                    const ModelKeeper& keeper) const override;

  /// Of the largest conversation that the flags allow.
  PassMemory pass_memory(const PassRule& rule) const override;
  std::vector<PassRemedy> pass_remedies(const PassRule& rule) const override;
  SampleWords words() const override;
  SampleCost cost() const override;
  std::string nothing_counts() const override { return "no token in them is learned"; }
  std::size_t metric_sums() const override;
  std::vector<Metric> metrics() const override;
  ModelShape shape() const override { return qwen_vggt_shape(config_); }
  std::string config_json() const override { return qwen_vggt_config_json(config_); }
  /// With them and the weights transformers and `trainer generate` need nothing else.
  std::map<std::string, std::string> files() const override;
  Result<TensorReader> open_initial_weights(const std::string& path) const override;
  std::int64_t hidden_width() const override { return config_.qwen.text.width; }

  const QwenVggtConfig& config() const { return config_; }

 private:
  void configure_vggt(FlagReader& reader);
  void configure_rates(FlagReader& reader);
  double rate(FlagReader& reader, const char* flag, double share) const;
  ConversationShape conversation_shape() const;

  const Preset preset_;
  const bool is_nano_;
  ConversationOpener opener_;
  std::string init_path_;  // empty: none
  QwenVggtConfig config_;
  bool is_vggt_named_ = false;
  VggtRoom vggt_room_;
  double lr_ = 0, vision_lr_ = 0, projector_lr_ = 0;
  ConversationOptions options_;
  std::vector<std::string> training_paths_;
  std::vector<Setting> settings_;
  std::map<std::string, std::string> files_;
};

/// What its data must be made for.
ConversationShape conversation_shape_of(const QwenVggtConfig& config);

/// All flags of the workload.
std::span<const Flag> qwen_vggt_flags();
/// The line of the registry.
WorkloadEntry qwen_vggt_entry();

}  // namespace tj::trainer
