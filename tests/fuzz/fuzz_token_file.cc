// A token file. Checksums would keep every change out: each input is read as it is and mended.
#include <algorithm>
#include <span>
#include <vector>

#include "tests/fuzz/fuzzed.h"
#include "trainer/data/token_header.h"

namespace {
using tj::trainer::kTokenHeaderBytes;
constexpr std::size_t kTableCrcAt = 44;
constexpr std::size_t kHeaderCrcAt = kTokenHeaderBytes - 4;

void read(std::span<const std::uint8_t> file) {
  const auto head = file.first(std::min(file.size(), kTokenHeaderBytes));
  const auto file_bytes = static_cast<std::int64_t>(file.size());
  const auto header = tj::trainer::decode_token_header(head, file_bytes, "f.tok");
  if (!header) return;
  TJ_CHECK(header->file_bytes() == file_bytes, "it is all there");
  const auto table = file.subspan(static_cast<std::size_t>(header->table_at()));
  (void)tj::trainer::check_token_table(*header, table, "f.tok");
  const auto again = tj::trainer::decode_token_header(head, file_bytes, "f.tok");
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
