#include "trainer/checkpoint/torch_archive.h"

#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/torch_pickle.h"
#include "trainer/checkpoint/zip_file.h"

namespace tj::trainer {
namespace {

constexpr std::string_view kByteOrder = "little";
constexpr std::string_view kFormatVersion = "3\n";  // kProducedFileFormatVersion

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

Result<FileDigest> write_torch_archive(const std::filesystem::path& path,
                                       std::span<const TensorParts> tensors) {
  std::vector<TensorToPickle> to_pickle;
  for (const auto& tensor : tensors) {
    if (!torch_storage(tensor.dtype))
      return Error{.code = Code::invalid,
                   .message = "is of type " + tensor.dtype + ", which a .pth can't have",
                   .subject = "tensor " + tensor.name};
    to_pickle.push_back({.name = tensor.name, .shape = tensor.shape, .dtype = tensor.dtype});
  }
  const auto pickle = pickle_of(to_pickle);
  // Names and their order are torch's own; the first folder may be called anything.
  std::vector<ZipEntry> entries{{.name = "archive/data.pkl", .parts = {bytes_of(pickle)}},
                                {.name = "archive/byteorder", .parts = {bytes_of(kByteOrder)}}};
  for (std::size_t i = 0; i < tensors.size(); ++i)
    entries.push_back({.name = "archive/data/" + std::to_string(i), .parts = tensors[i].parts});
  entries.push_back({.name = "archive/version", .parts = {bytes_of(kFormatVersion)}});
  return write_zip(path, entries);
}

}  // namespace tj::trainer
