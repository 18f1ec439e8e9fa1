#include "trainer/process/durable_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
constexpr std::size_t kChunkBytes = 1 << 20;

Error io_error(const fs::path& path, const std::string& what, int error_number) {
  const Code code = error_number == ENOENT                            ? Code::not_found
                    : error_number == EACCES || error_number == EROFS ? Code::forbidden
                                                                      : Code::unavailable;
  return {
      .code = code, .message = what + ": " + std::strerror(error_number), .subject = path.string()};
}

Error differs(const fs::path& path, std::string message) {
  return {
      .code = Code::invalid, .message = std::move(message), .subject = path.filename().string()};
}

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* handle = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(handle); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  TJ_CHECK(EVP_DigestInit_ex(context_->handle, EVP_sha256(), nullptr) == 1,
           "OpenSSL has no SHA-256");
}
Sha256::Sha256(Sha256&& other) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  TJ_CHECK(EVP_DigestUpdate(context_->handle, bytes.data(), bytes.size()) == 1, "SHA-256 failed");
}

std::string Sha256::hex() && {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  TJ_CHECK(EVP_DigestFinal_ex(context_->handle, digest, &length) == 1, "SHA-256 failed");
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : std::span(digest, length)) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

DurableFile::DurableFile(fs::path path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      hash_(std::move(other.hash_)) {}

DurableFile::~DurableFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<DurableFile> DurableFile::create(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return io_error(path, "can't be created", errno);
  return DurableFile(path, descriptor);
}

Result<void> DurableFile::write(std::span<const std::byte> bytes) {
  hash_.update(bytes);
  bytes_ += static_cast<std::int64_t>(bytes.size());
  while (!bytes.empty()) {
    const auto count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error(path_, "can't be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Result<FileDigest> DurableFile::finish() {
  if (::fsync(descriptor_) != 0) return io_error(path_, "can't be flushed to the disk", errno);
  if (::close(std::exchange(descriptor_, -1)) != 0)
    return io_error(path_, "can't be closed", errno);
  return FileDigest{.bytes = bytes_, .sha256 = std::move(hash_).hex()};
}

Result<FileDigest> write_durably(const fs::path& path, std::string_view text) {
  auto file = DurableFile::create(path);
  if (!file) return file.error();
  if (const auto written = file->write(std::as_bytes(std::span(text))); !written)
    return written.error();
  return file->finish();
}

Result<void> sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return io_error(folder, "can't be opened", errno);
  const int failed = ::fsync(descriptor);
  const int error_number = errno;
  ::close(descriptor);
  // Some network file systems can't fsync a folder; they make names durable by themselves.
  if (failed != 0 && error_number != EINVAL)
    return io_error(folder, "can't be flushed to the disk", error_number);
  return {};
}

Result<void> verify_file(const fs::path& path, const FileDigest& expected,
                         const std::function<bool()>& should_stop) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return differs(path, std::string("can't be opened: ") + std::strerror(errno));
  Sha256 hash;
  std::int64_t bytes = 0;
  std::vector<std::byte> chunk(kChunkBytes);
  ssize_t count = 0;
  bool is_stopped = false;
  while (!is_stopped && (count = ::read(descriptor, chunk.data(), chunk.size())) > 0) {
    is_stopped = should_stop && should_stop();
    hash.update(std::span(chunk).first(static_cast<std::size_t>(count)));
    bytes += count;
  }
  const int error_number = errno;
  ::close(descriptor);
  if (is_stopped)
    return Error{.code = Code::timeout, .message = "is not verified", .subject = path.string()};
  if (count < 0) return differs(path, std::string("can't be read: ") + std::strerror(error_number));
  if (bytes != expected.bytes) {
    return differs(path, std::string(bytes < expected.bytes ? "is cut short: " : "is too long: ") +
                             std::to_string(bytes) + " bytes where the manifest says " +
                             std::to_string(expected.bytes));
  }
  const std::string sha256 = std::move(hash).hex();
  if (sha256 == expected.sha256) return {};
  return differs(path, "is damaged: SHA-256 " + sha256.substr(0, 12) +
                           "... where the manifest says " + expected.sha256.substr(0, 12) + "...");
}

Result<std::string> read_small_file(const fs::path& path, std::int64_t bytes_max) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return io_error(path, "can't be opened", errno);
  std::string text;
  const auto size_max = static_cast<std::size_t>(bytes_max);
  std::size_t filled = 0;
  ssize_t count = 0;
  do {
    text.resize(std::min(size_max, filled + kChunkBytes));
    count = ::read(descriptor, text.data() + filled, text.size() - filled);
    filled += count > 0 ? static_cast<std::size_t>(count) : 0;
  } while (count > 0 && filled < size_max);
  const int error_number = errno;
  ::close(descriptor);
  if (count < 0) return io_error(path, "can't be read", error_number);
  if (filled == size_max)
    return differs(path, "is larger than " + std::to_string(bytes_max) + " bytes");
  text.resize(filled);
  return text;
}

}  // namespace tj::trainer
