#include "trainer/report/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include "trainer/report/event_messages.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // Castagnoli's, reflected

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8U; }

template <typename T>
void append_raw(std::string& text, T value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

Error disk_error(const fs::path& path, const std::string& what) {
  return {.code = Code::unavailable,
          .message = what + ": " + std::strerror(errno),
          .subject = path.string(),
          .retry_after = {}};
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = ~0U;
  for (const char byte : bytes)
    crc = kTable[(crc ^ static_cast<std::uint8_t>(byte)) & 0xff] ^ crc >> 8;
  return ~crc;
}

std::string framed(std::string_view payload) {
  std::string record;
  record.reserve(payload.size() + 16);
  append_raw(record, static_cast<std::uint64_t>(payload.size()));
  append_raw(record, masked(crc32c(record)));
  record.append(payload);
  append_raw(record, masked(crc32c(payload)));
  return record;
}

Result<std::unique_ptr<EventFile>> EventFile::create(const fs::path& folder,
                                                     const std::string& host) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration<double>(now).count();
  // Readers take the files of a folder in the order of their names: a later one must sort later,
  // also within a second.
  char stamp[40];
  std::snprintf(
      stamp, sizeof stamp, "%010lld.%03d", static_cast<long long>(seconds),
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count() % 1000));
  fs::path path = folder / ("events.out.tfevents." + std::string(stamp) + "." + host + "." +
                            std::to_string(::getpid()));
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.open()) return disk_error(path, "can't be made");
  auto file = std::unique_ptr<EventFile>(new EventFile(std::move(path), std::move(fd)));
  file->add(file_version_event(seconds));
  return file;
}

void EventFile::add(std::string_view event) {
  const std::scoped_lock lock(mutex_);
  if (buffer_.size() + event.size() > kBufferedBytesMax) return;
  buffer_ += framed(event);
}

Result<void> EventFile::flush() {
  const std::scoped_lock file_lock(file_mutex_);
  {
    const std::scoped_lock lock(mutex_);
    if (unwritten_.size() < kBufferedBytesMax) unwritten_ += std::exchange(buffer_, {});
  }
  std::size_t written = 0;
  while (written < unwritten_.size()) {
    const auto count =
        ::write(fd_.value(), unwritten_.data() + written, unwritten_.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  const bool is_done = written == unwritten_.size();
  unwritten_.erase(0, written);
  return is_done ? Result<void>() : disk_error(path_, "can't be written");
}

}  // namespace tj::trainer
