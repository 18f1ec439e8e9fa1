#include "trainer/checkpoint/adapter_export.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/draft_file.h"
#include "trainer/checkpoint/source_checkpoint.h"
#include "trainer/checkpoint/tensor_parts.h"
#include "trainer/values/adapter_names.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kMomentBegin = "exp_avg.";  // of the trained tensors in optimizer

Error wrong(std::string subject, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = std::move(subject)};
}

std::int64_t value_of(const Manifest& manifest, const char* key) {
  const auto found = std::ranges::find(manifest.model, key, &ShapeEntry::key);
  return found == manifest.model.end() ? 0 : found->value;
}

/// What stands between `begin` and `end` in the name, if it is such a name.
std::optional<std::string> between(std::string_view begin, std::string_view name,
                                   std::string_view end) {
  if (name.size() <= begin.size() + end.size()) return std::nullopt;
  if (!name.starts_with(begin) || !name.ends_with(end)) return std::nullopt;
  return std::string(name.substr(begin.size(), name.size() - begin.size() - end.size()));
}

/// "h.0.ln_1" of "h.0.ln_1.weight"; nothing of a name without a module.
std::string module_of(const std::string& name) {
  const auto dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

class AdapterFiles {
 public:
  AdapterFiles(const AdapterOrder& order, const Manifest& manifest)
      : prefix_(order.module_prefix),
        manifest_(manifest),
        rank_(value_of(manifest, kLoraRankKey)) {}

  Result<void> add_adapters(const TensorCatalog& training) {
    for (const auto& [name, stored] : training.tensors()) {
      if (const auto table = between(kAdapterBegin, name, kAdapterTableAEnd))
        return wrong(
            *table,
            "is a table whose rows are looked up; PEFT adapts no other use of it, such as "
            "that as the head. trainer export without --adapter writes the merged weights");
      const auto module = between(kAdapterBegin, name, kAdapterAEnd);
      if (!module) continue;
      const auto b_name = std::string(kAdapterBegin) + *module + std::string(kAdapterBEnd);
      const auto* const b = training.find(b_name);
      if (b == nullptr) return wrong(b_name, "is missing");
      const auto &rows = stored.shape, &columns = b->shape;
      if (rows.size() != 2 || columns.size() != 2 || rows[0] != rank_ || columns[1] != rank_)
        return wrong(*module, "has adapters " + shape_text(rows) + " and " + shape_text(columns) +
                                  ", which are not of rank " + std::to_string(rank_));
      if (auto added = add(*module, kAdapterAEnd, stored); !added) return added;
      if (auto added = add(*module, kAdapterBEnd, *b); !added) return added;
      adapted_.insert(*module);
    }
    return adapted_.empty() ? wrong("training", "holds no adapters") : Result<void>();
  }

  /// Modules of which something was trained as a whole: with all that they hold.
  Result<void> add_whole(const TensorCatalog& optimizer, const TensorCatalog& model) {
    for (const auto& [moment, stored] : optimizer.tensors()) {
      const auto name = between(kMomentBegin, moment, "");
      if (!name || name->starts_with(kAdapterBegin)) continue;
      if (model.find(*name) == nullptr) continue;  // only the training needs it
      const auto module = module_of(*name);
      if (module.empty() || adapted_.contains(module))
        return wrong(*name,
                     "was trained as a whole, and PEFT's files hold whole modules or adapters "
                     "alone. trainer export without --adapter writes the merged weights");
      whole_.insert(module);
    }
    for (const auto& [name, stored] : model.tensors()) {
      const auto module = module_of(name);
      if (!whole_.contains(module)) continue;
      if (auto added = add(module, name.substr(module.size()), stored); !added) return added;
    }
    return {};
  }

  std::string config_text() const {
    const auto names = [&](const std::set<std::string>& modules) {
      auto list = nlohmann::ordered_json::array();
      for (const auto& module : modules) list.push_back(prefix_ + module);
      return list;
    };
    const nlohmann::ordered_json config{
        {"peft_type", "LORA"},
        {"task_type", nullptr},
        {"base_model_name_or_path", nullptr},
        {"r", rank_},
        {"lora_alpha", value_of(manifest_, kLoraAlphaKey)},
        {"lora_dropout", 0.0},
        {"bias", "none"},
        {"fan_in_fan_out", value_of(manifest_, kLoraTransposedKey) > 0},
        {"target_modules", names(adapted_)},
        {"modules_to_save", whole_.empty() ? nlohmann::ordered_json() : names(whole_)},
        {"use_dora", false},
        {"use_rslora", false},
        {"init_lora_weights", true},
        {"inference_mode", true}};
    return config.dump(2) + "\n";
  }

  const std::vector<TensorParts>& tensors() const { return tensors_; }
  std::int64_t rank() const { return rank_; }
  std::size_t adapted() const { return adapted_.size(); }
  std::size_t whole() const { return whole_.size(); }

 private:
  Result<void> add(const std::string& module, std::string_view end, const StoredTensor& stored) {
    const auto name = std::string(kAdapterBegin) + prefix_ + module + std::string(end);
    if (stored.is_in_slices || stored.pieces.size() != 1) return wrong(name, "is in slices");
    const auto& piece = stored.pieces.front();
    tensors_.push_back({.name = name,
                        .shape = stored.shape,
                        .parts = {piece.bytes()},
                        .dtype = piece.tensor->dtype});
    return {};
  }

  std::string prefix_;
  const Manifest& manifest_;
  std::int64_t rank_;
  std::set<std::string> adapted_, whole_;
  std::vector<TensorParts> tensors_;
};

/// Both drafts are written before one of them gets its name.
Result<std::int64_t> write_files(const fs::path& folder, const AdapterFiles& files) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure)
    return Error{.code = Code::unavailable,
                 .message = "can't be created: " + failure.message(),
                 .subject = folder.string()};
  DraftFile tensors(folder / kAdapterModelFile), config(folder / kAdapterConfigFile);
  const auto written =
      write_safetensors_of_parts(tensors.path(), files.tensors(), {{"format", "pt"}});
  if (!written) return tensors.named(written.error());
  if (const auto done = write_durably(config.path(), files.config_text()); !done)
    return config.named(done.error());
  if (const auto named = tensors.commit(); !named) return named.error();
  if (const auto named = config.commit(); !named) return named.error();
  return written->bytes;
}

}  // namespace

