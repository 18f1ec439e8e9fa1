// Golden: what launchers state -> what WORLD_SIZE counts. Each case of
// tests/golden/launch/statements.txt is a comment, the statements, "----", and the settlement.
//   statements rank=R[@machine][:world=N][:gpus=N] ...   without a machine each has its own
//   world N gpus N                                       of those that don't say otherwise
//   asking R                                             for whom the local rank is asked (0)
//   quiet                                                nobody has come for long
// TJ_UPDATE_GOLDEN=1 writes the file anew; reviewing the difference is the work.
#include "trainer/launch/statements.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/trainer/golden_cases.h"
namespace tj::trainer {
namespace {

struct Case {
  std::vector<std::string> words;
  int world_size = 1;
  int gpus = 1;
  int asking = 0;
  bool is_quiet = false;
};

void read_line(const std::string& line, Case& c) {
  std::istringstream words(line);
  std::string kind, word;
  words >> kind;
  if (kind == "world") words >> c.world_size >> word >> c.gpus;
  if (kind == "asking") words >> c.asking;
  if (kind == "quiet") c.is_quiet = true;
  while (kind == "statements" && words >> word) c.words.push_back(word);
}

Statement statement_of(const std::string& word, const Case& c) {
  const auto number_after = [&](const std::string& name, int otherwise) {
    const auto at = word.find(name);
    return at == std::string::npos ? otherwise : std::stoi(word.substr(at + name.size()));
  };
  const int rank = number_after("rank=", 0);
  const auto at = word.find('@');
  const std::string machine =
      at == std::string::npos ? "n" + std::to_string(rank) : word.substr(at + 1, 1);
  return {.world_size = number_after(":world=", c.world_size),
          .rank = rank,
          .gpus = number_after(":gpus=", c.gpus),
          .machine = machine,
          .node = machine};
}

std::string answer_to(const Case& c) {
  std::vector<Statement> statements;
  for (const auto& word : c.words) statements.push_back(statement_of(word, c));
  const auto settlement = weigh_statements(statements, c.asking, c.is_quiet);
  if (const auto* const undecided = std::get_if<Undecided>(&settlement))
    return "undecided: " + undecided->text + "\n";
  if (const auto* const error = std::get_if<Error>(&settlement))
    return "refused: " + describe(*error) + "\n";
  const auto& decision = std::get<WorldDecision>(settlement);
  return std::string(to_string(decision.meaning)) + ", local rank " +
         std::to_string(decision.local_rank) + ": " + decision.because + "\n";
}

TEST(Statements, each_set_gives_the_settlement_and_its_reason) {
  expect_golden_cases<Case>("launch/statements.txt", 16, read_line, answer_to);
}

Identity ambiguous(int world_size, int rank) {
  return {.convention = Convention::workers,
          .is_ambiguous = true,
          .worker_count = {world_size, "WORLD_SIZE"},
          .worker_index = {rank, "RANK"},
          .nproc = {2, "GPUs"}};
}

TEST(Statements, as_workers_nothing_changes_but_the_doubt) {
  const auto id = decided(ambiguous(4, 3), {.meaning = WorldMeaning::workers}, 2);
  EXPECT_FALSE(id.is_ambiguous);
  EXPECT_EQ(id.world_size(), 8);
  EXPECT_EQ(id.worker_index.value, 3);
  EXPECT_FALSE(id.rank);
}

TEST(Statements, as_nodes_the_rank_is_the_first_of_its_node) {
  const auto id = decided(ambiguous(4, 2), {.meaning = WorldMeaning::nodes}, 2);
  EXPECT_EQ(id.world_size(), 4);
  EXPECT_EQ(id.worker_count.value, 2);
  EXPECT_EQ(id.worker_index.value, 1);
  EXPECT_FALSE(id.rank);
}

TEST(Statements, as_processes_the_launcher_is_one_of_them) {
  const auto id =
      decided(ambiguous(4, 3), {.meaning = WorldMeaning::processes, .local_rank = 1}, 2);
  EXPECT_EQ(id.world_size(), 4);
  EXPECT_EQ(id.worker_index.value, 1);
  ASSERT_TRUE(id.rank && id.local_rank);
  EXPECT_EQ(id.rank->value, 3);
  EXPECT_EQ(id.local_rank->value, 1);
}

}  // namespace
}  // namespace tj::trainer
