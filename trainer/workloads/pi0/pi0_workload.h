// A robot policy pi0 or pi05 as a workload.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/workload/workload.h"
#include "trainer/workloads/pi0/pi0_config.h"
#include "trainer/workloads/pi0/pi0_weights.h"
#include "trainer/workloads/pi0/robot_data.h"

namespace tj::trainer {

/// Opens what --data names, and completes the model by what it says: names of cameras, values of an
/// action that count. Batches are as Pi0Input says; ids of tokens are below the vocabulary.
using Pi0DataOpener = std::function<OpenedData(const DataPaths& data, Pi0Config& config)>;

class Pi0Workload final : public Workload {
 public:
  /// Without an opener --data names a LeRobot data set.
  explicit Pi0Workload(const Preset& preset, Pi0DataOpener opener = {});

  /// The preset says the towers; what the weights say beside them (vocabulary, widths of state and
  /// actions) is what flags may only repeat.
  Result<void> read_init(const std::string& path) override;
  void configure(FlagReader& reader) override;
  OpenedData open_data(const DataPaths& data) override;
  OpenedData make_up_data() override;
  /// The episodes that --held-out keeps back.
  HeldOut held_out(const std::vector<std::string>& data) const override;

  std::vector<Setting> settings() const override { return settings_; }
  std::vector<TensorSpec> tensors() const override { return pi0_tensors(config_).specs; }
  std::vector<ModelBlock> blocks() const override { return pi0_tensors(config_).blocks; }
  std::unique_ptr<Model> make_model(const ModelOptions& options,
                                    const ModelKeeper& keeper) const override;
  SampleWords words() const override;
  std::size_t metric_sums() const override;
  /// The mean absolute error of sampled actions, in the numbers of the normalisation.
  std::vector<Metric> metrics() const override;
  SampleCost cost() const override;
  ModelShape shape() const override { return pi0_shape(config_); }
  std::string config_json() const override;
  /// With them and the weights `trainer act` needs nothing else.
  std::map<std::string, std::string> files() const override { return files_; }
  Result<TensorReader> open_initial_weights(const std::string& path) const override;
  std::int64_t hidden_width() const override { return config_.prefix.width; }

  const Pi0Config& config() const { return config_; }

 private:
  void check_against_init(FlagReader& reader) const;
  std::optional<Failure> settle(OpenedRobotData& opened, const DataPaths& data);

  std::string preset_name_;
  Pi0DataOpener opener_;
  std::optional<Pi0Sizes> init_;
  std::string init_path_;
  Pi0Config config_;
  RobotDataOptions data_options_;
  std::vector<std::string> training_paths_;
  std::vector<Setting> settings_;
  std::map<std::string, std::string> files_;
};

/// What its data must be made for.
RobotPolicyShape robot_policy_shape(const Pi0Config& config);

/// Of the model, without those of its data.
std::span<const Flag> pi0_flags();
/// The line of the registry.
WorkloadEntry pi0_entry();

}  // namespace tj::trainer
