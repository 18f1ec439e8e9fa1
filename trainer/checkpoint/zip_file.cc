#include "trainer/checkpoint/zip_file.h"

#include <zlib.h>

#include <bit>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace tj::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

// Section 4.3.7, 4.3.12, 4.3.14, 4.3.15, 4.3.16.
constexpr std::uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50,
                        kZip64End = 0x06064b50, kZip64Locator = 0x07064b50, kEnd = 0x06054b50;
constexpr std::uint16_t kZip64Extra = 0x0001;
constexpr std::uint16_t kPaddingExtra = 0x4246;  // "FB", as torch pads
constexpr std::uint16_t kVersion = 20, kVersionZip64 = 45;
constexpr std::uint16_t kFirstOfJanuary1980 = 0x0021;  // the same bytes at any time
constexpr std::uint32_t kSeeZip64 = 0xffffffff;
constexpr std::uint16_t kSeeZip64Short = 0xffff;
constexpr std::size_t kLocalHeaderBytes = 30, kExtraHeaderBytes = 4, kZip64EndBytes = 56;

/// Appends numbers as a ZIP has them: little-endian, without gaps.
class Record {
 public:
  template <typename T>
  Record& put(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Record& text(std::string_view bytes) {
    text_ += bytes;
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::uint32_t clipped(std::uint64_t value) {
  return value < kSeeZip64 ? static_cast<std::uint32_t>(value) : kSeeZip64;
}

/// Those of the numbers that `clipped()` cuts, as an extra field; none: nothing.
std::string zip64_extra(std::initializer_list<std::uint64_t> numbers) {
  Record cut;
  std::uint16_t count = 0;
  for (const auto number : numbers) {
    if (number < kSeeZip64) continue;
    cut.put(number);
    ++count;
  }
  if (count == 0) return "";
  const auto bytes = static_cast<std::uint16_t>(count * sizeof(std::uint64_t));
  return Record().put(kZip64Extra).put(bytes).text(cut.take()).take();
}

std::uint16_t size_of(const std::string& text) { return static_cast<std::uint16_t>(text.size()); }
std::uint16_t version_for(const std::string& zip64) {
  return zip64.empty() ? kVersion : kVersionZip64;
}

/// The fields that both headers of an entry have, from its flags to the length of its name.
void put_entry(Record& record, const ZipPlace& place) {
  record.put(std::uint16_t{0}).put(std::uint16_t{0});  // no flags, not compressed
  record.put(std::uint16_t{0}).put(kFirstOfJanuary1980).put(place.crc32);
  record.put(clipped(place.bytes)).put(clipped(place.bytes)).put(size_of(place.name));
}

std::string central_header(const ZipPlace& place) {
  const auto extra = zip64_extra({place.bytes, place.bytes, place.header_at});
  Record record;
  record.put(kCentralHeader).put(kVersionZip64).put(version_for(extra));
  put_entry(record, place);
  record.put(size_of(extra)).put(std::uint16_t{0});                          // no comment
  record.put(std::uint16_t{0}).put(std::uint16_t{0}).put(std::uint32_t{0});  // disk, attributes
  record.put(clipped(place.header_at));
  return record.text(place.name).text(extra).take();
}

Result<ZipPlace> place_of(const ZipEntry& entry, std::uint64_t header_at) {
  ZipPlace place{.name = entry.name, .crc32 = 0, .bytes = 0, .header_at = header_at};
  uLong sum = ::crc32_z(0, nullptr, 0);
  const auto add = [&](std::span<const std::byte> piece) -> Result<void> {
    if (piece.empty()) return {};  // zlib takes nullptr for the wish to begin anew
    sum = ::crc32_z(sum, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
    place.bytes += piece.size();
    return {};
  };
  for (const auto& part : entry.parts) {
    if (const auto added = each_piece(part, add); !added) return added.error();
  }
  place.crc32 = static_cast<std::uint32_t>(sum);
  return place;
}

}  // namespace

std::string zip_local_header(const ZipPlace& place) {
  const auto zip64 = zip64_extra({place.bytes, place.bytes});
  const auto unpadded =
      place.header_at + kLocalHeaderBytes + place.name.size() + zip64.size() + kExtraHeaderBytes;
  const std::string zeros((kZipAlignment - unpadded % kZipAlignment) % kZipAlignment, '\0');
  const auto extra = zip64 + Record().put(kPaddingExtra).put(size_of(zeros)).text(zeros).take();
  Record record;
  record.put(kLocalHeader).put(version_for(zip64));
  put_entry(record, place);
  return record.put(size_of(extra)).text(place.name).text(extra).take();
}

std::string zip_directory(std::span<const ZipPlace> places, std::uint64_t begin) {
  Record record;
  std::uint64_t bytes = 0;
  for (const auto& place : places) {
    const auto header = central_header(place);
    bytes += header.size();
    record.text(header);
  }
  const std::uint64_t count = places.size();
  const bool needs_zip64 = count >= kSeeZip64Short || bytes >= kSeeZip64 || begin >= kSeeZip64;
  if (needs_zip64) {
    record.put(kZip64End).put(std::uint64_t{kZip64EndBytes - 12});
    record.put(kVersionZip64).put(kVersionZip64).put(std::uint32_t{0}).put(std::uint32_t{0});
    record.put(count).put(count).put(bytes).put(begin);
    record.put(kZip64Locator).put(std::uint32_t{0}).put(begin + bytes).put(std::uint32_t{1});
  }
  const auto short_count =
      count < kSeeZip64Short ? static_cast<std::uint16_t>(count) : kSeeZip64Short;
  record.put(kEnd).put(std::uint16_t{0}).put(std::uint16_t{0}).put(short_count).put(short_count);
  return record.put(clipped(bytes)).put(clipped(begin)).put(std::uint16_t{0}).take();
}

Result<FileDigest> write_zip(const std::filesystem::path& path, std::span<const ZipEntry> entries) {
  auto file = DurableFile::create(path);
  if (!file) return file.error();
  std::uint64_t written = 0;
  Result<void> state;
  const auto write = [&](const BytePart& part) {
    if (state)
      state =
          each_piece(part, [&](std::span<const std::byte> piece) { return file->write(piece); });
    written += bytes_in(part);
  };
  std::vector<ZipPlace> places;
  for (const auto& entry : entries) {
    const auto place = place_of(entry, written);
    if (!place) return place.error();
    places.push_back(*place);
    const auto header = zip_local_header(*place);
    write(std::as_bytes(std::span(header)));
    for (const auto& part : entry.parts) write(part);
    if (!state) return state.error();
  }
  const auto directory = zip_directory(places, written);
  write(std::as_bytes(std::span(directory)));
  if (!state) return state.error();
  return file->finish();
}

}  // namespace tj::trainer
