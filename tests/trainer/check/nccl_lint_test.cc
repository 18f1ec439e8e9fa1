// Golden: variables, and what the machine shows -> what the linter says. Each case of
// tests/golden/check/nccl.txt is a comment, facts, "----", and the answer.
//   env NAME=value ...   variables
//   adapters NAME ...    active ports of 400 Gb/s
//   interfaces NAME ...
// TJ_UPDATE_GOLDEN=1 writes the file anew; reviewing the difference is the work.
#include "trainer/check/nccl_lint.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/trainer/golden_cases.h"
#include "trainer/check/nccl_names.h"

namespace tj::trainer {
namespace {

struct Case {
  std::vector<EnvVar> variables;
  LintFacts facts;
};

void read_line(const std::string& line, Case& c) {
  std::istringstream words(line);
  std::string kind, word;
  words >> kind;
  if (kind.starts_with("#")) return;
  while (words >> word) {
    const auto equals = word.find('=');
    if (kind == "env") c.variables.push_back({word.substr(0, equals), word.substr(equals + 1)});
    if (kind == "interfaces") c.facts.interfaces.push_back(word);
    if (kind == "adapters")
      c.facts.ports.push_back({.device = word, .is_active = true, .rate_gbps = 400});
  }
}

std::string answer_to(Case& c) {
  std::string text;
  for (const Finding& finding : lint_nccl(c.variables, c.facts)) {
    EXPECT_EQ(finding.check, kLintCheck);
    EXPECT_FALSE(finding.advice.empty()) << finding.found;
    text += std::string(to_string(finding.severity)) + " " + finding.found + ": " + finding.advice +
            "\n";
  }
  return text.empty() ? "nothing\n" : text;
}

TEST(NcclLint, each_setting_gets_its_effect_and_what_would_be_right) {
  expect_golden_cases<Case>("check/nccl.txt", 40, read_line, answer_to);
}

TEST(NcclLint, a_start_of_training_hears_only_of_what_does_harm) {
  const std::vector<EnvVar> variables{{"NCCL_SHM_DISABLE", "0"}, {"NCCL_TIMEOUT", "10800"}};
  const auto lines = lint_lines(variables, {});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("trainer: NCCL_TIMEOUT=10800: nothing reads it"));
}

TEST(NcclLint, without_a_gpu_only_time_limits_that_nothing_reads_are_told) {
  const std::vector<EnvVar> variables{{"NCCL_ALGO", "Ring"},
                                      {"NCCL_IB_TIMEOUT", "30"},
                                      {"NCCL_IB_HCAS", "mlx5_0"},
                                      {"CURL_TIMEOUT", "3"},
                                      {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "60"},
                                      {"TORCH_DISTRIBUTED_TIMEOUT", "10800"},
                                      {"NCCL_TIMEOUT", "10800"}};
  const auto lines = timeout_lines(variables);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("trainer: NCCL_TIMEOUT=10800: nothing reads it"));
  EXPECT_TRUE(lines[1].starts_with("trainer: TORCH_DISTRIBUTED_TIMEOUT=10800: nothing reads it"));
  for (const auto& line : lines) EXPECT_NE(line.find("--limit"), std::string::npos);
}

TEST(NcclLint, a_name_far_from_all_others_is_compared_with_none) {
  EXPECT_EQ(nearest_name("NCCL_SOMETHING_QUITE_DIFFERENT"), "");
  EXPECT_EQ(nearest_name("NCCL_IB_HCAS"), "NCCL_IB_HCA");
  EXPECT_EQ(kind_of_name("NCCL_IB_HCA"), NameKind::known);
  EXPECT_FALSE(is_collective_variable("NCCLX"));
}

}  // namespace
}  // namespace tj::trainer
