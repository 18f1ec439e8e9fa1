#include "trainer/checkpoint/torch_file.h"

#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>

#include "trainer/values/failure.h"
#include "trainer/values/flat_layout.h"

namespace tj::trainer {
namespace {

Error wrong(const std::string& path, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = path};
}

bool is_contiguous(const PickledTensor& tensor) {
  std::int64_t expected = 1;
  for (auto i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.stride[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

/// One more than the last element of the storage that the tensor reaches; none where the numbers
/// don't fit.
std::optional<std::int64_t> end_in_storage(const PickledTensor& tensor) {
  std::int64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    std::int64_t reach = 0;
    if (tensor.shape[i] == 0) return tensor.offset;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.stride[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return std::nullopt;
  }
  return last == std::numeric_limits<std::int64_t>::max() ? std::nullopt : std::optional(last + 1);
}

/// Where the element `flat` of the tensor, row by row, lies in its storage.
std::int64_t place_of(const PickledTensor& tensor, std::int64_t flat) {
  std::int64_t place = tensor.offset;
  for (auto i = tensor.shape.size(); i-- > 0;) {
    place += flat % tensor.shape[i] * tensor.stride[i];
    flat /= tensor.shape[i];
  }
  return place;
}

/// Of what torch says of an archive: the rest guesses at torch's own faults.
std::string first_sentence(const std::exception& failure) {
  const auto cause = cause_of(failure);
  return cause.substr(0, cause.find(". "));
}

}  // namespace

struct TorchFile::Archive {
  explicit Archive(const std::string& path) : reader(path) {}
  std::mutex mutex;  // guards the reader
  caffe2::serialize::PyTorchStreamReader reader;
};

Result<TorchFile> TorchFile::open(const std::filesystem::path& path) {
  TorchFile file;
  file.path_ = path.string();
  std::error_code unreadable;
  if (!std::filesystem::exists(path, unreadable))
    return wrong(file.path_, "does not exist; it must be a file of torch.save");
  std::string pickle;
  try {
    file.archive_ = std::make_shared<Archive>(file.path_);
    const auto [bytes, size] = file.archive_->reader.getRecord("data.pkl");
    pickle.assign(static_cast<const char*>(bytes.get()), size);
  } catch (const std::exception& failure) {
    return wrong(file.path_, "is no archive of torch.save (torch >= 1.6), or is cut short: " +
                                 first_sentence(failure));
  }
  auto tensors = tensors_in_pickle(pickle);
  if (!tensors) return wrong(file.path_, tensors.error().message);
  for (auto& tensor : *tensors) {
    if (!end_in_storage(tensor))
      return wrong(file.path_, "tensor " + tensor.name + " has no possible size");
    const auto name = tensor.name;
    file.tensors_.insert_or_assign(name, std::move(tensor));
  }
  return file;
}

Result<void> TorchFile::read(const PickledTensor& tensor, std::span<float> floats,
                             std::int64_t begin) const {
  const auto element = static_cast<std::int64_t>(element_bytes(tensor.dtype));
  at::DataPtr data;
  std::size_t size = 0;
  try {
    const std::scoped_lock lock(archive_->mutex);
    std::tie(data, size) = archive_->reader.getRecord("data/" + tensor.storage);
  } catch (const std::exception& failure) {
    return wrong(path_, "tensor " + tensor.name +
                            " can't be read, the file is damaged: " + first_sentence(failure));
  }
  const std::span storage(static_cast<const std::byte*>(data.get()), size);
  if (*end_in_storage(tensor) > static_cast<std::int64_t>(size) / element)
    return wrong(path_, "tensor " + tensor.name + " reaches beyond its storage of " +
                            std::to_string(size) + " bytes (cut short?)");
  const auto count = static_cast<std::int64_t>(floats.size());
  if (is_contiguous(tensor)) {
    const auto from = static_cast<std::size_t>(tensor.offset * element);
    const auto bytes = static_cast<std::size_t>(element_count(tensor.shape) * element);
    return read_floats({.name = tensor.name,
                        .shape = tensor.shape,
                        .bytes = storage.subspan(from, bytes),
                        .dtype = tensor.dtype},
                       floats, begin);
  }
  std::vector<std::byte> gathered(static_cast<std::size_t>(count * element));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto from =
        storage.subspan(static_cast<std::size_t>(place_of(tensor, begin + i) * element),
                        static_cast<std::size_t>(element));
    std::ranges::copy(from, gathered.begin() + i * element);
  }
  return read_floats(
      {.name = tensor.name, .shape = {count}, .bytes = gathered, .dtype = tensor.dtype}, floats);
}

}  // namespace tj::trainer
