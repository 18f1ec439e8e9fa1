// Equal lines of many ranks become one, each rank's lines stay in order, and none is lost.
#include "cli/logs/line_folder.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace tj {
namespace {
using namespace std::chrono_literals;

const LogTime kStart{std::chrono::hours{24 * 365 * 56}};

struct Folding {
  explicit Folding(int ranks, FoldBounds bounds = {.delay = 300ms})
      : folder(bounds, [this](const FoldedLine& line) {
          out.push_back("[" + line.ranks.text() + "] " + line.text);
          lines.push_back(line);
        }) {
    folder.set_rank_count(ranks);
  }
  void say(int rank, const std::string& text, std::chrono::milliseconds at = 0ms) {
    folder.add(rank, kStart + at, text, kStart + at);
  }
  std::vector<std::string> out;
  std::vector<FoldedLine> lines;
  LineFolder folder;
};
using Lines = std::vector<std::string>;

TEST(LineFolder, what_all_say_goes_at_once_as_one_line) {
  Folding folding(3);
  for (const int rank : {2, 0, 1}) folding.say(rank, "loading");
  EXPECT_EQ(folding.out, (Lines{"[0-2] loading"}));
}

TEST(LineFolder, what_some_say_waits_for_the_others_no_longer_than_the_delay) {
  Folding folding(4);
  folding.say(0, "step 1", 0ms);
  folding.say(3, "step 1", 200ms);
  EXPECT_EQ(folding.out, Lines{});
  EXPECT_EQ(folding.folder.next_due(), kStart + 300ms);
  folding.folder.advance(kStart + 299ms);
  EXPECT_EQ(folding.out, Lines{});
  folding.folder.advance(kStart + 300ms);
  EXPECT_EQ(folding.out, (Lines{"[0,3] step 1"}));
  folding.say(1, "step 1", 301ms);
  folding.folder.flush();
  EXPECT_EQ(folding.out, (Lines{"[0,3] step 1", "[1] step 1"}));
}

TEST(LineFolder, the_lines_of_a_rank_stay_in_their_order) {
  Folding folding(2);
  folding.say(0, "b");
  folding.say(1, "a");
  folding.say(0, "a");  // joins the line of rank 1, which stands behind its own
  folding.say(1, "b");  // must not join: its "a" came first
  folding.folder.flush();
  EXPECT_EQ(folding.out, (Lines{"[0] b", "[0-1] a", "[1] b"}));
}

TEST(LineFolder, a_line_that_a_rank_repeats_is_two_lines) {
  Folding folding(2);
  folding.say(0, "same");
  folding.say(0, "same");
  folding.say(1, "same");
  folding.folder.flush();
  EXPECT_EQ(folding.out, (Lines{"[0] same", "[0-1] same"}));
}

TEST(LineFolder, without_a_delay_or_with_one_rank_nothing_waits) {
  Folding unfolded(2, {.delay = 0ms});
  unfolded.say(0, "a");
  unfolded.say(1, "a");
  EXPECT_EQ(unfolded.out, (Lines{"[0] a", "[1] a"}));
  Folding alone(1);
  alone.say(5, "a");
  EXPECT_EQ(alone.out, (Lines{"[5] a"}));
}

TEST(LineFolder, more_lines_or_bytes_than_the_bounds_do_not_wait) {
  Folding by_lines(2, {.delay = 1h, .lines_max = 2});
  for (const char* text : {"a", "b", "c", "d"}) by_lines.say(0, text);
  EXPECT_EQ(by_lines.out, (Lines{"[0] a", "[0] b"}));
  Folding by_bytes(2, {.delay = 1h, .bytes_max = 10});
  by_bytes.say(0, "123456");
  EXPECT_EQ(by_bytes.out, Lines{});
  by_bytes.say(0, "1234567");
  EXPECT_EQ(by_bytes.out, (Lines{"[0] 123456"}));
}

/// Whatever is said by whom and when: all of it comes, once, and each rank's in its order.
TEST(LineFolder, random_lines_are_neither_lost_nor_doubled_nor_reordered) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Folding folding(5, {.delay = std::chrono::milliseconds{random() % 50},
                        .lines_max = 1 + random() % 20,
                        .bytes_max = 10 + random() % 100});
    std::map<int, Lines> said;
    std::chrono::milliseconds at{0};
    for (int i = 0; i < 400; ++i) {
      const int rank = static_cast<int>(random() % 5);
      const std::string text(1 + random() % 2, static_cast<char>('a' + random() % 3));
      at += std::chrono::milliseconds{random() % 4};
      said[rank].push_back(text);
      folding.say(rank, text, at);
    }
    folding.folder.flush();
    std::map<int, Lines> heard;
    for (const FoldedLine& line : folding.lines) {
      for (int rank = 0; rank < 5; ++rank) {
        if (line.ranks.contains(rank)) heard[rank].push_back(line.text);
      }
    }
    EXPECT_EQ(heard, said) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tj
