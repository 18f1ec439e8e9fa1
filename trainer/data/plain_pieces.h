// Plain text where some of it is held out: a file is one document, and may be all there is. So it
// counts in pieces of some kilobytes, each of which is held out or not by name and place alone.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

#include "contract/result.h"
#include "trainer/data/documents.h"
#include "trainer/process/data_file.h"

namespace tj::trainer {

/// Piece k begins at the first cut (documents.h) from byte k x kPieceBytes on.
inline constexpr std::int64_t kPieceBytes = 16 << 10;

/// What lies between the cuts of two places of a file.
struct PlainSlice {
  const DataFile& file;
  std::int64_t begin = 0;  // the place; the cut is that of `bytes`
  std::string_view bytes;
  std::int64_t offset = 0;  // of `bytes` in the file
};

/// Calls `take` with each piece, or part of one, in order, until it returns false. A document's
/// offset is its piece's, by which `is_held_out` tells its side; it ends where the file does or the
/// next piece is of the other side.
Result<void> for_each_piece(const PlainSlice& slice,
                            const std::function<bool(std::int64_t)>& is_held_out,
                            const std::function<bool(const Document&)>& take);

}  // namespace tj::trainer
