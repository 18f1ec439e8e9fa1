// All tensors of one group, by name, from whatever files hold them: one file, or shards and their
// index. Who wrote how many of them does not matter.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/state_group.h"

namespace tj::trainer {

class TensorCatalog {
 public:
  /// `stem`.safetensors.index.json in `folder` and the shards it names, else `stem`.safetensors.
  /// Fails with Code::invalid when a file is missing or not well formed, a tensor is in two files,
  /// or the index disagrees with the files.
  static Result<TensorCatalog> open(const std::filesystem::path& folder, const std::string& stem);
  /// One file of any name.
  static Result<TensorCatalog> open_file(const std::filesystem::path& file);

  const TensorBytes* find(const std::string& name) const;
  /// Ordered by name.
  const std::map<std::string, const TensorBytes*>& tensors() const { return tensors_; }

 private:
  Result<void> add(const std::filesystem::path& file);
  Result<void> check_index(const std::map<std::string, std::string>& weight_map,
                           const std::string& index_file) const;

  std::vector<SafetensorsFile> files_;
  std::map<std::string, const TensorBytes*> tensors_;
  std::map<std::string, std::string> file_of_;
};

/// Where one tensor is to be read to.
struct TensorTarget {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<float> floats;
};

using TensorReader = std::function<Result<void>(const TensorTarget&)>;

/// Reads `stored` (nullptr: there is none) to `target`. Fails as reader_of().
Result<void> read_tensor(const TensorBytes* stored, const TensorTarget& target);
/// Reads from the catalog, and keeps it. Fails with Code::invalid, and both shapes, when the
/// tensor is missing or of another shape.
TensorReader reader_of(TensorCatalog catalog);

/// "[2, 3]"
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace tj::trainer
