#include "cli/tar_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace tj {
namespace {

constexpr std::size_t kBlockBytes = 512;
constexpr std::uint64_t kExtraBytesMax = 1024 * 1024;  // of a long name, or of pax's records
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 53;

/// Where a field of the header lies (POSIX.1-1988, ustar).
struct Place {
  std::size_t begin;
  std::size_t bytes;
};
constexpr Place kName{0, 100};
constexpr Place kMode{100, 8};
constexpr Place kSize{124, 12};
constexpr Place kChecksum{148, 8};
constexpr std::size_t kType = 156;
constexpr Place kLink{157, 100};
constexpr Place kMagic{257, 5};
constexpr Place kPrefix{345, 155};

Error wrong(const std::string& message) {
  return Error{Code::invalid, "is no tar archive: " + message, "", {}};
}

std::string_view field(std::string_view block, Place place) {
  const std::string_view whole = block.substr(place.begin, place.bytes);
  return whole.substr(0, whole.find('\0'));
}

/// Octal digits, or GNU's base 256 where the first bit is set.
std::optional<std::uint64_t> number(std::string_view block, Place place) {
  const std::string_view whole = block.substr(place.begin, place.bytes);
  std::uint64_t value = 0;
  if ((static_cast<unsigned char>(whole[0]) & 0x80U) != 0) {
    for (std::size_t i = 1; i < whole.size(); ++i) {
      if (value > kFileBytesMax) return std::nullopt;
      value = value * 256 + static_cast<unsigned char>(whole[i]);
    }
    return value;
  }
  for (const char c : whole) {
    if (c == ' ' || c == '\0') continue;
    if (c < '0' || c > '7' || value > kFileBytesMax) return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

std::uint64_t checksum(std::string_view block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlockBytes; ++i) {
    const bool is_own = i >= kChecksum.begin && i < kChecksum.begin + kChecksum.bytes;
    sum += is_own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

TarEntry::Kind kind_of(char type) {
  using enum TarEntry::Kind;
  switch (type) {
    case '\0':
    case '0':
    case '7': return file;
    case '1': return hard_link;
    case '2': return symbolic_link;
    case '5': return folder;
    default: return other;
  }
}

std::string name_in(std::string_view block) {
  const std::string name(field(block, kName));
  const std::string prefix(field(block, kMagic) == "ustar" && block[kMagic.begin + 5] == '\0'
                               ? field(block, kPrefix)
                               : std::string_view());
  return prefix.empty() ? name : prefix + "/" + name;
}

}  // namespace

Result<void> TarReader::feed(std::string_view bytes) {
  while (!bytes.empty() && !is_complete_) {
    std::size_t taken = 0;
    if (data_left_ > 0) {
      taken = static_cast<std::size_t>(std::min<std::uint64_t>(data_left_, bytes.size()));
      const Result<void> read = read_data(bytes.substr(0, taken));
      if (!read) return read.error();
    } else if (padding_left_ > 0) {
      taken = static_cast<std::size_t>(std::min<std::uint64_t>(padding_left_, bytes.size()));
      padding_left_ -= taken;
    } else {
      taken = std::min(kBlockBytes - block_.size(), bytes.size());
      block_ += bytes.substr(0, taken);
      if (block_.size() == kBlockBytes) {
        const std::string block = std::exchange(block_, {});
        const Result<void> read = read_block(block);
        if (!read) return read.error();
      }
    }
    bytes.remove_prefix(taken);
  }
  return {};
}

Result<void> TarReader::read_block(std::string_view block) {
  const bool is_empty = std::all_of(block.begin(), block.end(), [](char c) { return c == '\0'; });
  if (!is_empty) {
    empty_blocks_ = 0;
    return read_header(block);
  }
  is_complete_ = ++empty_blocks_ == 2;
  return {};
}

Result<void> TarReader::read_header(std::string_view block) {
  if (number(block, kChecksum) != checksum(block)) return wrong("a header's checksum is not right");
  auto size = number(block, kSize);
  const char type = block[kType];
  const bool is_extra = type == 'L' || type == 'K' || type == 'x' || type == 'g';
  if (!is_extra && !next_size_.empty()) {
    std::uint64_t given = 0;
    const char* const end = next_size_.data() + next_size_.size();
    const auto read = std::from_chars(next_size_.data(), end, given);
    size = read.ec == std::errc{} && read.ptr == end ? std::optional(given) : std::nullopt;
  }
  if (!size || *size > kFileBytesMax) return wrong("a size is no number");
  if (is_extra && *size > kExtraBytesMax) return wrong("a name is longer than a mebibyte");
  data_left_ = *size;
  padding_left_ = (kBlockBytes - *size % kBlockBytes) % kBlockBytes;
  is_inside_ = true;
  extra_.clear();
  if (is_extra) {
    data_ = type == 'L' ? Data::long_name : type == 'K' ? Data::long_link : Data::pax;
    if (type == 'g') data_ = Data::skipped;
    return data_left_ == 0 ? end_of_entry() : Result<void>();
  }
  entry_ = {.name = next_name_.empty() ? name_in(block) : next_name_,
            .kind = kind_of(type),
            .bytes = *size,
            .mode = static_cast<int>(number(block, kMode).value_or(0) & 0777),
            .link = next_link_.empty() ? std::string(field(block, kLink)) : next_link_};
  next_name_ = next_link_ = next_size_ = "";
  const bool is_file = entry_.kind == TarEntry::Kind::file;
  data_ = is_file ? Data::file : Data::skipped;
  // Some archivers give a size to what has no data of its own.
  if (entry_.kind != TarEntry::Kind::file && entry_.kind != TarEntry::Kind::other)
    data_left_ = padding_left_ = 0;
  const Result<void> told = handlers_.on_entry(entry_);
  if (!told) return told.error();
  return data_left_ == 0 ? end_of_entry() : Result<void>();
}

Result<void> TarReader::read_data(std::string_view bytes) {
  data_left_ -= bytes.size();
  if (data_ == Data::file) {
    const Result<void> taken = handlers_.on_bytes(bytes);
    if (!taken) return taken.error();
  } else if (data_ != Data::skipped) {
    extra_ += bytes;
  }
  return data_left_ == 0 ? end_of_entry() : Result<void>();
}

Result<void> TarReader::end_of_entry() {
  if (!std::exchange(is_inside_, false)) return {};
  const std::string text = extra_.substr(0, extra_.find('\0'));
  switch (data_) {
    case Data::file: return handlers_.on_end();
    case Data::long_name: next_name_ = text; break;
    case Data::long_link: next_link_ = text; break;
    case Data::pax: return read_pax(extra_);
    case Data::skipped: break;
  }
  return {};
}

/// "LENGTH KEY=VALUE\n", one after the other (POSIX.1-2001, pax).
Result<void> TarReader::read_pax(std::string_view records) {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto read = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(read.ptr - records.data());
    const bool is_record = read.ec == std::errc{} && length > digits + 1 &&
                           length <= records.size() && records[digits] == ' ' &&
                           records[length - 1] == '\n';
    if (!is_record) return wrong("a pax record is not right");
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) return wrong("a pax record has no value");
    const std::string_view key = record.substr(0, equals);
    const std::string value(record.substr(equals + 1));
    if (key == "path") next_name_ = value;
    if (key == "linkpath") next_link_ = value;
    if (key == "size") next_size_ = value;
    records.remove_prefix(length);
  }
  return {};
}

}  // namespace tj
