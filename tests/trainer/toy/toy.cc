// Linear regression on a CSV file: the smallest workload, of docs/adding-a-workload.md.
#include <torch/types.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "trainer/train/engine.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workload/model.h"
#include "trainer/workload/workload.h"
#include "trainer/workloads/registry.h"

namespace tj::trainer {
namespace {

/// Rows of numbers; the last one of each is the target.
class CsvRows final : public SampleSource {
 public:
  /// So many numbers in each row; 1: as many as the first one has.
  explicit CsvRows(std::int64_t columns) : columns_(columns) {}
  Result<void> add(const std::string& where, const std::string& path) {
    std::ifstream file(path);
    std::int64_t number = 1;
    for (std::string line; std::getline(file, line); ++number) {
      std::istringstream cells(line);
      std::int64_t count = 0;
      for (std::string cell; std::getline(cells, cell, ','); ++count) {
        char* end = nullptr;
        values_.push_back(std::strtof(cell.c_str(), &end));
        if (end == cell.c_str() || *end != '\0') return wrong(where, number, "no number: " + cell);
      }
      if (columns_ == 1) columns_ = count;
      if (count != columns_ || count < 2)
        return wrong(where, number, std::to_string(count) + " numbers, not as the first one");
    }
    if (values_.empty()) return wrong(where, number, "nothing to read");
    return {};
  }

  std::int64_t columns() const { return columns_; }
  std::int64_t sample_count() const override {
    return static_cast<std::int64_t>(values_.size()) / columns_;
  }
  Result<SampleBatch> read(std::span<const Sample> samples) const override {
    const auto count = static_cast<std::int64_t>(samples.size());
    HostTensor rows{HostTensor::Type::float32, {count, columns_}, {}};
    for (const auto& sample : samples) {
      const auto* const row = reinterpret_cast<const std::byte*>(
          &values_[static_cast<std::size_t>(sample.index * columns_)]);
      rows.bytes.insert(rows.bytes.end(), row, row + columns_ * 4);
    }
    SampleBatch batch{.tensors = {}, .weight = count};
    batch.tensors.push_back(std::move(rows));
    return batch;
  }
  DataMark mark() const override { return {.unit = "rows", .count = sample_count(), .digest = ""}; }
  std::string description() const override { return std::to_string(sample_count()) + " rows"; }

 private:
  static Error wrong(const std::string& path, std::int64_t line, const std::string& what) {
    return {Code::invalid, "line " + std::to_string(line) + " has " + what, path};
  }

  std::vector<float> values_;
  std::int64_t columns_;
};

class ToyModel final : public Model {
 public:
  ToyModel(const std::vector<TensorSpec>& specs, const ModelOptions& options,
           const ModelKeeper& keeper)
      : hooks_(keeper.hooks), tensors_(initial_tensors(specs, options, keeper)) {}

  PassSums pass(const Batch& batch, std::optional<std::int64_t>) const override {
    const auto& rows = batch.at(0);
    const auto predicted = in_block(
        hooks_, 0, [&] { return at::matmul(rows.slice(1, 0, -1), tensors_[0]) + tensors_[1]; });
    const auto loss = (predicted - rows.slice(1, -1)).square().sum();
    return {.loss = loss, .metrics = {loss}};
  }
  const std::vector<at::Tensor>& tensors() const override { return tensors_; }

 private:
  BlockHooks* hooks_;
  std::vector<at::Tensor> tensors_;
};

constexpr auto kNormal = TensorInit::Kind::normal;
constexpr Preset kPresets[] = {{.name = "toy", .steps = 50, .batch_size = 8, .lr = 0.1}};
constexpr Flag kFlags[] = {{.name = "--spread", .help = "of the initial weights (0.1)"}};

class Toy final : public Workload {
 public:
  void configure(FlagReader& reader) override {
    spread_ =
        reader.real("--spread", {.value = "0.1"}, {0, 10}, "it must be a number from 0 to 10");
  }
  OpenedData open_data(const DataPaths& data) override {
    auto rows = std::make_unique<CsvRows>(features_ + 1);
    for (const auto& path : data.paths)
      if (const auto added = rows->add(data.flag + " " + path, path); !added)
        return {.source = {}, .failure = bad_data(added.error())};
    features_ = rows->columns() - 1;
    return {.source = std::move(rows)};
  }
  std::vector<TensorSpec> tensors() const override {
    return {{.name = "weight", .shape = {features_, 1}, .init = {kNormal, spread_}},
            {.name = "bias", .shape = {1}}};
  }
  std::unique_ptr<Model> make_model(const ModelOptions& options,
                                    const ModelKeeper& keeper) const override {
    return std::make_unique<ToyModel>(tensors(), options, keeper);
  }
  std::size_t metric_sums() const override { return 1; }
  std::vector<Metric> metrics() const override {
    return {{.name = "rmse", .label = "RMSE", .unit = "", .finish = [](auto sums, double weight) {
               return std::sqrt(sums[0] / weight);
             }}};
  }
  SampleCost cost() const override {
    return {.flops = 6.0 * static_cast<double>(features_),
            .formula = "6 x features",
            .bytes = 4 * (features_ + 1)};
  }
  ModelShape shape() const override { return {{"features", "--data", features_}}; }
  std::int64_t hidden_width() const override { return features_; }

 private:
  double spread_ = 0;
  std::int64_t features_ = 0;
};

}  // namespace
}  // namespace tj::trainer

int main(int argc, char** argv) {
  using namespace tj::trainer;
  std::vector<WorkloadEntry> entries(workloads().begin(), workloads().end());
  entries.push_back(
      {.name = "toy",
       .title = "a linear regression on CSV files",
       .data_help = "CSV file of numbers; may be given several times",
       .presets = kPresets,
       .flags = kFlags,
       .make = [](const Preset&) -> std::unique_ptr<Workload> { return std::make_unique<Toy>(); }});
  engine_main(argc, argv, entries);
}
