#include "trainer/checkpoint/export.h"

#include <string>
#include <utility>

#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/draft_file.h"
#include "trainer/checkpoint/file_plan.h"
#include "trainer/checkpoint/source_checkpoint.h"
#include "trainer/checkpoint/torch_archive.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr const char* kNoAverages =
    "has no averages of the weights; trainer train --ema makes them, --weights raw takes the "
    "weights themselves";

Error wrong(const fs::path& subject, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = subject.string()};
}

/// Files are named without their folder where they are opened, and the user may have many.
Error in_folder(const fs::path& folder, const Error& error) {
  return wrong(folder, describe(error));
}

struct Source {
  TensorCatalog model;
  std::optional<TensorCatalog> averages;
};

bool has_group(const fs::path& folder, const std::string& stem) {
  std::error_code unreadable;
  return fs::exists(folder / group_file_name(stem, 0, 1), unreadable) ||
         fs::exists(folder / index_name(stem), unreadable);
}

Result<Source> open_folder(const fs::path& folder, ExportedWeights weights) {
  if (!has_group(folder, kModelStem))
    return wrong(folder, "holds no checkpoint, and no model.safetensors either");
  auto model = TensorCatalog::open(folder, kModelStem);
  if (!model) return in_folder(folder, model.error());
  Source source{.model = std::move(*model), .averages = {}};
  if (weights == ExportedWeights::raw) return source;
  if (!has_group(folder, kEmaStem)) return wrong(folder, kNoAverages);
  auto averages = TensorCatalog::open(folder, kEmaStem);
  if (!averages) return in_folder(folder, averages.error());
  source.averages = std::move(*averages);
  return source;
}

Result<Source> open_file(const fs::path& file, ExportedWeights weights) {
  if (weights == ExportedWeights::ema) return wrong(file, kNoAverages);
  auto model = TensorCatalog::open_file(file);
  if (!model) return model.error();
  return Source{.model = std::move(*model), .averages = {}};
}

/// Says in `end` what it took.
Result<Source> open_source(const ExportOrder& order, ExportEnd& end) {
  end.source = order.from;
  std::error_code unreadable;
  if (!fs::exists(order.from, unreadable)) return wrong(order.from, "is not there");
  if (!fs::is_directory(order.from, unreadable)) return open_file(order.from, order.weights);
  if (!has_checkpoint(order.from)) return open_folder(order.from, order.weights);
  GroupStems stems{kModelStem};
  if (order.weights == ExportedWeights::ema) stems.insert(kEmaStem);
  auto source = source_checkpoint(order.from, stems);
  if (!source) return source.error();
  end.source = source->checkpoint.folder;
  end.step = source->checkpoint.manifest.step;
  end.damaged = std::move(source->damaged);
  return open_folder(end.source, order.weights);
}

/// `stored` with the name and the shape of the model's tensor.
Result<TensorParts> parts_of(const std::string& name, const std::vector<std::int64_t>& shape,
                             const StoredTensor& stored) {
  TensorParts tensor{.name = name, .shape = shape, .parts = {}};
  const bool fits =
      stored.is_in_slices ? stored.shape.front() == element_count(shape) : stored.shape == shape;
  if (!fits)
    return wrong("tensor " + name, "is " + shape_text(shape) + " in the model, and " +
                                       shape_text(stored.shape) + " among the averages");
  tensor.dtype = stored.pieces.front().tensor->dtype;
  for (const auto& piece : stored.pieces) {
    if (piece.tensor->dtype != tensor.dtype)
      return wrong("tensor " + name, "is in slices of several types");
    tensor.parts.emplace_back(piece.bytes());
  }
  return tensor;
}

Result<std::vector<TensorParts>> tensors_of(const Source& source) {
  std::vector<TensorParts> tensors;
  for (const auto& [name, stored] : source.model.tensors()) {
    if (stored.is_in_slices) return wrong("tensor " + name, "is in slices, which have no shape");
    const auto* const average = source.averages ? source.averages->find(name) : nullptr;
    auto tensor = parts_of(name, stored.shape, average != nullptr ? *average : stored);
    if (!tensor) return tensor.error();
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

bool is_safetensors_name(const fs::path& path) { return path.extension() == ".safetensors"; }

}  // namespace

bool is_export_name(const fs::path& path) {
  return is_safetensors_name(path) || path.extension() == ".pth" || path.extension() == ".pt";
}

Result<ExportEnd> export_weights(const ExportOrder& order) {
  TJ_CHECK(is_export_name(order.to), order.to.string());
  ExportEnd end;
  const auto source = open_source(order, end);
  if (!source) return source.error();
  const auto tensors = tensors_of(*source);
  if (!tensors) return tensors.error();
  DraftFile draft(order.to);
  const auto written = is_safetensors_name(order.to)
                           ? write_safetensors_of_parts(draft.path(), *tensors, {{"format", "pt"}})
                           : write_torch_archive(draft.path(), *tensors);
  if (!written) return draft.named(written.error());
  if (const auto named = draft.commit(); !named) return named.error();
  end.tensors = tensors->size();
  for (const auto& tensor : *tensors) end.elements += element_count(tensor.shape);
  end.bytes = written->bytes;
  return end;
}

}  // namespace tj::trainer
