#include "trainer/data/lerobot/statistics_notes.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {

const std::vector<float> kValues{0.1F, -3, 1e-30F, 7, 7};

TEST(StatisticsNotes, come_back_as_they_were_written) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "notes";
  const FirstPasses first{first_pass_of(kValues), first_pass_of(std::vector<float>{2})};
  const SecondPasses second{second_pass_of(kValues, SecondSearch(first[0])), {}};
  {
    auto notes = StatisticsNotes::open(file, "of this", 2);
    ASSERT_TRUE(notes);
    EXPECT_TRUE((*notes)->first.empty());
    ASSERT_TRUE((*notes)->write(3, first));
    ASSERT_TRUE((*notes)->write(4, second));
    const auto other = StatisticsNotes::open(file, "of this", 2);
    EXPECT_EQ(other.error().code, Code::conflict);
  }
  std::ofstream(file, std::ios::app) << note_of("of this", 5, first).substr(0, 40);
  std::ofstream(file, std::ios::app)
      << "\n{\"key\":\"of this\",\"pass\":1,\"part\":6,\"found\":[[1],[2]]}\n";
  auto notes = StatisticsNotes::open(file, "of this", 2);
  ASSERT_TRUE(notes);
  ASSERT_EQ((*notes)->first.size(), 1U);
  EXPECT_EQ((*notes)->first.at(3), first);
  EXPECT_EQ((*notes)->second.at(4), second);
  notes = Error{};
  auto others = StatisticsNotes::open(file, "of another", 2);
  ASSERT_TRUE(others);
  EXPECT_TRUE((*others)->first.empty());
}

}  // namespace
}  // namespace tj::trainer
