// GPT-2 on text or tokens as a workload.
#pragma once
#include "trainer/data/token_source.h"
#include "trainer/workload/workload.h"
#include "trainer/workloads/gpt2/gpt2.h"
#include "trainer/workloads/gpt2/hugging_face.h"

namespace tj::trainer {

class Gpt2Workload final : public Workload {
 public:
  explicit Gpt2Workload(const Preset& preset) : preset_(preset) {}

  Result<void> read_init(const std::string& path) override;
  /// The vocabulary is 0 unless a flag or the initial model says it: then the data must.
  void configure(FlagReader& reader) override;
  OpenedData open_data(const DataPaths& data) override;
  HeldOut held_out(const std::vector<std::string>& data) const override;
  OpenedData make_up_data() override;
  /// Completes the model by the vocabulary of the data (0: its files don't say). Fails with
  /// Code::invalid when neither the data nor a flag says it, or when the model's is the smaller.
  Result<void> settle_vocabulary(std::int64_t data_vocabulary);

  std::vector<Setting> settings() const override { return settings_; }
  std::vector<TensorSpec> tensors() const override { return gpt2_tensors(config_); }
  std::vector<ModelBlock> blocks() const override { return gpt2_blocks(config_); }
  std::unique_ptr<Model> make_model(const ModelOptions& options,
                                    const ModelKeeper& keeper) const override;
  SampleWords words() const override;
  SampleCost cost() const override;
  std::string nothing_counts() const override;
  ModelShape shape() const override;
  std::string config_json() const override {
    return gpt2_config_json(config_, tokenizer_vocabulary_);
  }
  /// The tokenizer of the data, where it stands beside it or beside the initial weights.
  std::map<std::string, std::string> files() const override { return files_; }
  Result<TensorReader> open_initial_weights(const std::string& path) const override;
  std::int64_t hidden_width() const override { return config_.width; }

  const Gpt2Config& config() const { return config_; }

 private:
  void check_against_init(FlagReader& reader) const;
  Gelu read_gelu(FlagReader& reader) const;
  std::optional<Failure> settle(const TokenSource& source);
  std::optional<Failure> take_tokenizer(const TokenSource& source,
                                        const std::vector<std::string>& paths);
  std::optional<Failure> check_eval(const TokenSource& source, const std::string& name) const;

  Preset preset_;
  std::optional<InitialModel> init_;
  Gpt2Config config_;
  Gpt2Training training_;
  std::vector<Setting> settings_;
  std::int64_t tokenizer_vocabulary_ = 0;  // 0: nobody says it
  std::map<std::string, std::string> files_;
};

/// The line of the registry.
WorkloadEntry gpt2_entry();

}  // namespace tj::trainer
