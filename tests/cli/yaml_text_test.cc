// Whatever is written is read back as it was, and looks as a person would have written it.
#include "cli/yaml_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "yaml/yaml_json.h"

namespace tj {
namespace {
using nlohmann::json;

const std::string kAwkwardTexts[] = {"",
                                     " ",
                                     "yes",
                                     "No",
                                     "null",
                                     "~",
                                     "012",
                                     "0x1F",
                                     "1e3",
                                     "-5",
                                     "8",
                                     "1_000",
                                     ".5",
                                     ".inf",
                                     "-",
                                     "--",
                                     "---",
                                     "- a",
                                     "--flag=x",
                                     "-c",
                                     "?",
                                     ": ",
                                     "a: b",
                                     "a:",
                                     ":a",
                                     "a #b",
                                     "#a",
                                     "*a",
                                     "&a",
                                     "!a",
                                     "%a",
                                     "@a",
                                     "`a",
                                     "a, b",
                                     "[a]",
                                     "{a}",
                                     "'a'",
                                     "\"a\"",
                                     "a\\b",
                                     "$(RANK)",
                                     "<<",
                                     "=",
                                     "|",
                                     ">",
                                     "\n",
                                     "a\n",
                                     "a\nb",
                                     "a\nb\n",
                                     "a\n\n",
                                     "\na\n",
                                     " a\n",
                                     "a \nb\n",
                                     "a\tb\n",
                                     "#!/bin/bash\nset -e\n  echo \"$RANK: x\" # why\n",
                                     "caf\u00e9",
                                     "\u4e2d\u6587\n",
                                     "\u0085",
                                     "a\u2028b\n",
                                     "\ufeff",
                                     "\U0001F600",
                                     "\x7f",
                                     std::string("\0a", 2),
                                     "a\rb\n",
                                     std::string(2000, 'k'),
                                     std::string(2000, '\n')};

void expect_read_back(const json& value) {
  const std::string text = yaml_text(value);
  const auto documents = parse_yaml(text, "written");
  ASSERT_TRUE(documents) << describe(documents.error()) << "\n" << text;
  ASSERT_EQ(documents->size(), 1U) << text;
  EXPECT_EQ(documents->front(), value) << text;
}

TEST(YamlText, any_text_is_read_back_wherever_it_stands) {
  for (const auto& text : kAwkwardTexts) {
    expect_read_back({{"key", text}});
    expect_read_back({{text, "value"}});
    expect_read_back({{"list", {text, "a", text}}});
    expect_read_back({{"list", {{{"name", "A"}, {"value", text}}, {{text, {{text, text}}}}}}});
  }
}

TEST(YamlText, any_other_value_is_read_back) {
  const json values[] = {nullptr,
                         true,
                         false,
                         0,
                         -7,
                         2.5,
                         1e300,
                         UINT64_MAX,
                         INT64_MIN,
                         json::array(),
                         json::object(),
                         {{"a", json::array()}},
                         json::array({json::array(), json::object(), json::array({1})})};
  for (const json& value : values) {
    expect_read_back({{"key", value}});
    expect_read_back({{"list", {value, value}}});
  }
}

TEST(YamlText, it_looks_as_the_examples_do) {
  const json value = {{"kind", "TrainingJob"},
                      {"apiVersion", "kubebrain.io/v1"},
                      {"metadata", {{"name", "a"}}},
                      {"spec",
                       {{"image", "registry/a:latest"},
                        {"command", {"/bin/bash", "-c"}},
                        {"args", {"set -e\necho $RANK\n"}},
                        {"env", {{{"value", "8"}, {"name", "A"}}}},
                        {"limits", {{"nvidia.com/gpu", 8}}}}}};
  EXPECT_EQ(yaml_text(value), R"(apiVersion: kubebrain.io/v1
kind: TrainingJob
metadata:
  name: a
spec:
  image: registry/a:latest
  command: [/bin/bash, -c]
  args:
    - |
      set -e
      echo $RANK
  env:
    - {name: A, value: "8"}
  limits:
    nvidia.com/gpu: 8
)");
}

}  // namespace
}  // namespace tj
