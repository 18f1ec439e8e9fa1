#include "operator/api/read.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "operator/api/pod_json.h"

namespace tj {
namespace {
using namespace read;

TEST(Read, takes_what_is_of_another_type_as_absent) {
  for (const char* text : {"null", "5", "2.5", "true", "\"text\"", "[1]", "{}", R"({"x": null})",
                           R"({"x": [[]]})", R"({"x": {"x": 1}})"}) {
    const json parent = json::parse(text);
    EXPECT_EQ(string_at(parent, "x"), "") << text;
    EXPECT_FALSE(maybe_number_at(parent, "x")) << text;
    EXPECT_FALSE(maybe_real_at(parent, "x")) << text;
    EXPECT_TRUE(bool_at(parent, "x", true)) << text;
    EXPECT_FALSE(time_at(parent, "x")) << text;
    EXPECT_EQ(string_at(object_at(parent, "y"), "x"), "") << text;
    EXPECT_TRUE(array_at(object_at(parent, "y"), "x").empty()) << text;
  }
}

TEST(Read, a_number_that_does_not_fit_is_absent) {
  const json parent = {{"max", INT64_MAX}, {"above", std::uint64_t{1} << 63}, {"wide", 1LL << 32},
                       {"real", 3.0},      {"low", INT32_MIN - 1LL},          {"fits", -7}};
  EXPECT_EQ(maybe_number_at<long long>(parent, "max"), INT64_MAX);
  EXPECT_FALSE(maybe_number_at<long long>(parent, "above"));
  EXPECT_FALSE(maybe_number_at(parent, "wide"));
  EXPECT_FALSE(maybe_number_at(parent, "low"));
  EXPECT_FALSE(maybe_number_at(parent, "real"));
  EXPECT_EQ(number_at(parent, "fits"), -7);
  EXPECT_EQ(number_at(parent, "wide", 4), 4);
}

TEST(Read, a_text_of_any_bytes_and_depth_is_read_or_refused) {
  EXPECT_TRUE(parse("").is_discarded());
  EXPECT_TRUE(parse("{").is_discarded());
  EXPECT_TRUE(parse("[1e400]").is_discarded()) << "no double holds it";
  EXPECT_EQ(parse("[9223372036854775808]")[0], std::uint64_t{1} << 63);
  EXPECT_EQ(parse("{\"a\": \"r\xe9s\xff\"}")["a"], "r\xef\xbf\xbds\xef\xbf\xbd");
  EXPECT_TRUE(parse("\xff").is_discarded());
}

TEST(Read, what_is_nested_too_deep_is_left_out) {
  const int levels = 100'000;
  const std::string deep = std::string(levels, '[') + std::string(levels, ']');
  const json read = parse("{\"deep\": " + deep + ", \"brackets\": \"[[{\\\"[\", \"kept\": [1]}");
  EXPECT_EQ(read["kept"], json::array({1}));
  EXPECT_EQ(string_at(read, "brackets"), "[[{\"[");
  int found = 0;
  for (const json* at = &read["deep"]; at->is_array(); at = &at->front()) {
    ++found;
    if (at->empty()) break;
  }
  EXPECT_EQ(found, kLevelsMax - 1);
  EXPECT_NO_THROW((void)read.dump());
  const std::string unclosed(levels, '{');
  EXPECT_TRUE(parse(unclosed).is_discarded());
}

TEST(PodJson, the_first_container_is_the_worker_whatever_stands_there) {
  const json pod = {{"spec", {{"containers", {{{"name", "main"}}, {{"name", "sidecar"}}}}}}};
  EXPECT_EQ(string_at(main_container(pod), "name"), "main");
  for (const char* text : {"5", "{}", R"({"spec": []})", R"({"spec": {"containers": {}}})",
                           R"({"spec": {"containers": []}})", R"({"spec": {"containers": ["x"]}})"})
    EXPECT_TRUE(main_container(json::parse(text)).empty()) << text;
}

TEST(PodJson, a_quantity_is_a_number_or_a_text) {
  const auto gpus = [](const char* limits) {
    return quantity_of(json::parse(limits), "limits", "nvidia.com/gpu");
  };
  EXPECT_EQ(gpus(R"({"resources": {"limits": {"nvidia.com/gpu": 8}}})"), "8");
  EXPECT_EQ(gpus(R"({"resources": {"limits": {"nvidia.com/gpu": "8"}}})"), "8");
  for (const char* text :
       {"[]", R"({"resources": 5})", R"({"resources": {"limits": ["nvidia.com/gpu"]}})",
        R"({"resources": {"limits": {"nvidia.com/gpu": {"a": 1}}}})"})
    EXPECT_EQ(gpus(text), "") << text;
}

TEST(Read, leaves_out_managed_fields_where_they_stand_and_nowhere_else) {
  const auto without = [](const std::string& text) { return without_managed_fields(text, 2); };
  EXPECT_EQ(without(R"({"metadata":{"managedFields":[{"f:a":"]}"},{}],"name":"a"}})"),
            R"({"metadata":{"name":"a"}})");
  EXPECT_EQ(without(R"({"metadata":{"name":"a","managedFields":[]},"spec":{}})"),
            R"({"metadata":{"name":"a"},"spec":{}})");
  EXPECT_EQ(without(R"({"metadata":{"managedFields":[]}})"), R"({"metadata":{}})");
  EXPECT_EQ(without_managed_fields(R"({"object":{"metadata":{"managedFields":[1]}}})", 3),
            R"({"object":{"metadata":{}}})");
  for (const char* kept :
       {R"({"spec":{"template":{"metadata":{"managedFields":[1]}}}})", R"({"managedFields":[1]})",
        R"({"metadata":{"managedFields":"[1]"}})", R"({"metadata":{"managedFields":[1)",
        R"({"metadata":{"name":"\",\"managedFields\":[1]"}})", R"("managedFields":[1],)", ""}) {
    EXPECT_EQ(without(kept), kept);
  }
}

}  // namespace
}  // namespace tj
