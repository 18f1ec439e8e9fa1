#include "trainer/data/plain_pieces.h"

#include <algorithm>

namespace tj::trainer {

Result<void> for_each_piece(const PlainSlice& slice,
                            const std::function<bool(std::int64_t)>& is_held_out,
                            const std::function<bool(const Document&)>& take) {
  const auto end = slice.offset + static_cast<std::int64_t>(slice.bytes.size());
  std::int64_t from = slice.offset;
  for (std::int64_t place = slice.begin / kPieceBytes * kPieceBytes; from < end;
       place += kPieceBytes) {
    const auto next_place = place + kPieceBytes;
    const auto cut = next_cut(slice.file, TextFormat::plain, next_place);
    if (!cut) return cut.error();
    const auto upto = std::min(*cut, end);
    if (upto <= from) continue;  // no end of a line in all of it
    const bool ends = *cut <= end &&
                      (*cut == slice.file.bytes() || is_held_out(place) != is_held_out(next_place));
    const auto text = slice.bytes.substr(static_cast<std::size_t>(from - slice.offset),
                                         static_cast<std::size_t>(upto - from));
    if (!take({.text = text, .offset = place, .ends = ends})) return {};
    from = upto;
  }
  return {};
}

}  // namespace tj::trainer
