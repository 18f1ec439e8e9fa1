// Completion and the manual page, of a small program: what they make of its options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/completion/complete.h"
#include "cli/completion/scripts.h"
#include "cli/man_page.h"

namespace tj {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Help : public testing::Test {
 protected:
  Help() {
    app_.set_version_flag("--version", "small 1.2.3");
    CLI::App* show = app_.add_subcommand("show", "show a job");
    show->add_option("job", job_, "its name")->type_name("JOB");
    show->add_flag("-w,--watch", watch_, "again and again");
    show->add_option("-o,--output", output_, "the form\nin two lines")->type_name("json|yaml");
    show->add_option("-f,--file", file_, "a file")->type_name("FILE");
    show->footer("\nExamples:\n  small show a.b\n.begins like a request\n\\ is a backslash");
    app_.add_subcommand("shout", "");
    app_.add_subcommand("hidden", "not for people")->group("");
  }

  std::vector<std::string> words(const std::vector<std::string>& line) {
    std::vector<std::string> found;
    for (const Candidate& each : complete(app_, line, names_).candidates)
      found.push_back(each.word);
    return found;
  }

  CLI::App app_{"a small program", "small"};
  std::string job_, output_, file_;
  bool watch_ = false;
  ListNames names_ = [](const std::vector<std::string>&) {
    return std::vector<std::string>{"mnist", "minst", "cifar"};
  };
};

TEST_F(Help, commands_are_completed) {
  EXPECT_THAT(words({""}), ElementsAre("show", "shout"));
  EXPECT_THAT(words({"sho"}), ElementsAre("show", "shout"));
  EXPECT_THAT(words({"shou"}), ElementsAre("shout"));
  EXPECT_THAT(words({"x"}), ElementsAre());
  EXPECT_THAT(words({}), ElementsAre());
}

TEST_F(Help, flags_are_completed) {
  EXPECT_THAT(words({"show", "--"}), ElementsAre("--help", "--watch", "--output", "--file"));
  EXPECT_THAT(words({"show", "-w", "mnist", "--o"}), ElementsAre("--output"));
  EXPECT_THAT(words({"--v"}), ElementsAre("--version"));
}

TEST_F(Help, names_of_jobs_stand_where_the_command_has_one) {
  EXPECT_THAT(words({"show", "m"}), ElementsAre("mnist", "minst"));
  EXPECT_THAT(words({"show", "--watch", ""}), ElementsAre("mnist", "minst", "cifar"));
  EXPECT_THAT(words({"show", "mnist", ""}), ElementsAre());  // it takes one
  EXPECT_THAT(words({"show", "--", "c"}), ElementsAre("cifar"));
}

TEST_F(Help, values_are_completed_by_their_type) {
  EXPECT_THAT(words({"show", "-o", ""}), ElementsAre("json", "yaml"));
  EXPECT_THAT(words({"show", "--output=y"}), ElementsAre("--output=yaml"));
  EXPECT_TRUE(complete(app_, {"show", "-f", ""}, names_).wants_files);
  EXPECT_FALSE(complete(app_, {"show", ""}, names_).wants_files);
}

TEST_F(Help, the_answer_has_a_line_for_each) {
  EXPECT_EQ(to_text(complete(app_, {"show", "--o"}, names_)), "words\n--output\tthe form\n");
  EXPECT_EQ(to_text({.wants_files = true}), "files\n");
}

TEST_F(Help, each_shell_has_a_script_that_asks_the_program) {
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_THAT(completion_script(shell), HasSubstr("__complete --")) << shell;
  EXPECT_EQ(completion_script("csh"), "");
}

TEST_F(Help, the_manual_page_says_what_help_says) {
  const std::string page = man_page(app_);
  EXPECT_THAT(page, HasSubstr(".SS \"tj show JOB [OPTION]...\"\nshow a job.\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIjson|yaml\\fR\n"));
  EXPECT_THAT(page,
              HasSubstr("\n  small show a.b\n\\&.begins like a request\n\\e is a backslash\n"));
  EXPECT_THAT(page, Not(HasSubstr("hidden")));
  EXPECT_THAT(page, HasSubstr("\"small 1.2.3\""));
}

}  // namespace
}  // namespace tj
