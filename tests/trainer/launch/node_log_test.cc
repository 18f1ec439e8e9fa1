#include "trainer/launch/node_log.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {

/// Without the times.
std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  static const std::regex time(R"((^|\n)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z )");
  return std::regex_replace(text.str(), time, "$1");
}

TEST(NodeLog, its_name_tells_node_and_time) {
  const auto when = std::chrono::system_clock::from_time_t(1769862896);
  Identity identity;
  identity.worker_index.value = 1;
  EXPECT_EQ(node_log_name(identity, when), "train_node1_20260131T123456Z.log");
  identity.rank = Fact<int>{11, "--rank"};
  EXPECT_EQ(node_log_name(identity, when), "train_node1_rank11_20260131T123456Z.log");
}

TEST(NodeLog, nothing_is_opened_where_no_folder_is_named) {
  const auto log = node_log_of("", {});
  ASSERT_TRUE(log.ok());
  EXPECT_FALSE(*log);
}

TEST(NodeLog, lines_are_kept_up_to_a_bound_and_it_says_so) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "made/a.log";
  const auto log = open_node_log(file, "log of node 0", 12);
  ASSERT_TRUE(log.ok()) << describe(log.error());
  (*log)("one\ntwo\n");
  (*log)("three\n");
  (*log)("four\n");
  EXPECT_TRUE(text_of(file).starts_with("log of node 0\n")) << text_of(file);
  EXPECT_TRUE(text_of(file).ends_with(
      "\none\ntwo\ntrainer launch: the log of this node, " + file.string() +
      ", holds no more lines of the processes: it has 8 of at most 12 bytes\n"))
      << text_of(file);
}

TEST(NodeLog, a_folder_that_can_not_be_written_is_named_with_what_would_be_right) {
  const TemporaryFolder folder;
  const auto file = folder.write("a-file", "");
  const auto log = open_node_log(file / "a.log", "log of node 0");
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.error().code, Code::invalid);
  EXPECT_EQ(describe(log.error()), "--node-log: is \"" + file.string() +
                                       "\", which can't be made: Not a directory; it must be a "
                                       "folder that this process can write");
}

}  // namespace
}  // namespace tj::trainer
