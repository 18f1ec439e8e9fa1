// Golden: flags of `tj submit` -> the manifests that they make, or what is wrong with them. Each
// case of tests/golden/submit/flags.txt is a comment, what was given, "----", and the answer.
//   flags --name a ...    the command line, words in '' hold spaces
//   script start.sh TEXT  what --script reads; \n is a line break
// TJ_UPDATE_GOLDEN=1 writes the file anew; reviewing the difference is the work.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <regex>

#include "cli/submit/made_job.h"
#include "cli/submit/output.h"
#include "tests/trainer/golden_cases.h"
#include "yaml/yaml_json.h"

namespace tj::submit {
namespace {

using nlohmann::json;

struct Case {
  std::vector<std::string> words;
  std::optional<Script> script;
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> words;
  static const std::regex kWord("'([^']*)'|(\\S+)");
  for (std::sregex_iterator at(line.begin(), line.end(), kWord); at != std::sregex_iterator(); ++at)
    words.push_back((*at)[2].matched ? (*at)[2].str() : (*at)[1].str());
  return words;
}

void read_line(const std::string& line, Case& c) {
  if (line.starts_with("flags ")) c.words = split(line.substr(6));
  if (!line.starts_with("script ")) return;
  const auto space = line.find(' ', 7);
  const std::string text = std::regex_replace(line.substr(space + 1), std::regex("\\\\n"), "\n");
  c.script = Script{.file_name = line.substr(7, space - 7), .text = text};
}

std::string answer_to(const Case& c) {
  CLI::App app("tj submit");
  SubmitFlags flags;
  add_submit_flags(app, flags);
  try {
    app.parse(std::vector<std::string>(c.words.rbegin(), c.words.rend()));
  } catch (const CLI::ParseError& error) {
    return std::string(error.what()) + "\n";
  }
  std::vector<FieldError> errors;
  const MadeJob made = make_job(flags, c.script, errors);
  if (!errors.empty()) return describe(errors) + (describe(errors).ends_with('\n') ? "" : "\n");
  EXPECT_EQ(describe(validate_manifest(made.job)), "");
  std::vector<json> objects{made.job};
  if (made.config_map) objects.push_back(*made.config_map);
  const std::string text = printed(objects, Format::yaml);
  const auto read = parse_yaml(text, "printed");
  EXPECT_TRUE(read && *read == objects) << text;
  return text;
}

TEST(SubmitFlags, make_these_manifests) {
  trainer::expect_golden_cases<Case>("submit/flags.txt", 15, read_line, answer_to);
}

class Scripts : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  std::string error_of(const std::string& path) {
    const auto script = read_script(path);
    if (!script) return script.error().message;
    const auto interpreter = interpreter_of(*script);
    return interpreter ? "" : interpreter.error().message;
  }

  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) /
                                  ("submit-" + std::to_string(getpid()) +
                                   testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Scripts, say_what_runs_them) {
  struct Row {
    std::string name, text;
    std::vector<std::string> command;
  };
  const std::vector<Row> table = {
      {"a", "#!/bin/bash\necho", {"/bin/bash"}},
      {"a.py", "#!/usr/bin/env python3\n", {"/usr/bin/env", "python3"}},
      {"a", "#! /bin/bash  -e -x \n", {"/bin/bash", "-e -x"}},  // as the kernel: one argument
      {"a", "#!/bin/sh", {"/bin/sh"}},
      {"a.sh", "echo\n", {"bash"}},
      {"a.bash", "echo\n", {"bash"}},
      {"a.py", "print()\n", {"python3"}}};
  for (const Row& row : table) {
    const auto command = interpreter_of({row.name, row.text});
    ASSERT_TRUE(command) << row.text;
    EXPECT_EQ(*command, row.command) << row.text;
  }
}

TEST_F(Scripts, that_can_not_travel_are_refused_with_what_is_right) {
  const auto says = [&](const std::string& path, const std::string& wanted) {
    EXPECT_NE(error_of(path).find(wanted), std::string::npos) << path << ": " << error_of(path);
  };
  says(write("a.txt", "echo\n"), "must begin with a line such as #!/bin/bash");
  says(write("b", "#!bash\n"), "the interpreter must be a path, as in #!/bin/bash");
  says(write("c.sh", "#!/bin/bash\r\necho\r\n"), "CR LF");
  says(write("d.sh", ""), "is empty");
  says(write("e.sh", std::string("a\0b", 3)), "is a binary file");
  says(write("f.sh", "echo \xff\n"), "is not UTF-8 at byte 5");
  says(write("g.sh", "#!/bin/sh\n" + std::string(kScriptBytesMax, '#')),
       "has more than 1048576 bytes");
  says(folder_, "is a folder");
  says(folder_ / "none.sh",
       "cannot be read: No such file or directory; it must be a file of this machine");
  EXPECT_EQ(error_of(write("h.sh", "#!/bin/sh\n" + std::string(kScriptBytesMax - 10, '#'))), "");
}

TEST_F(Scripts, have_a_name_that_a_config_map_takes) {
  for (const auto& [name, wanted] : std::vector<std::pair<std::string, std::string>>{
           {"my script.sh", "my_script.sh"}, {"..a.sh", "script"}, {"\xc3\xbc.sh", "__.sh"}}) {
    const auto script = read_script(write(name, "#!/bin/sh\n"));
    ASSERT_TRUE(script);
    EXPECT_EQ(script->file_name, wanted);
  }
}

TEST(Output, a_servers_answer_is_told_by_field) {
  EXPECT_EQ(
      by_field("TrainingJob.kubebrain.io \"a\" is invalid: [spec.a: Invalid value: 0: is 0, or "
               "less, metadata.name: Required value]"),
      "TrainingJob.kubebrain.io \"a\" is invalid:\n  spec.a: Invalid value: 0: is 0, or less\n"
      "  metadata.name: Required value");
  EXPECT_EQ(by_field("a\x1b[31mb\nc\xc2\x9b"), "a\xef\xbf\xbd[31mb c\xef\xbf\xbd");
  EXPECT_LT(by_field("x is invalid: " + std::string(1 << 20, ',')).size(), 20'000U);
}

}  // namespace
}  // namespace tj::submit
