#include "trainer/checkpoint/catalog.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "trainer/checkpoint/file_plan.h"
#include "trainer/checkpoint/slice_name.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using WeightMap = std::map<std::string, std::string>;
constexpr std::int64_t kIndexBytesMax = 64 << 20;

Error wrong(const std::string& subject, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = subject};
}

Result<WeightMap> read_index(const fs::path& file) {
  const std::string subject = file.filename().string();
  const auto text = read_small_file(file, kIndexBytesMax);
  if (!text) return text.error();
  const auto document = nlohmann::json::parse(*text, nullptr, false);
  try {
    auto weight_map = document.at("weight_map").get<WeightMap>();
    for (const auto& [name, holder] : weight_map) {
      if (holder.empty() || holder == "." || holder == "..")
        return wrong(subject, "names no file for tensor " + name + ": \"" + holder + "\"");
      if (fs::path(holder).filename() != holder)
        return wrong(subject, "names a file outside of the folder: \"" + holder + "\"");
    }
    return weight_map;
  } catch (const nlohmann::json::exception&) {
    return wrong(subject, "has no weight_map (cut short?)");
  }
}

}  // namespace

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const auto extent : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(extent);
  return text + "]";
}

Result<void> TensorCatalog::add(const fs::path& path) {
  auto file = SafetensorsFile::open(path);
  if (!file) return file.error();
  files_.push_back(std::move(*file));
  for (const auto& tensor : files_.back().tensors()) {
    const auto [other, is_new] = file_of_.emplace(tensor.name, path.filename().string());
    if (!is_new)
      return wrong(path.filename().string(),
                   "tensor " + tensor.name + " is in " + other->second + " as well");
    if (const auto added = add(files_.back(), tensor); !added) return added.error();
  }
  return {};
}

/// `tensor` stays where it is when its file moves.
Result<void> TensorCatalog::add(const SafetensorsFile& file, const FileTensor& tensor) {
  auto slice = parse_slice_name(tensor.name);
  const bool is_slice = slice && tensor.shape == std::vector{slice->range.size()};
  if (!is_slice)
    slice = {.tensor = tensor.name, .range = {.begin = 0, .end = element_count(tensor.shape)}};
  auto& stored = tensors_[slice->tensor];
  if (!stored.pieces.empty() && !(is_slice && stored.is_in_slices))
    return wrong("tensor " + slice->tensor, "is there whole and in slices");
  stored.is_in_slices = is_slice;
  if (!is_slice) stored.shape = tensor.shape;
  stored.pieces.push_back({.range = slice->range, .file = &file, .tensor = &tensor});
  return {};
}

Result<void> TensorCatalog::join_slices() {
  for (auto& [name, stored] : tensors_) {
    if (!stored.is_in_slices) continue;
    std::ranges::sort(stored.pieces, {}, [](const auto& piece) { return piece.range.begin; });
    std::int64_t end = 0;
    for (const auto& piece : stored.pieces) {
      if (piece.range.begin != end)
        return wrong("tensor " + name, "has slices that don't join: one ends at element " +
                                           std::to_string(end) + ", the next begins at " +
                                           std::to_string(piece.range.begin));
      end = piece.range.end;
    }
    stored.shape = {end};
  }
  return {};
}

Result<void> TensorCatalog::check_index(const WeightMap& weight_map,
                                        const std::string& index_file) const {
  for (const auto& [name, file] : weight_map) {
    const auto found = file_of_.find(name);
    if (found == file_of_.end())
      return wrong(index_file, "says that tensor " + name + " is in " + file + "; it is not");
    if (found->second != file)
      return wrong(index_file,
                   "says that tensor " + name + " is in " + file + "; it is in " + found->second);
  }
  for (const auto& [name, file] : file_of_) {
    if (!weight_map.contains(name))
      return wrong(index_file, "does not know tensor " + name + " of " + file);
  }
  return {};
}

Result<TensorCatalog> TensorCatalog::open(const fs::path& folder, const std::string& stem) {
  const std::string index_file = index_name(stem);
  std::error_code unreadable;
  if (!fs::exists(folder / index_file, unreadable))
    return open_file(folder / group_file_name(stem, 0, 1));
  const auto weight_map = read_index(folder / index_file);
  if (!weight_map) return weight_map.error();
  std::map<std::string, std::string> files;  // and a tensor of each
  for (const auto& [name, file] : *weight_map) files.emplace(file, name);
  TensorCatalog catalog;
  for (const auto& [file, tensor] : files) {
    if (!fs::exists(folder / file, unreadable))
      return wrong(file, "is missing; " + index_file + " says that tensor " + tensor +
                             " is in it, and it must lie beside that file");
    if (const auto added = catalog.add(folder / file); !added) return added.error();
  }
  if (const auto joined = catalog.join_slices(); !joined) return joined.error();
  if (const auto agrees = catalog.check_index(*weight_map, index_file); !agrees)
    return agrees.error();
  return catalog;
}

Result<TensorCatalog> TensorCatalog::open_file(const fs::path& file) {
  TensorCatalog catalog;
  if (const auto added = catalog.add(file); !added) return added.error();
  if (const auto joined = catalog.join_slices(); !joined) return joined.error();
  return catalog;
}

Result<TensorCatalog> TensorCatalog::open_named(const fs::path& path) {
  std::error_code unreadable;
  if (!fs::is_directory(path, unreadable)) {
    if (fs::exists(path, unreadable)) return open_file(path);
    return wrong(path.string(),
                 "does not exist; it must be a folder with model.safetensors, or a .safetensors "
                 "file");
  }
  const bool has_weights = fs::exists(path / group_file_name("model", 0, 1), unreadable) ||
                           fs::exists(path / index_name("model"), unreadable);
  if (has_weights) return open(path, "model");
  return wrong(path.string(), "holds neither model.safetensors nor model.safetensors.index.json");
}

const StoredTensor* TensorCatalog::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

Result<void> read_tensor(const StoredTensor* stored, const TensorTarget& target) {
  const std::string subject = "tensor " + target.name;
  if (stored == nullptr) return wrong(subject, "is missing");
  const bool fits = stored->is_in_slices ? stored->shape.front() == element_count(target.shape)
                                         : stored->shape == target.shape;
  if (!fits) {
    return wrong(subject, "has the shape " + shape_text(stored->shape) +
                              (stored->is_in_slices ? " in slices" : "") + "; this model's is " +
                              shape_text(target.shape));
  }
  const auto end = target.begin + static_cast<std::int64_t>(target.floats.size());
  for (const auto& piece : stored->pieces) {
    const auto first = std::max(piece.range.begin, target.begin);
    const auto count = std::min(piece.range.end, end) - first;
    if (count <= 0) continue;
    const auto floats = target.floats.subspan(static_cast<std::size_t>(first - target.begin),
                                              static_cast<std::size_t>(count));
    const auto read = piece.file->read_floats(*piece.tensor, floats, first - piece.range.begin);
    if (!read) return read.error();
  }
  return {};
}

TensorReader reader_of(TensorCatalog catalog) {
  return [kept = std::make_shared<const TensorCatalog>(std::move(catalog))](
             const TensorTarget& target) { return read_tensor(kept->find(target.name), target); };
}

}  // namespace tj::trainer
