// A file of TensorBoard's events: framed records, gathered in memory and written when asked.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "contract/result.h"
#include "trainer/process/unique_fd.h"

namespace tj::trainer {

/// CRC-32C (Castagnoli), of which each record has two.
std::uint32_t crc32c(std::string_view bytes);

/// A record as TFRecordWriter frames it: length, masked CRC of the length, payload, masked CRC of
/// the payload. Source: tensorflow/core/lib/io/record_writer.h
std::string framed(std::string_view payload);

/// Any thread may call it.
class EventFile {
 public:
  static constexpr std::size_t kBufferedBytesMax = 16 << 20;  // beyond it events are dropped

  /// Makes `folder` and a new file events.out.tfevents.<seconds>.<host>.<pid> in it. Fails when the
  /// disk says no.
  static Result<std::unique_ptr<EventFile>> create(const std::filesystem::path& folder,
                                                   const std::string& host);
  /// Appends a record to the buffer; never waits for the disk.
  void add(std::string_view event);
  /// Writes what is buffered. What can't be written now stays for the next time.
  Result<void> flush();
  const std::filesystem::path& path() const { return path_; }

 private:
  EventFile(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::filesystem::path path_;
  UniqueFd fd_;            // used by flush(), one at a time
  std::mutex file_mutex_;  // guards the writing
  std::string unwritten_;  // of an earlier flush; guarded by file_mutex_
  std::mutex mutex_;       // guards the one below
  std::string buffer_;
};

}  // namespace tj::trainer
