#include "trainer/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/checkpoint/tensor_parts.h"
#include "trainer/values/json_text.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little,
              "tensors are written as they lie in memory");
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kAlignment = 8;
constexpr std::size_t kHeaderBytesMax = 100'000'000;  // safetensors/src/tensor.rs

struct Dtype {
  std::string_view name;
  std::size_t bytes;
};
// safetensors/src/tensor.rs: Dtype. Those of less than a byte are left out.
constexpr Dtype kDtypes[] = {{"BOOL", 1}, {"U8", 1},      {"I8", 1},      {"F8_E5M2", 1},
                             {"U16", 2},  {"F8_E4M3", 1}, {"F8_E8M0", 1}, {"I16", 2},
                             {"F16", 2},  {"BF16", 2},    {"I32", 4},     {"U32", 4},
                             {"F32", 4},  {"F64", 8},     {"I64", 8},     {"U64", 8}};

Error malformed(const std::string& subject, std::string message) {
  return {.code = Code::invalid,
          .message = "is not a usable safetensors file: " + std::move(message),
          .subject = subject};
}

std::size_t bytes_of(const TensorBytes& tensor) { return tensor.bytes.size(); }
std::size_t bytes_of(const TensorParts& tensor) { return tensor.bytes(); }

/// A header before its first tensor.
ordered_json begun_header(const SafetensorsMetadata& metadata) {
  ordered_json header = ordered_json::object();  // also where there is no tensor
  if (!metadata.empty()) header["__metadata__"] = metadata;
  return header;
}

std::string head_of(const ordered_json& header) {
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

template <typename Tensor>
std::string head_of(std::span<const Tensor> tensors, const SafetensorsMetadata& metadata) {
  auto header = begun_header(metadata);
  std::size_t offset = 0;
  for (const auto& tensor : tensors) {
    const std::size_t end = offset + bytes_of(tensor);
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  return head_of(header);
}

Result<FileDigest> write_parts(const fs::path& path, const std::string& head,
                               std::span<const std::span<const std::byte>> parts) {
  auto file = DurableFile::create(path);
  if (!file) return file.error();
  if (const auto written = file->write(std::as_bytes(std::span(head))); !written)
    return written.error();
  for (const auto& part : parts) {
    if (const auto written = file->write(part); !written) return written.error();
  }
  return file->finish();
}

/// Bytes of a tensor of this type and shape; nothing when the type is unknown, an extent negative
/// or the product too large.
std::optional<std::size_t> byte_count(std::string_view dtype,
                                      const std::vector<std::int64_t>& shape) {
  std::size_t bytes = element_bytes(dtype);
  if (bytes == 0) return std::nullopt;
  for (const auto extent : shape) {
    if (extent < 0) return std::nullopt;
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes))
      return std::nullopt;
  }
  return bytes;
}

/// True when the tensors, in the order of their bytes, fill `data` without holes or overlaps.
bool fills(std::vector<TensorBytes> tensors, std::span<const std::byte> data) {
  std::ranges::sort(tensors, {}, [](const TensorBytes& tensor) {
    return std::pair(tensor.bytes.data(), tensor.bytes.size());
  });
  const auto* next = data.data();
  for (const auto& tensor : tensors) {
    if (tensor.bytes.data() != next) return false;
    next += tensor.bytes.size();
  }
  return next == data.data() + data.size();
}

std::vector<std::int64_t> shape_of(const json& entry) {
  std::vector<std::int64_t> shape;
  for (const auto& extent : entry.at("shape")) shape.push_back(integer_of(extent));
  return shape;
}

/// Where the tensor's bytes begin and end.
std::pair<std::size_t, std::size_t> offsets_of(const json& entry) {
  const json& offsets = entry.at("data_offsets");
  return {integer_of<std::size_t>(offsets.at(0)), integer_of<std::size_t>(offsets.at(1))};
}

/// IEEE 754 binary16.
float from_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half >> 15) << 31;
  const std::uint32_t exponent = (half >> 10) & 0x1f;
  const std::uint32_t fraction = half & 0x3ff;
  if (exponent == 0) {
    const float small = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -small : small;
  }
  constexpr std::uint32_t kBias = 127 - 15;
  const std::uint32_t wide = exponent == 0x1f ? 0xff : exponent + kBias;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

float from_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

template <typename Convert>
void convert(std::span<const std::byte> bytes, std::span<float> floats, Convert&& to_float) {
  for (std::size_t index = 0; index < floats.size(); ++index) {
    std::uint16_t bits = 0;  // the bytes of a file need not be aligned
    std::memcpy(&bits, bytes.data() + index * sizeof bits, sizeof bits);
    floats[index] = to_float(bits);
  }
}

}  // namespace

std::size_t TensorParts::bytes() const {
  std::size_t sum = 0;
  for (const auto& part : parts) sum += part.size();
  return sum;
}

std::size_t element_bytes(std::string_view dtype) {
  const auto found = std::ranges::find(kDtypes, dtype, &Dtype::name);
  return found == std::end(kDtypes) ? 0 : found->bytes;
}

std::string safetensors_head(std::span<const TensorBytes> tensors,
                             const SafetensorsMetadata& metadata) {
  return head_of(tensors, metadata);
}

