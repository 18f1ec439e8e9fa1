#include "trainer/data/spelled_bpe.h"

#include "contract/utf8.h"

namespace tj::trainer {

std::array<std::string, 256> byte_spellings() {
  std::array<std::string, 256> spellings;
  std::uint32_t next = 256;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
    append_utf8(spellings[byte], is_printable ? byte : next++);
  }
  return spellings;
}

Result<void> add_id(const std::string& token, std::int64_t id, SpelledBpe& spelled) {
  if (id < 0 || id >= kBpeIdsMax) {
    return Error{.code = Code::invalid,
                 .message = "the id of \"" + token + "\" is " + std::to_string(id) +
                            "; it must be from 0 to " + std::to_string(kBpeIdsMax - 1),
                 .subject = {}};
  }
  const auto [known, is_new] = spelled.ids.try_emplace(token, id);
  if (is_new || known->second == id) return {};
  return Error{.code = Code::invalid,
               .message = "\"" + token + "\" has two ids, " + std::to_string(known->second) +
                          " and " + std::to_string(id),
               .subject = {}};
}

}  // namespace tj::trainer