Result<AdapterEnd> export_adapter(const AdapterOrder& order) {
  if (!has_checkpoint(order.from)) return wrong(order.from.string(), "holds no checkpoint");
  auto source = source_checkpoint(order.from, {kModelStem, kOptimizerStem, kTrainingStem});
  if (!source) return source.error();
  const auto& [folder, manifest] = source->checkpoint;
  AdapterFiles files(order, manifest);
  if (files.rank() == 0)
    return wrong(folder.string(), "has no adapters; trainer train --lora makes them");
  const auto in_folder = [&](const Error& error) {
    return wrong(folder.string(), describe(error));
  };
  const auto training = TensorCatalog::open(folder, kTrainingStem);
  if (!training) return in_folder(training.error());
  const auto optimizer = TensorCatalog::open(folder, kOptimizerStem);
  if (!optimizer) return in_folder(optimizer.error());
  const auto model = TensorCatalog::open(folder, kModelStem);
  if (!model) return in_folder(model.error());
  if (const auto added = files.add_adapters(*training); !added) return in_folder(added.error());
  if (const auto added = files.add_whole(*optimizer, *model); !added)
    return in_folder(added.error());
  const auto bytes = write_files(order.to, files);
  if (!bytes) return bytes.error();
  return AdapterEnd{.source = folder,
                    .step = manifest.step,
                    .rank = files.rank(),
                    .adapted = files.adapted(),
                    .whole = files.whole(),
                    .bytes = *bytes,
                    .damaged = std::move(source->damaged)};
}

}  // namespace tj::trainer
