#include "trainer/workloads/qwen_vggt/vggt_weights.h"

#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/torch_file.h"
#include "trainer/workload/autocast.h"
#include "trainer/workload/read_weights.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using Shape = std::vector<std::int64_t>;

// What else stands in the published file; the mask is of DINO's own training.
constexpr std::string_view kUnused[] = {"camera_head.", "point_head.", "depth_head.", "track_head.",
                                        "aggregator.patch_embed.mask_token"};
constexpr std::int64_t kSideMax = 1'000'000;  // of positions; more than vggt_flaw() lets pass
const std::string kPatches = "aggregator.patch_embed.patch_embed.proj.weight";
const std::string kPositions = "aggregator.patch_embed.pos_embed";
const std::string kRegisters = "aggregator.register_token";
const std::string kHeadNorm = "aggregator.frame_blocks.0.attn.q_norm.weight";
const std::string kMlp = "aggregator.frame_blocks.0.mlp.fc1.weight";

Error wrong(const fs::path& path, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = path.string()};
}

/// Tensors by name, whichever file has them.
struct Source {
  std::map<std::string, Shape> shapes;
  TensorReader read;  // of a tensor that is there
};

bool is_unused(const std::string& name) {
  return std::ranges::any_of(kUnused, [&](auto part) { return name.starts_with(part); });
}

template <typename Tensors>
std::map<std::string, Shape> shapes_of(const Tensors& tensors) {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, tensor] : tensors)
    if (!is_unused(name)) shapes[name] = tensor.shape;
  return shapes;
}

Result<Source> torch_source(const fs::path& path) {
  auto opened = TorchFile::open(path);
  if (!opened) return opened.error();
  const auto file = std::make_shared<const TorchFile>(std::move(*opened));
  return Source{.shapes = shapes_of(file->tensors()), .read = [file](const TensorTarget& target) {
                  return file->read(file->tensors().at(target.name), target.floats, target.begin);
                }};
}

Result<Source> open_source(const fs::path& path) {
  if (path.extension() == ".pt" || path.extension() == ".pth") return torch_source(path);
  auto catalog = TensorCatalog::open_named(path);
  if (!catalog) return catalog.error();
  auto shapes = shapes_of(catalog->tensors());
  return Source{.shapes = std::move(shapes), .read = reader_of(std::move(*catalog))};
}

/// How many layers there are whose tensors' names begin with `prefix` and a number.
std::int64_t count_layers(const Source& source, const std::string& prefix) {
  std::int64_t count = 0;
  while (source.shapes.contains(prefix + std::to_string(count) + ".norm1.weight")) ++count;
  return count;
}

/// Why the shapes can't be of a VGGT; empty: `into` has their sizes.
std::string read_sizes(const Source& source, VggtConfig& into) {
  const std::pair<const std::string&, std::size_t> wanted[] = {
      {kPatches, 4}, {kPositions, 3}, {kRegisters, 4}, {kHeadNorm, 1}, {kMlp, 2}};
  for (const auto& [name, extents] : wanted) {
    const auto found = source.shapes.find(name);
    if (found == source.shapes.end()) return "has no tensor " + name + "; is this a VGGT?";
    const bool is_sound =
        found->second.size() == extents &&
        std::ranges::all_of(found->second, [](auto extent) { return extent >= 1; });
    if (!is_sound)
      return "tensor " + name + " has the shape " + shape_text(found->second) + "; it must have " +
             std::to_string(extents) + " extents";
  }
  const auto& patches = source.shapes.at(kPatches);
  const auto head_width = source.shapes.at(kHeadNorm)[0];
  into.width = patches[0];
  into.patch_side = patches[3];
  into.registers = source.shapes.at(kRegisters)[2];
  into.hidden = source.shapes.at(kMlp)[0];
  into.heads = into.width / head_width;
  into.layers = count_layers(source, "aggregator.frame_blocks.");
  into.dino_layers = count_layers(source, "aggregator.patch_embed.blocks.");
  const auto positions = source.shapes.at(kPositions)[1] - 1;
  into.positions_side = 0;
  const auto fits = [positions](std::int64_t side) { return side * side <= positions; };
  while (into.positions_side < kSideMax && fits(into.positions_side + 1)) ++into.positions_side;
  return vggt_flaw(into);
}

Result<VggtConfig> config_of(const Source& source, const fs::path& path) {
  VggtConfig config;
  if (auto flaw = read_sizes(source, config); !flaw.empty()) return wrong(path, std::move(flaw));
  return config;
}

Result<void> check_tensors(const Source& source, std::span<const TensorSpec> specs,
                           const fs::path& path) {
  std::set<std::string> wanted;
  for (const auto& spec : specs) {
    wanted.insert(spec.name);
    const auto found = source.shapes.find(spec.name);
    if (found == source.shapes.end()) return wrong(path, "has no tensor " + spec.name);
    if (found->second != spec.shape)
      return wrong(path, "tensor " + spec.name + " is " + shape_text(found->second) +
                             ", and by the other tensors' shapes it is " + shape_text(spec.shape));
  }
  for (const auto& [name, shape] : source.shapes)
    if (!wanted.contains(name)) return wrong(path, "tensor " + name + " is none of VGGT's");
  return {};
}

}  // namespace

Result<VggtConfig> read_vggt_config(const fs::path& path) {
  const auto source = open_source(path);
  if (!source) return source.error();
  return config_of(*source, path);
}

Result<std::unique_ptr<Vggt>> open_vggt(const fs::path& path, const ModelOptions& options,
                                        Communicator* ranks) {
  const auto source = open_source(path);
  if (!source) return source.error();
  const auto config = config_of(*source, path);
  if (!config) return config.error();
  const auto specs = vggt_tensors(*config).specs;
  if (const auto checked = check_tensors(*source, specs, path); !checked) return checked.error();
  auto place = options;
  if (ranks != nullptr)
    place.gpu.reset();  // the device has no room for what it is to keep a part of
  std::optional<Error> failed;
  const auto weight = [&](std::size_t index) {
    const auto type = type_of(options.precision);
    if (failed) return torch::zeros(specs[index].shape, type);
    auto read = read_weights(source->read, {&specs[index], 1}, place);
    if (read) return std::move(read->front());
    failed = read.error();
    return torch::zeros(specs[index].shape, type);
  };
  auto vggt = std::make_unique<Vggt>(weight, *config, options, ranks);
  if (failed) return *failed;
  return vggt;
}

}  // namespace tj::trainer
