#include "trainer/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

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
constexpr const char* kDtype = "F32";

Error malformed(const std::string& subject, std::string message) {
  return {.code = Code::invalid,
          .message = "is not a usable safetensors file: " + std::move(message),
          .subject = subject};
}

std::string header_text(std::span<const TensorBytes> tensors, const SafetensorsMetadata& metadata) {
  ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t offset = 0;
  for (const auto& tensor : tensors) {
    const std::size_t end = offset + tensor.bytes.size();
    header[tensor.name] = {
        {"dtype", kDtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

/// Bytes of a float32 tensor of this shape; nothing when it is negative or would overflow.
std::optional<std::size_t> float_bytes(const std::vector<std::int64_t>& shape) {
  std::size_t bytes = sizeof(float);
  for (const auto extent : shape) {
    if (extent < 0) return std::nullopt;
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes))
      return std::nullopt;
  }
  return bytes;
}

}  // namespace

Result<FileDigest> write_safetensors(const fs::path& path, std::span<const TensorBytes> tensors,
                                     const SafetensorsMetadata& metadata) {
  const std::string header = header_text(tensors, metadata);
  const std::uint64_t length = header.size();
  auto file = DurableFile::create(path);
  if (!file) return file.error();
  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(&length, 1)),
                                                std::as_bytes(std::span(header))};
  for (const auto& tensor : tensors) parts.push_back(tensor.bytes);
  for (const auto& part : parts) {
    if (const auto written = file->write(part); !written) return written.error();
  }
  return file->finish();
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : map_(std::exchange(other.map_, {})), tensors_(std::move(other.tensors_)) {}

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
  std::size_t total_bytes = 0;
  try {
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      TensorBytes tensor{
          .name = name, .shape = entry.at("shape").get<std::vector<std::int64_t>>(), .bytes = {}};
      const auto [begin, end] = entry.at("data_offsets").get<std::pair<std::size_t, std::size_t>>();
      const auto bytes = float_bytes(tensor.shape);
      const bool fits = begin <= end && end <= data.size() && bytes == end - begin;
      if (!fits || entry.at("dtype") != kDtype)
        return malformed(subject, "tensor " + name + " is not float32 of its shape");
      tensor.bytes = data.subspan(begin, end - begin);
      total_bytes += tensor.bytes.size();
      tensors_.push_back(std::move(tensor));
    }
  } catch (const json::exception& failure) {
    return malformed(subject, failure.what());
  }
  if (total_bytes != data.size()) return malformed(subject, "its tensors do not fill it");
  return {};
}

const TensorBytes* SafetensorsFile::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors_, name, &TensorBytes::name);
  return found == tensors_.end() ? nullptr : &*found;
}

}  // namespace tj::trainer
