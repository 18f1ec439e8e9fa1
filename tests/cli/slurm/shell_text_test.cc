// Any text is one word of a shell, as it is; a manifest's references are filled in, and no others.
#include "cli/slurm/shell_text.h"

#include <gtest/gtest.h>

#include "cli/slurm/quantity.h"

namespace tj::slurm {
namespace {

std::string referred(std::string_view text) {
  return shell_word(
      with_references(text, [](std::string_view name) { return name == "RANK" || name == "A"; }));
}

TEST(ShellWord, needs_quotes_only_where_a_letter_means_something) {
  EXPECT_EQ(shell_word(std::string_view("/data/text-1.5,a:b@c%d+e_f")),
            "/data/text-1.5,a:b@c%d+e_f");
  EXPECT_EQ(shell_word(std::string_view("--lr=3e-4")), "--lr=3e-4");
  EXPECT_EQ(shell_word(std::string_view("")), "''");
  EXPECT_EQ(shell_word(std::string_view("a b")), "'a b'");
  EXPECT_EQ(shell_word(std::string_view("it's")), "'it'\\''s'");
  EXPECT_EQ(shell_word(std::string_view("A=1")), "'A=1'");
  EXPECT_EQ(shell_word(std::string_view("~/x")), "'~/x'");
  EXPECT_EQ(shell_word(std::string_view("$(rm -rf /)")), "'$(rm -rf /)'");
  EXPECT_EQ(shell_word(std::string_view("--x=`id`")), "'--x=`id`'");
  EXPECT_EQ(shell_word(std::string_view("a\nb")), "'a\nb'");
}

TEST(ShellText, has_the_references_that_are_known) {
  EXPECT_EQ(referred("out/$(RANK)"), "out/\"${RANK}\"");
  EXPECT_EQ(referred("$(RANK)$(A)"), "\"${RANK}\"\"${A}\"");
  EXPECT_EQ(referred("$(NOBODY)"), "'$(NOBODY)'");
  EXPECT_EQ(referred("$$(RANK)"), "'$(RANK)'");
  EXPECT_EQ(referred("$$$(RANK)"), "'$'\"${RANK}\"");
  EXPECT_EQ(referred("$RANK ${RANK}"), "'$RANK ${RANK}'");
  EXPECT_EQ(referred("$(RANK"), "'$(RANK'");
  EXPECT_EQ(referred("cost: 5$"), "'cost: 5$'");
  EXPECT_EQ(referred(""), "''");
}

TEST(ShellText, knows_names_of_variables) {
  for (const char* name : {"A", "_", "PATH_2"}) EXPECT_TRUE(is_variable_name(name)) << name;
  for (const char* name : {"", "2A", "A-B", "a.b", "A=B", "A B", "ü"})
    EXPECT_FALSE(is_variable_name(name)) << name;
}

TEST(Quantity, is_whole_and_rounded_up) {
  EXPECT_EQ(whole_units("8"), 8);
  EXPECT_EQ(whole_units("500m"), 1);
  EXPECT_EQ(whole_units("1500m"), 2);
  EXPECT_EQ(whole_units("0.1"), 1);
  EXPECT_EQ(whole_units("2e1"), 20);
  EXPECT_EQ(whole_mebibytes("1Gi"), 1024);
  EXPECT_EQ(whole_mebibytes("1G"), 954);
  EXPECT_EQ(whole_mebibytes("1500Mi"), 1500);
  EXPECT_EQ(whole_mebibytes("1.5Gi"), 1536);
  EXPECT_EQ(whole_mebibytes("100"), 1);
  for (const char* wrong : {"", "many", "-1", "1Gib", "1e999", "9E", "1.2.3", "e3", "0x10"})
    EXPECT_FALSE(whole_units(wrong)) << wrong;
}

}  // namespace
}  // namespace tj::slurm