std::string safetensors_head(const TensorHead& tensor, const SafetensorsMetadata& metadata) {
  const auto bytes = byte_count(tensor.dtype, tensor.shape);
  TJ_CHECK(bytes.has_value(), tensor.name);
  auto header = begun_header(metadata);
  header[tensor.name] = {
      {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {0, *bytes}}};
  return head_of(header);
}

Result<FileDigest> write_safetensors(const fs::path& path, std::span<const TensorBytes> tensors,
                                     const SafetensorsMetadata& metadata) {
  std::vector<std::span<const std::byte>> parts;
  for (const auto& tensor : tensors) parts.push_back(tensor.bytes);
  return write_parts(path, safetensors_head(tensors, metadata), parts);
}

Result<FileDigest> write_safetensors_of_parts(const fs::path& path,
                                              std::span<const TensorParts> tensors,
                                              const SafetensorsMetadata& metadata) {
  std::vector<std::span<const std::byte>> parts;
  for (const auto& tensor : tensors)
    parts.insert(parts.end(), tensor.parts.begin(), tensor.parts.end());
  return write_parts(path, head_of(tensors, metadata), parts);
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : map_(std::exchange(other.map_, {})),
      tensors_(std::move(other.tensors_)),
      metadata_(std::move(other.metadata_)) {}

SafetensorsFile::~SafetensorsFile() {
  if (!map_.empty()) ::munmap(const_cast<std::byte*>(map_.data()), map_.size());
}

Result<SafetensorsFile> SafetensorsFile::open(const fs::path& path) {
  const std::string subject = path.filename().string();
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return malformed(subject, std::strerror(errno));
  struct stat status {};
  void* memory = MAP_FAILED;
  if (::fstat(descriptor, &status) == 0 && status.st_size > 0) {
    memory = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE,
                    descriptor, 0);
  }
  ::close(descriptor);
  if (memory == MAP_FAILED) return malformed(subject, "it is empty or can't be mapped");
  SafetensorsFile file(
      {static_cast<const std::byte*>(memory), static_cast<std::size_t>(status.st_size)});
  if (const auto read = file.read_header(subject); !read) return read.error();
  return file;
}

Result<void> SafetensorsFile::read_header(const std::string& subject) {
  std::uint64_t length = 0;
  if (map_.size() < kLengthBytes) return malformed(subject, "shorter than its header length");
  std::memcpy(&length, map_.data(), kLengthBytes);
  if (length > kHeaderBytesMax || length > map_.size() - kLengthBytes) {
    return malformed(subject, "its header of " + std::to_string(length) + " bytes does not fit");
  }
  const auto* const text = reinterpret_cast<const char*>(map_.data()) + kLengthBytes;
  const auto data = map_.subspan(kLengthBytes + length);
  const json header = json::parse(text, text + length, nullptr, false);
  if (!header.is_object()) return malformed(subject, "its header is not a JSON object");
  std::string place;  // in the header
  try {
    for (const auto& [name, entry] : header.items()) {
      place = name == "__metadata__" ? name : "tensor " + name;
      if (name == "__metadata__") {
        metadata_ = entry.get<SafetensorsMetadata>();
        continue;
      }
      TensorBytes tensor{.name = name,
                         .shape = shape_of(entry),
                         .bytes = {},
                         .dtype = entry.at("dtype").get<std::string>()};
      const auto [begin, end] = offsets_of(entry);
      if (begin > end || byte_count(tensor.dtype, tensor.shape) != end - begin)
        return malformed(subject, "tensor " + name + " is not " + tensor.dtype + " of its shape");
      if (end > data.size())
        return malformed(subject, "tensor " + name + " ends " + std::to_string(end - data.size()) +
                                      " bytes behind the end of the file (cut short?)");
      tensor.bytes = data.subspan(begin, end - begin);
      tensors_.push_back(std::move(tensor));
    }
  } catch (const json::exception& failure) {
    return malformed(subject, place + ": " + json_words(failure));
  }
  if (!fills(tensors_, data)) return malformed(subject, "its tensors do not fill it");
  return {};
}

const TensorBytes* SafetensorsFile::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors_, name, &TensorBytes::name);
  return found == tensors_.end() ? nullptr : &*found;
}

Result<void> read_floats(const TensorBytes& tensor, std::span<float> floats, std::int64_t begin) {
  const bool is_whole = tensor.dtype == kFloat32;
  const bool is_half = tensor.dtype == "F16" || tensor.dtype == "BF16";
  if (!is_whole && !is_half) {
    return Error{.code = Code::invalid,
                 .message = "is of type " + tensor.dtype + "; F32, F16 and BF16 can be read",
                 .subject = "tensor " + tensor.name};
  }
  const std::size_t width = is_whole ? 4 : 2;
  const std::size_t offset = static_cast<std::size_t>(begin) * width;
  TJ_CHECK(offset + floats.size() * width <= tensor.bytes.size(), tensor.name);
  const auto bytes = tensor.bytes.subspan(offset, floats.size() * width);
  if (is_whole && !floats.empty()) std::memcpy(floats.data(), bytes.data(), bytes.size());
  if (tensor.dtype == "F16") convert(bytes, floats, from_half);
  if (tensor.dtype == "BF16") convert(bytes, floats, from_bfloat);
  return {};
}

}  // namespace tj::trainer
