// GPT-2 as a workload.
#pragma once
#include "trainer/models/gpt2.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

class Gpt2Workload final : public Workload {
 public:
  Gpt2Workload(const Gpt2Config& config, const Gpt2Training& training)
      : config_(config), training_(training) {}

  std::vector<TensorSpec> tensors() const override { return gpt2_tensors(config_); }
  std::vector<ModelBlock> blocks() const override { return gpt2_blocks(config_); }
  std::unique_ptr<Model> make_model(const ModelOptions& options,
                                    const ModelKeeper& keeper) const override {
    return std::make_unique<Gpt2>(config_, training_, options, keeper);
  }

 private:
  Gpt2Config config_;
  Gpt2Training training_;
};

}  // namespace tj::trainer
