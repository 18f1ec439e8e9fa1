#include "trainer/workloads/qwen_vggt/qwen_weights.h"

#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "trainer/process/durable_file.h"
#include "trainer/workloads/qwen_vggt/qwen_json.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using NamedTensors = std::map<std::string, const StoredTensor*>;

constexpr std::int64_t kConfigBytesMax = 1 << 20;
constexpr std::string_view kNewVision = "model.visual.";
constexpr std::string_view kNewText = "model.language_model.";
constexpr std::string_view kCoupling = "merger.";
constexpr std::string_view kVggt = "vggt.";
const std::string kWords = "model.embed_tokens.weight";
const std::string kHead = "lm_head.weight";

Error wrong(const fs::path& path, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = path.string()};
}

Result<NamedTensors> by_published_names(const TensorCatalog& catalog, const fs::path& path) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : catalog.tensors()) {
    const auto published = published_qwen_name(name);
    if (!tensors.emplace(published, &tensor).second)
      return wrong(path, "tensor " + published + " is there twice, under two names");
  }
  return tensors;
}

/// What of a coupled model is none of this one: a VGGT that was saved with it, and the coupling's
/// tensors where it is off.
void leave_out_coupling(NamedTensors& tensors, std::span<const TensorSpec> specs) {
  bool is_coupled = false;
  for (const auto& spec : specs) is_coupled |= spec.name.starts_with(kCoupling);
  std::erase_if(tensors, [&](const auto& entry) {
    const bool is_of_vggt = entry.first.starts_with(kVggt);
    return is_of_vggt || (!is_coupled && entry.first.starts_with(kCoupling));
  });
}

/// Files of a tied model may hold its head once more, or in place of the embedding.
void tie_head(NamedTensors& tensors) {
  const auto head = tensors.extract(kHead);
  if (!head.empty() && !tensors.contains(kWords)) tensors[kWords] = head.mapped();
}

Result<void> check_tensors(const NamedTensors& tensors, std::span<const TensorSpec> specs,
                           const fs::path& path) {
  std::set<std::string> wanted;
  for (const auto& spec : specs) {
    wanted.insert(spec.name);
    const auto found = tensors.find(spec.name);
    if (found == tensors.end()) return wrong(path, "has no tensor " + spec.name);
    if (found->second->shape == spec.shape) continue;
    const auto by = spec.name.starts_with(kCoupling)
                        ? "for this VGGT it must be "  // with which it was not trained
                        : "by config.json it is ";
    return wrong(path, "tensor " + spec.name + " is " + shape_text(found->second->shape) +
                           ", and " + by + shape_text(spec.shape));
  }
  for (const auto& [name, tensor] : tensors)
    if (!wanted.contains(name)) return wrong(path, "tensor " + name + " is none of this model's");
  return {};
}

}  // namespace

std::string published_qwen_name(std::string name) {
  if (name.starts_with(kNewVision)) return name.substr(std::string_view("model.").size());
  if (name.starts_with(kNewText)) return "model." + name.substr(kNewText.size());
  return name;
}

Result<QwenConfig> read_qwen_config(const fs::path& folder) {
  const auto file = folder / "config.json";
  const auto text = read_small_file(file, kConfigBytesMax);
  if (!text) return text.error();
  return qwen_config_from(*text, file);
}

Result<TensorReader> open_qwen_weights(const fs::path& path, std::span<const TensorSpec> specs) {
  auto opened = TensorCatalog::open_named(path);
  if (!opened) return opened.error();
  const auto catalog = std::make_shared<const TensorCatalog>(std::move(*opened));
  auto tensors = by_published_names(*catalog, path);
  if (!tensors) return tensors.error();
  bool has_head = false;
  for (const auto& spec : specs) has_head |= spec.name == kHead;
  if (!has_head) tie_head(*tensors);
  leave_out_coupling(*tensors, specs);
  if (const auto checked = check_tensors(*tensors, specs, path); !checked) return checked.error();
  return TensorReader([catalog, tensors = std::move(*tensors)](const TensorTarget& target) {
    const auto found = tensors.find(target.name);
    return read_tensor(found == tensors.end() ? nullptr : found->second, target);
  });
}

Result<bool> has_coupling(const fs::path& path) {
  const auto catalog = TensorCatalog::open_named(path);
  if (!catalog) return catalog.error();
  for (const auto& [name, tensor] : catalog->tensors())
    if (name.starts_with(kCoupling)) return true;
  return false;
}

}  // namespace tj::trainer
