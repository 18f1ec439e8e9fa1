// The safetensors format (github.com/huggingface/safetensors, README.md): named raw tensors in one
// file. Torch-free. Layout: u64 little-endian header length, JSON header padded with spaces to 8
// bytes, then the tensors without holes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/durable_file.h"

namespace tj::trainer {

struct TensorBytes {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // float32, row-major, little-endian
};

using SafetensorsMetadata = std::map<std::string, std::string>;

Result<FileDigest> write_safetensors(const std::filesystem::path& path,
                                     std::span<const TensorBytes> tensors,
                                     const SafetensorsMetadata& metadata);

/// A mapped file and its tensors; they live as long as it does.
class SafetensorsFile {
 public:
  /// Fails with Code::invalid when the file is not well formed or holds anything but float32.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);
  std::span<const TensorBytes> tensors() const { return tensors_; }
  const TensorBytes* find(const std::string& name) const;

  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;
  ~SafetensorsFile();

 private:
  explicit SafetensorsFile(std::span<const std::byte> map) : map_(map) {}
  Result<void> read_header(const std::string& subject);
  std::span<const std::byte> map_;
  std::vector<TensorBytes> tensors_;
};

}  // namespace tj::trainer
