// One kind of training, as far as the engine must know it: its flags, its data, its model and the
// words in which it is told. The third seam, beside Communicator and KubeApi.
// docs/adding-a-workload.md walks through a small one.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/model_shape.h"
#include "trainer/report/unit.h"
#include "trainer/values/failure.h"
#include "trainer/workload/command.h"
#include "trainer/workload/flag_reader.h"
#include "trainer/workload/memory_spec.h"
#include "trainer/workload/metric.h"
#include "trainer/workload/model_options.h"
#include "trainer/workload/parameter_groups.h"
#include "trainer/workload/pass_memory.h"
#include "trainer/workload/preset.h"
#include "trainer/workload/sample_source.h"
#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

class Model;  // model.h

/// What a user has named to train on, or to evaluate on.
struct DataPaths {
  std::string flag;  // with which it was named: all messages say it
  std::vector<std::string> paths;
  bool is_eval = false;
  int device_number = 0;  // of the GPUs of this worker, where one of them may help to read
};

/// What --data brings along for evaluations.
struct HeldOut {
  std::vector<std::string> paths = {};  // of its own, opened for an evaluation; empty: none
  std::string why_not = "";             // there is something, and it can't be used
};

struct OpenedData {
  std::unique_ptr<SampleSource> source;
  std::optional<Failure> failure = {};
};

/// What one sample costs.
struct SampleCost {
  double flops = 0;        // of training on it, forward and backward
  std::string formula;     // of the FLOP of one unit, for people
  std::int64_t bytes = 0;  // of its tensors in the host's memory
};

/// In which words the samples of a workload are told.
struct SampleWords {
  Unit unit;                        // what the speed counts
  std::int64_t units = 1;           // in a sample
  std::string units_origin = "";    // the name of the flag that says how many; empty: none
  std::string counted = "samples";  // what the weight counts: "targets"
};

class Workload {
 public:
  virtual ~Workload() = default;

  // Before the data. Called in this order, each once.

  /// Takes shape and names of the weights that --init-from names; headers only. Fails with
  /// Code::invalid for what this workload can't begin with.
  virtual Result<void> read_init(const std::string& path);
  /// Reads the workload's own flags. What is wrong is told to the reader.
  virtual void configure(FlagReader& reader) = 0;

  /// Opens the data. What is trained on comes first, and completes the workload by what it says.
  /// The failure names the flag, the file and the place in it.
  virtual OpenedData open_data(const DataPaths& data) = 0;
  /// In its place where there is no data yet: completes the workload by its flags alone, and makes
  /// samples up that cost what real ones do. The failure names the flag that is missing; unless the
  /// workload says otherwise that is --data.
  virtual OpenedData make_up_data();

  // All that follows needs data, open or made up.

  /// Which of the paths of --data have a part that nobody trains on, for evaluations where
  /// --eval-data says nothing. The same on each rank.
  virtual HeldOut held_out(const std::vector<std::string>& /*data*/) const { return {}; }

  /// Rows of the start-up table that the flags don't have: what is known now.
  virtual std::vector<Setting> settings() const { return {}; }
  /// All tensors of the model in order.
  virtual std::vector<TensorSpec> tensors() const = 0;
  /// The pieces in which the model computes, in the order of the forward pass; their tensors are
  /// indices of tensors(). One of all tensors, unless the workload says otherwise.
  virtual std::vector<ModelBlock> blocks() const;
  /// What passes leave for those of later steps; none: nothing.
  virtual std::optional<MemorySpec> memory() const { return std::nullopt; }
  /// What the engine knows of tensors and updates beside the flags --group, which come after it.
  virtual std::vector<ParameterGroup> groups() const { return {}; }
  /// True: a pass may leave a trained tensor without a gradient, which then counts as zero.
  virtual bool may_leave_tensors_unused() const { return false; }
  virtual std::unique_ptr<Model> make_model(const ModelOptions& options,
                                            const ModelKeeper& keeper) const = 0;

  virtual SampleWords words() const { return {}; }
  virtual SampleCost cost() const = 0;
  /// What its passes take in memory. Without a formula forecasts have what passes here show.
  virtual PassMemory pass_memory(const PassRule& /*rule*/) const { return {}; }
  /// With which of its own flags they take less, the least change first. Those of the engine
  /// (--accumulation, --recompute, --zero) are none of them.
  virtual std::vector<PassRemedy> pass_remedies(const PassRule& /*rule*/) const { return {}; }
  /// Of a step whose weight is 0: why nothing in it counts.
  virtual std::string nothing_counts() const { return "nothing in them counts"; }
  /// How many metric sums each pass gives, and what is made of them.
  virtual std::size_t metric_sums() const { return 0; }
  virtual std::vector<Metric> metrics() const { return {}; }
  /// True: its model makes a picture of what an evaluation sees.
  virtual bool draws_pictures() const { return false; }

  /// By what a checkpoint is known to be of this model.
  virtual ModelShape shape() const = 0;
  /// The text of config.json, which stands in each checkpoint beside the weights.
  virtual std::string config_json() const { return "{}\n"; }
  /// What else stands there, name -> content: small files, written with each checkpoint and
  /// verified like the rest.
  virtual std::map<std::string, std::string> files() const { return {}; }
  /// The weights that --init-from names, by the names of tensors(). Fails with Code::invalid for
  /// tensors that are none of this model; the reader for those that are missing or of another
  /// shape.
  virtual Result<TensorReader> open_initial_weights(const std::string& path) const;
  /// Of the hidden states: thresholds of ZeRO are said in multiples of it.
  virtual std::int64_t hidden_width() const = 0;
};

/// One line of the registry.
struct WorkloadEntry {
  std::string_view name;            // the folder's
  std::string_view title;           // for people: "a GPT-2 on text or tokens"
  const char* data_help;            // what --data names
  std::span<const Preset> presets;  // the first is the default
  std::span<const Flag> flags;
  std::span<const WorkloadCommand> commands = {};     // what it can do beside training
  std::span<const EnvironmentFlag> environment = {};  // flags that variables may set
  /// Of one of the presets.
  std::unique_ptr<Workload> (*make)(const Preset& preset);
};
using Registry = std::span<const WorkloadEntry>;

struct Choice {
  const WorkloadEntry* entry = nullptr;
  Preset preset;
};

/// By the text of --model; the first preset of all where it is absent. Fails with Code::invalid,
/// listing the names.
Result<Choice> choose_workload(Registry registry, const std::optional<std::string>& model);

}  // namespace tj::trainer
