#include "trainer/data/plain_pieces.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {

struct Taken {
  std::string text;
  std::int64_t place;
  bool ends;
};

std::vector<Taken> pieces_of(const DataFile& file, std::int64_t begin, std::int64_t end) {
  const auto from = next_cut(file, TextFormat::plain, begin);
  const auto upto =
      end == file.bytes() ? Result<std::int64_t>(end) : next_cut(file, TextFormat::plain, end);
  EXPECT_TRUE(from && upto);
  const auto text = file.read(*from, *upto - *from);
  EXPECT_TRUE(text);
  std::vector<Taken> taken;
  const auto done = for_each_piece(
      {.file = file, .begin = begin, .bytes = *text, .offset = *from},
      [](std::int64_t place) { return place / kPieceBytes % 3 == 1; },
      [&](const Document& piece) {
        taken.push_back({std::string(piece.text), piece.offset, piece.ends});
        return true;
      });
  EXPECT_TRUE(done);
  return taken;
}

/// Texts by sides; a document's end is a line of its own.
std::array<std::string, 2> sides_of(const std::vector<Taken>& taken) {
  std::array<std::string, 2> sides;
  for (const auto& piece : taken)
    sides[piece.place / kPieceBytes % 3 == 1 ? 1 : 0] += piece.text + (piece.ends ? "<END>" : "");
  return sides;
}

std::string lines(int count, const std::string& end) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "line number " + std::to_string(i) + end;
  return text;
}

TEST(PlainPieces, a_small_file_is_one_piece) {
  const TemporaryFolder folder;
  const auto file = DataFile::open(folder.write("a.txt", "short\ntext\n"));
  const auto taken = pieces_of(*file, 0, file->bytes());
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].text, "short\ntext\n");
  EXPECT_TRUE(taken[0].ends);
}

TEST(PlainPieces, wherever_the_file_is_cut_each_side_has_the_same_text_and_ends) {
  const TemporaryFolder folder;
  // The last text has no line that ends with ink for longer than a piece.
  const std::string texts[] = {lines(8000, "\n"), lines(8000, "\n") + std::string(40'000, ' '),
                               lines(2000, "\n") + std::string(70'000, 'x') + lines(2000, "\n")};
  for (const auto& text : texts) {
    const auto file = DataFile::open(folder.write("a.txt", text));
    const auto whole = sides_of(pieces_of(*file, 0, file->bytes()));
    EXPECT_NE(whole[1], "");
    for (const std::int64_t part : {5'000, 16'384, 30'000, 100'000}) {
      std::vector<Taken> taken;
      for (std::int64_t begin = 0; begin < file->bytes(); begin += part)
        for (auto& piece : pieces_of(*file, begin, std::min(file->bytes(), begin + part)))
          taken.push_back(std::move(piece));
      std::string joined;
      for (const auto& piece : taken) joined += piece.text;
      EXPECT_EQ(joined, text) << part;
      EXPECT_EQ(sides_of(taken), whole) << part;
    }
  }
}

}  // namespace
}  // namespace tj::trainer
