// All tensors of one group, by name, whole or in slices, from whatever files hold them: one, or
// several and their index. Who wrote how many of them does not matter.
#pragma once
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/process/byte_part.h"
#include "trainer/values/flat_layout.h"

namespace tj::trainer {

/// A tensor as the files hold it.
struct StoredTensor {
  struct Piece {
    ElementRange range;  // of the flat tensor
    const SafetensorsFile* file = nullptr;
    const FileTensor* tensor = nullptr;
    /// Its bytes, where they lie.
    FileRange bytes() const {
      return {.file = &file->data(), .begin = tensor->begin, .bytes = tensor->bytes};
    }
  };
  std::vector<std::int64_t> shape;  // of one in slices: one extent, all its elements
  bool is_in_slices = false;
  std::vector<Piece> pieces;  // in their order and without holes
};

class TensorCatalog {
 public:
  /// `stem`.safetensors.index.json in `folder` and the files it names, else `stem`.safetensors.
  /// Fails with Code::invalid when a file is missing or not well formed, a tensor is in two files,
  /// a slice of one is missing, or the index disagrees with the files.
  static Result<TensorCatalog> open(const std::filesystem::path& folder, const std::string& stem);
  /// One file of any name.
  static Result<TensorCatalog> open_file(const std::filesystem::path& file);
  /// Of what a user names: a folder that has the group "model", or one file. Fails as these, and
  /// where nothing is there.
  static Result<TensorCatalog> open_named(const std::filesystem::path& path);

  const StoredTensor* find(const std::string& name) const;
  /// Ordered by name.
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }

 private:
  Result<void> add(const std::filesystem::path& file);
  Result<void> add(const SafetensorsFile& file, const FileTensor& tensor);
  Result<void> join_slices();
  Result<void> check_index(const std::map<std::string, std::string>& weight_map,
                           const std::string& index_file) const;

  std::deque<SafetensorsFile> files_;  // they stay where they are
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> file_of_;
};

/// Where one tensor is to be read to.
struct TensorTarget {
  std::string name;
  std::vector<std::int64_t> shape;  // of the whole
  std::span<float> floats;
  std::int64_t begin = 0;  // which element of the flat tensor is the first of `floats`
};

using TensorReader = std::function<Result<void>(const TensorTarget&)>;

/// Reads `stored` (nullptr: there is none) to `target`. Fails as reader_of().
Result<void> read_tensor(const StoredTensor* stored, const TensorTarget& target);
/// Reads from the catalog, and keeps it. Fails with Code::invalid, and both shapes, when the
/// tensor is missing or of another shape.
TensorReader reader_of(TensorCatalog catalog);

/// "[2, 3]"
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace tj::trainer
