#include "trainer/report/event_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "tests/temporary_folder.h"
#include "trainer/report/event_messages.h"

namespace tj::trainer {
namespace {
using namespace std::string_literals;

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// RFC 3720, appendix B.4
TEST(EventFile, the_sum_is_that_of_the_standard) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
}

TEST(EventFile, messages_are_what_protobuf_writes) {
  // wall_time 1.0, step 3, summary{value{tag "a", simple_value 2.0}}
  const ScalarValue values[] = {{"a", 2.0}};
  EXPECT_EQ(scalars_event({1.0, 3}, values),
            "\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\x03\x2a\x0a\x0a\x08\x0a\x01"
            "a\x15\x00\x00\x00\x40"s);
}

TEST(EventFile, a_histogram_of_one_value_and_of_none) {
  const double one[] = {4.0};
  EXPECT_NE(histogram_event({1, 1}, "h", one).find("h"), std::string::npos);
  const double none[] = {std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(histogram_event({1, 1}, "h", none).find("h"), std::string::npos);
}

TEST(EventFile, two_files_of_one_second_have_names_in_their_order) {
  const TemporaryFolder folder;
  const auto first = EventFile::create(folder.path() / "events", "host");
  const auto second = EventFile::create(folder.path() / "events", "host");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_LE((*first)->path(), (*second)->path());
}

TEST(EventFile, what_a_full_disk_refused_is_written_later) {
  const TemporaryFolder folder;
  auto file = EventFile::create(folder.path(), "host");
  ASSERT_TRUE(file.ok());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{.rlim_cur = 50, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &tight);
  (*file)->add(std::string(100, 'x'));
  EXPECT_FALSE((*file)->flush().ok());
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE((*file)->flush().ok());
  const std::string text = text_of((*file)->path());
  EXPECT_TRUE(text.ends_with(framed(std::string(100, 'x'))));
  EXPECT_EQ(text.size(), framed(file_version_event(0)).size() + 116);
}

}  // namespace
}  // namespace tj::trainer
