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
#include <string_view>
#include <vector>

#include "contract/result.h"
#include "trainer/process/durable_file.h"

namespace tj::trainer {

inline constexpr const char* kFloat32 = "F32";
inline constexpr const char* kUint8 = "U8";
inline constexpr const char* kFloat16 = "F16";

struct TensorBytes {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // row-major, little-endian
  std::string dtype = kFloat32;      // in the words of the format: "F32", "BF16", "BOOL", ...
};

using SafetensorsMetadata = std::map<std::string, std::string>;
/// Of the metadata of a checkpoint's files: which step they are of.
inline constexpr const char* kStepKey = "step";

/// What stands before the tensors: the header's length and the header.
std::string safetensors_head(std::span<const TensorBytes> tensors,
                             const SafetensorsMetadata& metadata);

/// A tensor whose bytes come later, one after another.
struct TensorHead {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string dtype = kFloat32;
  bool operator==(const TensorHead&) const = default;
};
/// What stands before the only tensor of a file; its type and shape are the caller's, and right.
std::string safetensors_head(const TensorHead& tensor, const SafetensorsMetadata& metadata);

Result<FileDigest> write_safetensors(const std::filesystem::path& path,
                                     std::span<const TensorBytes> tensors,
                                     const SafetensorsMetadata& metadata);

/// A mapped file and its tensors; they live as long as it does.
class SafetensorsFile {
 public:
  /// Fails with Code::invalid when the file is not well formed. Any type of the format is fine
  /// here; read_floats() says which can be used.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);
  std::span<const TensorBytes> tensors() const { return tensors_; }
  const TensorBytes* find(const std::string& name) const;
  /// Where the bytes of one of its tensors begin in the file.
  std::size_t offset_of(const TensorBytes& tensor) const {
    return static_cast<std::size_t>(tensor.bytes.data() - map_.data());
  }
  const SafetensorsMetadata& metadata() const { return metadata_; }

  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;
  ~SafetensorsFile();

 private:
  explicit SafetensorsFile(std::span<const std::byte> map) : map_(map) {}
  Result<void> read_header(const std::string& subject);
  std::span<const std::byte> map_;
  std::vector<TensorBytes> tensors_;
  SafetensorsMetadata metadata_;
};

/// Of one element of a type of the format; 0: there is no such type.
std::size_t element_bytes(std::string_view dtype);

/// Converts elements of the flat tensor from `begin` on, as many as `floats` has, from F32, F16 or
/// BF16 to float32, exactly. Fails with Code::invalid for other types, by name.
Result<void> read_floats(const TensorBytes& tensor, std::span<float> floats,
                         std::int64_t begin = 0);

}  // namespace tj::trainer
