// Golden text of many cases in one file: lines that describe a case, "----", the answer, an empty
// line. What stands outside of answers is copied, so that comments stay.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "tests/places.h"

namespace tj::trainer {

/// Reads each case of `file` (in tests/golden) line by line into a new `Case`, and compares what
/// `answer_to` makes of it; TJ_UPDATE_GOLDEN writes the answers instead. Fails below `cases_min`.
template <typename Case, typename ReadLine, typename AnswerTo>
void expect_golden_cases(const std::string& file, int cases_min, ReadLine&& read_line,
                         AnswerTo&& answer_to) {
  const std::string path = source_dir() + "/tests/golden/" + file;
  std::ifstream stream(path);
  ASSERT_TRUE(stream) << path;
  std::string expected;
  std::string actual;
  std::optional<Case> c(std::in_place);
  int cases = 0;
  bool is_answer = false;
  for (std::string line; std::getline(stream, line);) {
    expected += line + "\n";
    if (line.empty()) c.emplace();
    is_answer = is_answer && !line.empty();
    if (is_answer) continue;
    actual += line + "\n";
    if (line != "----") {
      read_line(line, *c);
      continue;
    }
    actual += answer_to(*c);
    is_answer = true;
    ++cases;
  }
  EXPECT_GE(cases, cases_min);
  if (std::getenv("TJ_UPDATE_GOLDEN")) std::ofstream(path) << actual;
  EXPECT_EQ(actual, expected);
}

}  // namespace tj::trainer
