// A .safetensors file of somebody else. What begins with { is a header alone: its length and as
// many bytes of data as it asks for are put around it, so that more than the length is reached.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/fuzz/fuzzed.h"
#include "trainer/checkpoint/safetensors.h"

namespace {
using nlohmann::json;
using tj::trainer::SafetensorsFile;
using tj::trainer::TensorBytes;
constexpr std::uint64_t kDataBytesMax = 1 << 16;

std::uint64_t data_bytes_of(const std::string& header) {
  std::uint64_t most = 0;
  const json document = json::parse(header, nullptr, false);
  for (const auto& entry : document.is_object() ? document : json::object()) {
    if (!entry.is_object() || !entry.contains("data_offsets")) continue;
    for (const auto& offset : entry["data_offsets"])
      if (offset.is_number_unsigned()) most = std::max(most, offset.get<std::uint64_t>());
  }
  return std::min(most, kDataBytesMax);
}

std::string file_of(const std::string& input) {
  if (!input.starts_with('{')) return input;
  const std::uint64_t length = input.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += input;
  const std::uint64_t data_bytes = data_bytes_of(input);
  for (std::uint64_t at = 0; at < data_bytes; ++at) file += static_cast<char>(at * 37);
  return file;
}

void read_all(const TensorBytes& tensor) {
  const std::size_t width = tensor.dtype == tj::trainer::kFloat32 ? 4 : 2;
  std::vector<float> floats(tensor.bytes.size() / width);
  (void)tj::trainer::read_floats(tensor, floats);
  volatile unsigned sum = 0;
  for (const auto byte : tensor.bytes) sum = sum + static_cast<unsigned>(byte);
}

bool is_same(const TensorBytes& one, const TensorBytes& other) {
  return one.name == other.name && one.shape == other.shape && one.dtype == other.dtype &&
         std::ranges::equal(one.bytes, other.bytes);
}

void check_rewritten(const SafetensorsFile& file) {
  static const tj::fuzz::MemoryFile memory;
  std::string text = tj::trainer::safetensors_head(file.tensors(), file.metadata());
  for (const auto& tensor : file.tensors())
    text.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  memory.write(text);
  const auto again = SafetensorsFile::open(memory.path());
  TJ_CHECK(again.ok(), "what we write can be read");
  TJ_CHECK(again->metadata() == file.metadata(), "metadata");
  TJ_CHECK(std::ranges::equal(again->tensors(), file.tensors(), is_same), "tensors");
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tj::fuzz::MemoryFile memory;
  memory.write(file_of(tj::fuzz::text_of(data, size)));
  const auto file = SafetensorsFile::open(memory.path());
  if (!file) return 0;
  for (const auto& tensor : file->tensors()) read_all(tensor);
  check_rewritten(*file);
  return 0;
}
