#include "trainer/values/failure.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

TEST(DataFailure, a_flag_is_to_blame_unless_it_names_the_data) {
  const auto reason = [](const char* subject, Code code = Code::invalid) {
    return data_failure({.code = code, .message = "is wrong", .subject = subject}).reason;
  };
  for (const char* const subject :
       {"--data", "--data /set", "--eval-data /set", "/set/info.json", "", "--eval-data"})
    EXPECT_EQ(reason(subject), "BadData") << subject;
  for (const char* const subject :
       {"--data-root /nowhere", "--data-index", "--eval-data-x", "--held-out", "--tokenizer a"})
    EXPECT_EQ(reason(subject), "BadConfig") << subject;
  EXPECT_EQ(reason("/set/a.json", Code::not_found), "BadData");
  EXPECT_EQ(reason("/set/a.json", Code::unavailable), "DataLost") << "another attempt may read it";
  EXPECT_EQ(reason("--data-root /mount", Code::unavailable), "BadConfig");
}

TEST(OfFlag, says_the_path_once) {
  const auto text = [](const char* subject) {
    return describe(of_flag("--vggt", "/models/v", {.message = "is wrong", .subject = subject}));
  };
  EXPECT_EQ(text("/models/v"), "--vggt /models/v: is wrong");
  EXPECT_EQ(text("/models/v/config.json"), "--vggt /models/v/config.json: is wrong");
  EXPECT_EQ(text("model.safetensors"), "--vggt /models/v: model.safetensors: is wrong");
  EXPECT_EQ(text("v"), "--vggt /models/v: is wrong");
  EXPECT_EQ(text(""), "--vggt /models/v: is wrong");
}

}  // namespace
}  // namespace tj::trainer
