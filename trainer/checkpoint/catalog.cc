#include "trainer/checkpoint/catalog.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "trainer/checkpoint/shard_plan.h"

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
    for (const auto& [name, shard] : weight_map) {
      if (fs::path(shard).filename() != shard)
        return wrong(subject, "names a file outside of the folder: \"" + shard + "\"");
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
    tensors_[tensor.name] = &tensor;  // stays where it is when the file moves
  }
  return {};
}

Result<void> TensorCatalog::check_index(const WeightMap& weight_map,
                                        const std::string& index_file) const {
  for (const auto& [name, shard] : weight_map) {
    const auto found = file_of_.find(name);
    if (found == file_of_.end())
      return wrong(index_file, "says that tensor " + name + " is in " + shard + "; it is not");
    if (found->second != shard)
      return wrong(index_file,
                   "says that tensor " + name + " is in " + shard + "; it is in " + found->second);
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
    return open_file(folder / shard_name(stem, 0, 1));
  const auto weight_map = read_index(folder / index_file);
  if (!weight_map) return weight_map.error();
  std::set<std::string> shards;
  for (const auto& [name, shard] : *weight_map) shards.insert(shard);
  TensorCatalog catalog;
  for (const auto& shard : shards) {
    if (const auto added = catalog.add(folder / shard); !added) return added.error();
  }
  if (const auto agrees = catalog.check_index(*weight_map, index_file); !agrees)
    return agrees.error();
  return catalog;
}

Result<TensorCatalog> TensorCatalog::open_file(const fs::path& file) {
  TensorCatalog catalog;
  if (const auto added = catalog.add(file); !added) return added.error();
  return catalog;
}

const TensorBytes* TensorCatalog::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second;
}

Result<void> read_tensor(const TensorBytes* stored, const TensorTarget& target) {
  const std::string subject = "tensor " + target.name;
  if (stored == nullptr) return wrong(subject, "is missing");
  if (stored->shape != target.shape) {
    return wrong(subject, "has the shape " + shape_text(stored->shape) + "; this model's is " +
                              shape_text(target.shape));
  }
  return read_floats(*stored, target.floats);
}

TensorReader reader_of(TensorCatalog catalog) {
  return [kept = std::make_shared<const TensorCatalog>(std::move(catalog))](
             const TensorTarget& target) { return read_tensor(kept->find(target.name), target); };
}

}  // namespace tj::trainer
