#include "trainer/workloads/taehv/taehv_weights.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/torch_file.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using Shape = std::vector<std::int64_t>;

Error wrong(const std::string& subject, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = subject};
}

/// Tensors by name, whichever file has them.
struct Source {
  std::map<std::string, Shape> shapes;
  /// Of a tensor that is there, elements from `begin` on.
  std::function<Result<void>(const std::string& name, std::span<float> floats, std::int64_t begin)>
      read;
};

Result<Source> torch_source(const fs::path& path) {
  auto opened = TorchFile::open(path);
  if (!opened) return opened.error();
  const auto file = std::make_shared<const TorchFile>(std::move(*opened));
  Source source;
  for (const auto& [name, tensor] : file->tensors()) source.shapes[name] = tensor.shape;
  source.read = [file](const std::string& name, std::span<float> floats, std::int64_t begin) {
    return file->read(file->tensors().at(name), floats, begin);
  };
  return source;
}

Result<Source> safetensors_source(const fs::path& path) {
  std::error_code unreadable;
  auto opened = fs::is_directory(path, unreadable) ? TensorCatalog::open(path, kModelStem)
                                                   : TensorCatalog::open_file(path);
  if (!opened) return opened.error();
  const auto catalog = std::make_shared<const TensorCatalog>(std::move(*opened));
  Source source;
  for (const auto& [name, tensor] : catalog->tensors()) source.shapes[name] = tensor.shape;
  source.read = [catalog](const std::string& name, std::span<float> floats, std::int64_t begin) {
    const auto* const stored = catalog->find(name);
    return read_tensor(stored,
                       {.name = name, .shape = stored->shape, .floats = floats, .begin = begin});
  };
  return source;
}

bool is_torch_file(const fs::path& path) {
  return path.extension() == ".pth" || path.extension() == ".pt";
}

/// How many elements of the file's tensor come before the model's; none: it can't be the model's.
std::optional<std::int64_t> elements_before(const Shape& in_file, const TensorSpec& spec) {
  if (in_file == spec.shape) return 0;
  const bool is_of_grow = spec.name.starts_with("decoder.") && spec.name.ends_with(".conv.weight");
  const bool is_wider = in_file.size() == spec.shape.size() && in_file[0] > spec.shape[0] &&
                        std::equal(in_file.begin() + 1, in_file.end(), spec.shape.begin() + 1);
  if (!is_of_grow || !is_wider) return std::nullopt;
  return element_count(in_file) - element_count(spec.shape);
}

}  // namespace

Result<TensorReader> open_taehv_weights(const fs::path& path,
                                        const std::vector<TensorSpec>& tensors) {
  auto opened = is_torch_file(path) ? torch_source(path) : safetensors_source(path);
  if (!opened) return opened.error();
  std::set<std::string> names;
  std::map<std::string, std::int64_t> before;
  for (const auto& spec : tensors) {
    names.insert(spec.name);
    const auto found = opened->shapes.find(spec.name);
    if (found == opened->shapes.end()) return wrong(path.string(), "has no tensor " + spec.name);
    const auto begin = elements_before(found->second, spec);
    if (!begin)
      return wrong(path.string(), "tensor " + spec.name + " is " + shape_text(found->second) +
                                      ", the model's is " + shape_text(spec.shape) +
                                      "; another --model has other shapes");
    before[spec.name] = *begin;
  }
  for (const auto& [name, shape] : opened->shapes)
    if (!names.contains(name))
      return wrong(path.string(), "tensor " + name + " is none of this model's");
  return TensorReader(
      [source = std::move(*opened), before = std::move(before)](const TensorTarget& target) {
        return source.read(target.name, target.floats, before.at(target.name) + target.begin);
      });
}

}  // namespace tj::trainer
