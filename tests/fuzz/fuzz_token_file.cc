// A token file. Checksums would keep every change out: each input is read as it is and mended.
#include <span>
#include <vector>

#include "tests/fuzz/fuzzed.h"
#include "trainer/data/token_header.h"

namespace {
using tj::trainer::kTokenHeaderBytes;
constexpr std::size_t kTableCrcAt = 44;
constexpr std::size_t kHeaderCrcAt = kTokenHeaderBytes - 4;

void read(std::span<const std::uint8_t> file) {
  const auto header = tj::trainer::decode_token_header(file, "f.tok");
  if (!header) return;
  TJ_CHECK(header->file_bytes() == static_cast<std::int64_t>(file.size()), "it is all there");
  for (std::int64_t chunk = 0; chunk < header->chunk_count(); ++chunk)
    (void)tj::trainer::check_token_chunk(file, "f.tok", chunk);
  const auto again = tj::trainer::decode_token_header(file, "f.tok");
  TJ_CHECK(again && *again == *header, "a header reads the same twice");
}

/// As a program would write it that computes checksums as we do.
std::vector<std::uint8_t> mended(std::span<const std::uint8_t> file) {
  std::vector<std::uint8_t> bytes(file.begin(), file.end());
  if (bytes.size() < kTokenHeaderBytes) return bytes;
  const auto width = tj::trainer::load_little(bytes.data() + 12, 4);
  const auto count = tj::trainer::load_little(bytes.data() + 24, 8);
  const auto payload = width * count;
  if (payload <= bytes.size() - kTokenHeaderBytes) {
    const auto table = std::span(bytes).subspan(kTokenHeaderBytes + payload);
    tj::trainer::store_little(bytes.data() + kTableCrcAt, tj::trainer::crc32_of(table), 4);
  }
  const auto crc = tj::trainer::crc32_of(std::span(bytes).first(kHeaderCrcAt));
  tj::trainer::store_little(bytes.data() + kHeaderCrcAt, crc, 4);
  return bytes;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read({data, size});
  read(mended({data, size}));
  return 0;
}
