// The cache must read its own writes, and must never bring back what the stream has taken away.
#include "operator/kube/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tj {
namespace {
using testing::ElementsAre;
using testing::IsEmpty;

Service service(const std::string& name, const std::string& version,
                const std::string& uid = "u1") {
  Service object;
  object.meta = {.name = name, .ns = "ns", .uid = uid, .resource_version = version};
  return object;
}
std::vector<Service> replace(Cache<Service>& cache, const std::vector<Service>& listed,
                             const std::string& list_version) {
  cache.begin_list();
  for (const Service& each : listed) cache.add_listed(each);
  return cache.end_list(list_version);
}
std::string version_in(const Cache<Service>& cache, const std::string& name) {
  const Service* found = cache.find({"ns", name});
  return found == nullptr ? "absent" : found->meta.resource_version;
}

TEST(Cache, replace_tells_what_came_changed_and_went) {
  Cache<Service> cache;
  const auto first = replace(cache, {service("a", "1"), service("b", "2"), service("c", "3")}, "5");
  EXPECT_EQ(first.size(), 3U);
  const auto changed =
      replace(cache, {service("a", "1"), service("b", "7"), service("d", "8")}, "9");
  EXPECT_THAT(changed, ElementsAre(service("b", "2"), service("c", "3"), service("b", "7"),
                                   service("d", "8")));
  EXPECT_EQ(cache.objects().size(), 3U);
}

TEST(Cache, an_equal_list_changes_nothing) {
  Cache<Service> cache;
  replace(cache, {service("a", "1")}, "5");
  EXPECT_THAT(replace(cache, {service("a", "1")}, "6"), IsEmpty());
}

TEST(Cache, a_list_that_breaks_off_leaves_nothing) {
  Cache<Service> cache;
  replace(cache, {service("a", "1")}, "5");
  cache.begin_list();
  cache.add_listed(service("b", "6"));
  EXPECT_EQ(cache.objects().size(), 1U);
  replace(cache, {service("a", "1")}, "7");
  EXPECT_EQ(version_in(cache, "b"), "absent");
}

TEST(Cache, our_own_write_is_seen_before_the_stream_brings_it) {
  Cache<Service> cache;
  replace(cache, {}, "5");
  EXPECT_TRUE(cache.wrote(service("a", "8")));
  EXPECT_EQ(version_in(cache, "a"), "8");
  EXPECT_FALSE(cache.upsert(service("a", "8"))) << "the stream brings what is known";
}

TEST(Cache, an_answer_that_comes_after_the_deletion_does_not_bring_it_back) {
  Cache<Service> cache;
  replace(cache, {}, "5");
  cache.upsert(service("a", "8"));
  EXPECT_TRUE(cache.erase(service("a", "9")));
  EXPECT_FALSE(cache.wrote(service("a", "8")));
  EXPECT_EQ(version_in(cache, "a"), "absent");
}

TEST(Cache, a_list_older_than_our_write_does_not_undo_it) {
  Cache<Service> cache;
  replace(cache, {service("old", "3")}, "5");
  cache.wrote(service("new", "8"));
  cache.wrote(service("old", "9"));
  EXPECT_THAT(replace(cache, {service("old", "3")}, "6"), IsEmpty());
  EXPECT_EQ(version_in(cache, "new"), "8");
  EXPECT_EQ(version_in(cache, "old"), "9");
  EXPECT_THAT(replace(cache, {}, "10"), ElementsAre(service("new", "8"), service("old", "9")));
}

TEST(Cache, a_list_from_before_what_was_seen_replaces_everything) {
  Cache<Service> cache;
  replace(cache, {service("a", "7"), service("b", "8")}, "9");
  EXPECT_THAT(replace(cache, {service("a", "3")}, "5"),
              ElementsAre(service("a", "7"), service("b", "8"), service("a", "3")))
      << "an etcd was restored";
  EXPECT_EQ(version_in(cache, "a"), "3");
  EXPECT_EQ(version_in(cache, "b"), "absent");
  EXPECT_TRUE(cache.upsert(service("a", "6")));
  EXPECT_TRUE(cache.wrote(service("c", "7")));
}

TEST(Cache, a_deletion_takes_only_the_object_it_names) {
  Cache<Service> cache;
  cache.wrote(service("a", "8", "second"));
  EXPECT_FALSE(cache.erase(service("a", "7", "first")));
  EXPECT_EQ(version_in(cache, "a"), "8");
}

TEST(Cache, older_states_from_the_stream_are_ignored) {
  Cache<Service> cache;
  cache.wrote(service("a", "8"));
  EXPECT_FALSE(cache.upsert(service("a", "7")));
  EXPECT_TRUE(cache.upsert(service("a", "9")));
}

TEST(Cache, versions_without_an_order_follow_the_stream) {
  Cache<Service> cache;
  replace(cache, {service("a", "x1")}, "x2");
  EXPECT_TRUE(cache.upsert(service("a", "x0")));
  EXPECT_FALSE(cache.wrote(service("a", "x9")));
  EXPECT_EQ(version_in(cache, "a"), "x0");
}

TEST(Cache, version_number_reads_numbers_and_nothing_else) {
  EXPECT_EQ(version_number("18446744073709551615"), 18446744073709551615U);
  for (const char* text : {"", "12a", "-1", " 1", "18446744073709551616"}) {
    EXPECT_EQ(version_number(text), 0U) << text;
  }
}

}  // namespace
}  // namespace tj
