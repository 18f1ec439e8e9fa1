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

}  // namespace
}  // namespace tj
