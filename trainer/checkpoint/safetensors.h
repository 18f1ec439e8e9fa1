// The safetensors format (github.com/huggingface/safetensors, README.md): named raw tensors in one
// file. Torch-free. Layout: u64 little-endian header length, JSON header padded with spaces to 8
// bytes, then the tensors without holes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contract/result.h"
#include "trainer/process/data_file.h"
#include "trainer/process/durable_file.h"

namespace tj::trainer {

inline constexpr const char* kFloat32 = "F32";
inline constexpr const char* kUint8 = "U8";
inline constexpr const char* kFloat16 = "F16";
inline constexpr const char* kBfloat16 = "BF16";

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

/// A tensor that lies in a file: row-major, little-endian.
struct FileTensor : TensorHead {
  std::int64_t begin = 0;  // in the file
  std::int64_t bytes = 0;
};

/// A file and where its tensors lie. Not mapped: a file that is cut while it is read, or a disk
/// that fails, is an error and not a signal.
class SafetensorsFile {
 public:
  /// Fails with Code::invalid when the file is not well formed. Any type of the format is fine
  /// here; read_floats() says which can be used.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);
  std::span<const FileTensor> tensors() const { return tensors_; }
  const FileTensor* find(const std::string& name) const;
  const SafetensorsMetadata& metadata() const { return metadata_; }

  /// What the tensors lie in. Any thread may read.
  const DataFile& data() const { return data_; }
  /// As read_floats() below, from the file. Fails as DataFile::read(), too.
  Result<void> read_floats(const FileTensor& tensor, std::span<float> floats,
                           std::int64_t begin = 0) const;

 private:
  explicit SafetensorsFile(DataFile data) : data_(std::move(data)) {}
  Result<void> read_header(const std::string& subject);
  DataFile data_;
  std::vector<FileTensor> tensors_;
  SafetensorsMetadata metadata_;
};

/// Of one element of a type of the format; 0: there is no such type.
std::size_t element_bytes(std::string_view dtype);

/// Of a type that read_floats() does not take: the type, and which it takes; as the end of a
/// message.
std::optional<std::string> unreadable_type(std::string_view dtype);

/// Converts elements of the flat tensor from `begin` on, as many as `floats` has, from F32, F16 or
/// BF16 to float32, exactly. Fails with Code::invalid for other types, by name.
Result<void> read_floats(const TensorBytes& tensor, std::span<float> floats,
                         std::int64_t begin = 0);

}  // namespace tj::trainer
