#include "operator/local/label_selector.h"

#include <gtest/gtest.h>

namespace tj {
namespace {

TEST(LabelSelector, selects_as_kubernetes_does) {
  const LabelSelector::Labels labels = {{"app", "web"}, {"tier", ""}};
  const std::pair<const char*, bool> kCases[] = {
      {"", true},        {"app", true},          {"nope", false},         {"!nope", true},
      {"!app", false},   {"app=web", true},      {"app==web", true},      {"app=db", false},
      {"app!=db", true}, {"app!=web", false},    {"nope!=x", true},       {"tier=", true},
      {"app=", false},   {"app=web,tier", true}, {"app=web,nope", false}, {" app = web ", true}};
  for (const auto& [text, selected] : kCases) {
    const auto selector = LabelSelector::parse(text);
    ASSERT_TRUE(selector.ok()) << text;
    EXPECT_EQ(selector->matches(labels), selected) << text;
  }
}

TEST(LabelSelector, refuses_what_it_cannot_read) {
  for (const char* text : {",", "app=web,", "=web", "app in (a,b)", "!"}) {
    const auto selector = LabelSelector::parse(text);
    ASSERT_FALSE(selector.ok()) << text;
    EXPECT_EQ(selector.error().code, Code::invalid) << text;
  }
}

}  // namespace
}  // namespace tj
