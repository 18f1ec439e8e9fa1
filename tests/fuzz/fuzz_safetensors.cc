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
using tj::trainer::FileTensor;
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

std::vector<std::byte> bytes_of(const SafetensorsFile& file, const FileTensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
  TJ_CHECK(file.data().read(tensor.begin, bytes).ok(), "what the header names is there");
  return bytes;
}

void read_all(const SafetensorsFile& file, const FileTensor& tensor) {
  const auto width = static_cast<std::int64_t>(tj::trainer::element_bytes(tensor.dtype));
  std::vector<float> floats(static_cast<std::size_t>(tensor.bytes / width));
  (void)file.read_floats(tensor, floats);
}

void check_same(const SafetensorsFile& one, const SafetensorsFile& other) {
  TJ_CHECK(one.metadata() == other.metadata(), "metadata");
  TJ_CHECK(one.tensors().size() == other.tensors().size(), "as many tensors");
  for (std::size_t i = 0; i < one.tensors().size(); ++i) {
    const auto &tensor = one.tensors()[i], &again = other.tensors()[i];
    TJ_CHECK(static_cast<const tj::trainer::TensorHead&>(tensor) == again, "the tensor's head");
    TJ_CHECK(bytes_of(one, tensor) == bytes_of(other, again), "the tensor's bytes");
  }
}

void check_rewritten(const SafetensorsFile& file) {
  static const tj::fuzz::MemoryFile memory;
  std::vector<std::vector<std::byte>> kept;
  std::vector<TensorBytes> tensors;
  for (const auto& tensor : file.tensors()) {
    kept.push_back(bytes_of(file, tensor));
    tensors.push_back({tensor.name, tensor.shape, kept.back(), tensor.dtype});
  }
  std::string text = tj::trainer::safetensors_head(tensors, file.metadata());
  for (const auto& bytes : kept)
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  memory.write(text);
  const auto again = SafetensorsFile::open(memory.path());
  TJ_CHECK(again.ok(), "what we write can be read");
  check_same(*again, file);
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tj::fuzz::MemoryFile memory;
  memory.write(file_of(tj::fuzz::text_of(data, size)));
  const auto file = SafetensorsFile::open(memory.path());
  if (!file) return 0;
  for (const auto& tensor : file->tensors()) read_all(*file, tensor);
  check_rewritten(*file);
  return 0;
}
