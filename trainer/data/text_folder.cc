#include "trainer/data/text_folder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

Error file_error(const fs::path& path, int error_number) {
  const Code code = error_number == EACCES || error_number == EPERM ? Code::forbidden
                    : error_number == ENOENT                        ? Code::not_found
                                                                    : Code::invalid;
  return {.code = code,
          .message = std::string("can't be read: ") + std::strerror(error_number),
          .subject = "training text " + path.string()};
}

/// Walks by hand: links to folders are followed, each real folder once, so that a loop of links
/// ends.
class Walk {
 public:
  Result<void> visit(const fs::path& folder) {
    std::error_code failure;
    const fs::path real = fs::canonical(folder, failure);
    if (failure) return file_error(folder, failure.value());
    if (!seen_.insert(real).second) return {};
    fs::directory_iterator entries(folder, failure);
    for (; !failure && entries != fs::directory_iterator(); entries.increment(failure)) {
      auto kept = visit_entry(entries->path());
      if (!kept) return kept;
    }
    if (failure) return file_error(folder, failure.value());
    return {};
  }
  std::vector<fs::path> sorted_files() && {
    std::ranges::sort(files_);
    return std::move(files_);
  }

 private:
  Result<void> visit_entry(const fs::path& path) {
    if (path.filename().string().starts_with('.')) return {};
    std::error_code failure;
    const fs::file_status status = fs::status(path, failure);
    if (status.type() == fs::file_type::not_found) return file_error(path, ENOENT);
    if (failure) return file_error(path, failure.value());
    if (fs::is_directory(status)) return visit(path);
    if (fs::is_regular_file(status)) files_.push_back(path);
    return {};
  }
  std::set<fs::path> seen_;
  std::vector<fs::path> files_;
};

Error folder_error(const fs::path& folder, std::string message) {
  return {
      .code = Code::invalid, .message = std::move(message), .subject = "--data " + folder.string()};
}

}  // namespace

TextFolder::~TextFolder() {
  for (const auto& file : files_) {
    ::munmap(const_cast<std::uint8_t*>(file.bytes.data()), file.bytes.size());
  }
}

Result<TextFolder> TextFolder::open(const fs::path& folder) {
  std::error_code failure;
  const fs::file_status status = fs::status(folder, failure);
  if (!fs::exists(status)) {
    if (failure && failure.value() != ENOENT) return file_error(folder, failure.value());
    return Error{.code = Code::not_found,
                 .message = "does not exist; it must be a folder of text files",
                 .subject = "--data " + folder.string()};
  }
  if (!fs::is_directory(status)) {
    return folder_error(folder, "is not a folder; it must be a folder of text files");
  }
  Walk walk;
  if (const auto walked = walk.visit(folder); !walked) return walked.error();
  const std::vector<fs::path> paths = std::move(walk).sorted_files();
  if (paths.size() > kFilesMax) {
    return folder_error(folder, "holds " + std::to_string(paths.size()) + " files; at most " +
                                    std::to_string(kFilesMax) +
                                    " can be mapped, join some of them");
  }
  TextFolder text;
  for (const auto& path : paths) {
    if (const auto added = text.add(path); !added) return added.error();
  }
  if (text.files_.empty()) {
    return folder_error(folder, "is empty: " + std::to_string(paths.size()) +
                                    " files with 0 bytes in them; it must hold text");
  }
  return text;
}

Result<void> TextFolder::add(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return file_error(file, errno);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    const int error_number = errno;
    ::close(descriptor);
    return file_error(file, error_number);
  }
  if (status.st_size == 0) {
    ::close(descriptor);
    return {};
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int error_number = errno;
  ::close(descriptor);
  if (memory == MAP_FAILED) return file_error(file, error_number);
  files_.push_back(
      {.bytes = {static_cast<const std::uint8_t*>(memory), size}, .first_token = token_count_});
  token_count_ += static_cast<std::int64_t>(size) + 1;
  return {};
}

void TextFolder::read(std::int64_t offset, std::span<std::uint8_t> tokens) const {
  const auto wanted = static_cast<std::int64_t>(tokens.size());
  TJ_CHECK(offset >= 0 && offset + wanted <= token_count_, "tokens outside of the text");
  auto file = std::ranges::upper_bound(files_, offset, {}, &MappedFile::first_token) - 1;
  auto position = static_cast<std::size_t>(offset - file->first_token);
  while (!tokens.empty()) {
    const auto rest = file->bytes.subspan(std::min(position, file->bytes.size()));
    const std::size_t count = std::min(rest.size(), tokens.size());
    std::ranges::copy(rest.first(count), tokens.begin());
    tokens = tokens.subspan(count);
    if (tokens.empty()) return;
    tokens[0] = kDocumentEnd;
    tokens = tokens.subspan(1);
    ++file;
    position = 0;
  }
}

}  // namespace tj::trainer
