// Reads a tar archive as it comes (ustar, GNU's long names, pax's path and size), and says what is
// in it. What it reads was made by somebody else's program: each field is checked, nothing of it is
// held but a name.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "contract/result.h"

namespace tj {

struct TarEntry {
  enum class Kind { file, folder, symbolic_link, hard_link, other };
  std::string name;
  Kind kind = Kind::file;
  std::uint64_t bytes = 0;  // of a file
  int mode = 0;             // the permission bits
  std::string link;
};

class TarReader {
 public:
  struct Handlers {
    std::function<Result<void>(const TarEntry& entry)> on_entry;
    std::function<Result<void>(std::string_view bytes)> on_bytes;  // of the last entry, a file
    std::function<Result<void>()> on_end;                          // of the last entry, a file
  };
  explicit TarReader(Handlers handlers) : handlers_(std::move(handlers)) {}

  Result<void> feed(std::string_view bytes);
  /// The archive's end has come: its two empty blocks.
  bool is_complete() const { return is_complete_; }

 private:
  Result<void> read_block(std::string_view block);
  Result<void> read_header(std::string_view block);
  Result<void> read_data(std::string_view bytes);
  Result<void> end_of_entry();
  Result<void> read_pax(std::string_view records);

  Handlers handlers_;
  std::string block_;  // a header of which a part has come
  TarEntry entry_;
  enum class Data { file, long_name, long_link, pax, skipped } data_ = Data::skipped;
  std::uint64_t data_left_ = 0;
  std::uint64_t padding_left_ = 0;
  bool is_inside_ = false;
  std::string extra_;      // of long_name, long_link, pax
  std::string next_name_;  // for the entry that follows
  std::string next_link_;
  std::string next_size_;
  int empty_blocks_ = 0;
  bool is_complete_ = false;
};

}  // namespace tj
