// Archives of another machine: what real tars write is unpacked, and what a hostile one writes
// leaves nothing outside the target.
#include "cli/copied_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "operator/kube/file_text.h"

namespace tj {
namespace {
namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

struct RawEntry {
  std::string name;
  char type = '0';
  std::string data = "";
  std::string link = "";
};

/// A header of ustar with its data, padded.
std::string raw(const RawEntry& entry) {
  std::string block(512, '\0');
  const auto put = [&block](std::size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  std::array<char, 32> number{};
  put(0, entry.name.substr(0, 100));
  put(100, "0000644");
  std::snprintf(number.data(), number.size(), "%011zo", entry.data.size());
  put(124, number.data());
  put(148, "        ");
  block[156] = entry.type;
  put(157, entry.link);
  put(257, std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  std::snprintf(number.data(), number.size(), "%06o", sum);
  put(148, number.data());
  return block + entry.data + std::string((512 - entry.data.size() % 512) % 512, '\0');
}

std::string archive(const std::vector<RawEntry>& entries) {
  std::string all;
  for (const RawEntry& entry : entries) all += raw(entry);
  return all + std::string(1024, '\0');
}

class CopiedTreeTest : public testing::Test {
 protected:
  CopiedTreeTest() {
    root_ = fs::path(testing::TempDir()) / ("tj_copied_" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "in");
  }
  ~CopiedTreeTest() override { fs::remove_all(root_); }

  /// "complete", "cut", or the error.
  std::string unpack(const std::string& bytes, std::size_t piece = 4096) {
    CopiedTree tree(root_ / "in" / "out", "base");
    TarReader reader(tree.handlers());
    std::string said;
    for (std::size_t at = 0; at < bytes.size() && said.empty(); at += piece) {
      const Result<void> fed = reader.feed(std::string_view(bytes).substr(at, piece));
      if (!fed) said = describe(fed.error());
    }
    left_out_ = tree.left_out();
    if (!said.empty()) return said;
    return reader.is_complete() ? "complete" : "cut";
  }
  std::string text(const std::string& path) {
    const auto read = read_file_text(root_ / "in" / path);
    return read ? *read : describe(read.error());
  }
  std::vector<std::string> all_paths() {
    std::vector<std::string> paths;
    for (const auto& entry : fs::recursive_directory_iterator(root_))
      paths.push_back(fs::relative(entry.path(), root_).string());
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  std::string run(const std::string& command) {
    FILE* const pipe = ::popen(command.c_str(), "r");
    std::string output;
    std::array<char, 4096> part{};
    for (std::size_t count = 0; (count = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
      output.append(part.data(), count);
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return output;
  }

  fs::path root_;
  std::vector<std::string> left_out_;
};

TEST_F(CopiedTreeTest, what_tar_packs_in_each_format_comes_out_the_same) {
  const std::string long_name = std::string(120, 'n') + "/" + std::string(150, 'm');
  fs::create_directories(root_ / "base" / fs::path(long_name).parent_path());
  fs::create_directories(root_ / "base" / "empty");
  std::ofstream(root_ / "base" / "a.txt") << "hello\n";
  std::ofstream(root_ / "base" / "zero").flush();
  std::ofstream(root_ / "base" / long_name) << std::string(100'000, 'x');
  fs::permissions(root_ / "base" / "a.txt", fs::perms(0750));
  for (const char* format : {"gnu", "pax"}) {
    const std::string bytes =
        run("tar -c --format=" + std::string(format) + " -f - -C " + root_.string() + " ./base");
    for (const std::size_t piece : {std::size_t{1}, std::size_t{511}, std::size_t{65'536}}) {
      fs::remove_all(root_ / "in" / "out");
      ASSERT_EQ(unpack(bytes, piece), "complete") << format << " " << piece;
      EXPECT_EQ(run("diff -r " + (root_ / "base").string() + " " + (root_ / "in/out").string() +
                    " && echo same"),
                "same\n");
      EXPECT_EQ(fs::status(root_ / "in/out/a.txt").permissions() & fs::perms::owner_all,
                fs::perms::owner_all);
    }
  }
}

TEST_F(CopiedTreeTest, a_single_file_takes_the_targets_name) {
  EXPECT_EQ(unpack(archive({{.name = "./base", .data = "one"}})), "complete");
  EXPECT_EQ(text("out"), "one");
}

TEST_F(CopiedTreeTest, no_path_leaves_the_target) {
  for (const char* name : {"../evil", "base/../../evil", "/evil", "/base/evil", "evil",
                           "./base/x/../../../evil", "basement/x", ""}) {
    const std::string said =
        unpack(archive({{.name = "base/", .type = '5'}, {.name = name, .data = "gotcha"}}));
    EXPECT_THAT(said, HasSubstr("leads elsewhere")) << name;
    EXPECT_THAT(all_paths(), ElementsAre("in", "in/out")) << name;
  }
  std::string record = "path=base/../../../evil\n";
  record = std::to_string(record.size() + 3) + " " + record;
  EXPECT_THAT(unpack(archive(
                  {{.name = "x", .type = 'x', .data = record}, {.name = "base/a", .data = "x"}})),
              HasSubstr("leads elsewhere"));
  EXPECT_THAT(unpack(archive({{.name = "x", .type = 'L', .data = "/etc/evil"},
                              {.name = "base/a", .data = "x"}})),
              HasSubstr("leads elsewhere"));
}

TEST_F(CopiedTreeTest, links_and_devices_are_named_and_not_made) {
  EXPECT_EQ(unpack(archive({{.name = "base/", .type = '5'},
                            {.name = "base/link", .type = '2', .link = "/etc"},
                            {.name = "base/hard", .type = '1', .link = "/etc/passwd"},
                            {.name = "base/null", .type = '3'},
                            {.name = "base/a", .data = "x"}})),
            "complete");
  EXPECT_THAT(left_out_, ElementsAre("base/link: a symbolic link to /etc",
                                     "base/hard: a second name of /etc/passwd",
                                     "base/null: neither a file nor a folder"));
  EXPECT_THAT(all_paths(), ElementsAre("in", "in/out", "in/out/a"));
}

TEST_F(CopiedTreeTest, a_link_of_ours_is_not_followed_out_of_the_target) {
  fs::create_directories(root_ / "elsewhere");
  fs::create_directories(root_ / "in/out");
  fs::create_directory_symlink(root_ / "elsewhere", root_ / "in/out/link");
  EXPECT_THAT(unpack(archive({{.name = "base/link/a", .data = "x"}})), HasSubstr("is in the way"));
  EXPECT_TRUE(fs::is_empty(root_ / "elsewhere"));
}

TEST_F(CopiedTreeTest, a_file_has_its_name_only_when_it_is_whole) {
  const std::string whole = archive({{.name = "base/a", .data = std::string(10'000, 'x')}});
  EXPECT_EQ(unpack(whole.substr(0, 5'000)), "cut");
  EXPECT_THAT(all_paths(), ElementsAre("in", "in/out"));
  EXPECT_EQ(unpack(whole), "complete");
  EXPECT_EQ(text("out/a").size(), 10'000U);
}

TEST_F(CopiedTreeTest, garbage_is_no_archive) {
  EXPECT_THAT(unpack(std::string(2048, 'x')), HasSubstr("is no tar archive: a header's checksum"));
  std::string block = raw({.name = "x", .type = 'x', .data = "99 path=base\n"});
  EXPECT_THAT(unpack(block + std::string(1024, '\0')), HasSubstr("a pax record is not right"));
  block = raw({.name = "x", .type = 'x', .data = "12 size=999x\n"});
  EXPECT_THAT(unpack(block), Not(HasSubstr("complete")));
  EXPECT_EQ(unpack(""), "cut");
  EXPECT_THAT(all_paths(), ElementsAre("in"));
}

}  // namespace
}  // namespace tj
