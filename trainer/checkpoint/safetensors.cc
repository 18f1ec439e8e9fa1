#include "trainer/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/checkpoint/tensor_parts.h"
#include "trainer/process/byte_part.h"
#include "trainer/values/json_text.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little,
              "tensors are written as they lie in memory");
constexpr std::int64_t kLengthBytes = 8;
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
                               std::span<const BytePart> parts) {
  auto file = DurableFile::create(path);
  if (!file) return file.error();
  const auto write = [&](std::span<const std::byte> piece) { return file->write(piece); };
  if (const auto written = write(std::as_bytes(std::span(head))); !written) return written.error();
  for (const auto& part : parts) {
    if (const auto written = each_piece(part, write); !written) return written.error();
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

/// True when the tensors, in the order of their bytes, fill a file from `begin` to `end` without
/// holes or overlaps.
bool fills(std::vector<FileTensor> tensors, std::int64_t begin, std::int64_t end) {
  std::ranges::sort(tensors, {},
                    [](const FileTensor& tensor) { return std::pair(tensor.begin, tensor.bytes); });
  for (const auto& tensor : tensors) {
    if (tensor.begin != begin) return false;
    begin += tensor.bytes;
  }
  return begin == end;
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

/// Of elements of `dtype`, which read_floats() takes.
void to_floats(std::span<const std::byte> bytes, std::string_view dtype, std::span<float> floats) {
  if (dtype == kFloat32 && !floats.empty()) std::memcpy(floats.data(), bytes.data(), bytes.size());
  if (dtype == kFloat16) convert(bytes, floats, from_half);
  if (dtype == kBfloat16) convert(bytes, floats, from_bfloat);
}

Result<void> check_floats(const std::string& name, std::string_view dtype) {
  const auto type = unreadable_type(dtype);
  if (!type) return {};
  return Error{
      .code = Code::invalid, .message = "is of type " + *type, .subject = "tensor " + name};
}

}  // namespace

std::size_t TensorParts::bytes() const {
  std::size_t sum = 0;
  for (const auto& part : parts) sum += bytes_in(part);
  return sum;
}

std::size_t element_bytes(std::string_view dtype) {
  const auto found = std::ranges::find(kDtypes, dtype, &Dtype::name);
  return found == std::end(kDtypes) ? 0 : found->bytes;
}

std::optional<std::string> unreadable_type(std::string_view dtype) {
  if (dtype == kFloat32 || dtype == kFloat16 || dtype == kBfloat16) return std::nullopt;
  return std::string(dtype) + "; F32, F16 and BF16 can be read";
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
  std::vector<BytePart> parts;
  for (const auto& tensor : tensors) parts.emplace_back(tensor.bytes);
  return write_parts(path, safetensors_head(tensors, metadata), parts);
}

Result<FileDigest> write_safetensors_of_parts(const fs::path& path,
                                              std::span<const TensorParts> tensors,
                                              const SafetensorsMetadata& metadata) {
  std::vector<BytePart> parts;
  for (const auto& tensor : tensors)
    parts.insert(parts.end(), tensor.parts.begin(), tensor.parts.end());
  return write_parts(path, head_of(tensors, metadata), parts);
}

Result<SafetensorsFile> SafetensorsFile::open(const fs::path& path) {
  const std::string subject = path.filename().string();
  auto data = DataFile::open(path);
  if (!data) return malformed(subject, data.error().message);
  SafetensorsFile file(std::move(*data));
  if (const auto read = file.read_header(subject); !read) return read.error();
  return file;
}

Result<void> SafetensorsFile::read_header(const std::string& subject) {
  std::uint64_t length = 0;
  if (data_.bytes() < kLengthBytes) return malformed(subject, "shorter than its header length");
  if (const auto read = data_.read(0, std::as_writable_bytes(std::span(&length, 1))); !read)
    return malformed(subject, read.error().message);
  const auto room = static_cast<std::uint64_t>(data_.bytes() - kLengthBytes);
  if (length > kHeaderBytesMax || length > room) {
    return malformed(subject, "its header of " + std::to_string(length) + " bytes does not fit");
  }
  const auto text = data_.read(kLengthBytes, static_cast<std::int64_t>(length));
  if (!text) return malformed(subject, text.error().message);
  const auto data_begin = kLengthBytes + static_cast<std::int64_t>(length);
  const auto data_bytes = static_cast<std::size_t>(data_.bytes() - data_begin);
  const json header = json::parse(*text, nullptr, false);
  if (!header.is_object()) return malformed(subject, "its header is not a JSON object");
  std::string place;  // in the header
  try {
    for (const auto& [name, entry] : header.items()) {
      place = name == "__metadata__" ? name : "tensor " + name;
      if (name == "__metadata__") {
        metadata_ = entry.get<SafetensorsMetadata>();
        continue;
      }
      FileTensor tensor{
          {.name = name, .shape = shape_of(entry), .dtype = entry.at("dtype").get<std::string>()}};
      const auto [begin, end] = offsets_of(entry);
      if (begin > end || byte_count(tensor.dtype, tensor.shape) != end - begin)
        return malformed(subject, "tensor " + name + " is not " + tensor.dtype + " of its shape");
      if (end > data_bytes)
        return malformed(subject, "tensor " + name + " ends " + std::to_string(end - data_bytes) +
                                      " bytes behind the end of the file (cut short?)");
      tensor.begin = data_begin + static_cast<std::int64_t>(begin);
      tensor.bytes = static_cast<std::int64_t>(end - begin);
      tensors_.push_back(std::move(tensor));
    }
  } catch (const json::exception& failure) {
    return malformed(subject, place + ": " + json_words(failure));
  }
  if (!fills(tensors_, data_begin, data_.bytes()))
    return malformed(subject, "its tensors do not fill it");
  return {};
}

const FileTensor* SafetensorsFile::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors_, name, &FileTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

Result<void> SafetensorsFile::read_floats(const FileTensor& tensor, std::span<float> floats,
                                          std::int64_t begin) const {
  if (const auto checked = check_floats(tensor.name, tensor.dtype); !checked) return checked;
  const auto width = static_cast<std::int64_t>(element_bytes(tensor.dtype));
  const auto count = static_cast<std::int64_t>(floats.size());
  TJ_CHECK(begin >= 0 && (begin + count) * width <= tensor.bytes, tensor.name);
  if (tensor.dtype == kFloat32)
    return data_.read(tensor.begin + begin * width, std::as_writable_bytes(floats));
  const FileRange range{
      .file = &data_, .begin = tensor.begin + begin * width, .bytes = count * width};
  return each_piece(range, [&](std::span<const std::byte> piece) -> Result<void> {
    const auto elements = piece.size() / static_cast<std::size_t>(width);
    to_floats(piece, tensor.dtype, floats.first(elements));
    floats = floats.subspan(elements);
    return {};
  });
}

Result<void> read_floats(const TensorBytes& tensor, std::span<float> floats, std::int64_t begin) {
  if (const auto checked = check_floats(tensor.name, tensor.dtype); !checked) return checked;
  const std::size_t width = element_bytes(tensor.dtype);
  const std::size_t offset = static_cast<std::size_t>(begin) * width;
  TJ_CHECK(offset + floats.size() * width <= tensor.bytes.size(), tensor.name);
  to_floats(tensor.bytes.subspan(offset, floats.size() * width), tensor.dtype, floats);
  return {};
}

}  // namespace tj::trainer
