// The list+watch state machine as short stories: what the server says, what the watcher wants next.
#include "operator/kube/watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace tj {
namespace {
using std::chrono::milliseconds;

std::string object(const std::string& name, int version) {
  return R"({"metadata":{"name":")" + name + R"(","resourceVersion":")" + std::to_string(version) +
         "\"}}";
}
std::string line(const std::string& type, const std::string& name, int version) {
  return R"({"type":")" + type + R"(","object":)" + object(name, version) + "}";
}
std::string bookmark(int version) {
  return R"({"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":")" +
         std::to_string(version) + R"("}}})";
}
std::string error_line(int code) {
  return R"({"type":"ERROR","object":{"kind":"Status","message":"because","code":)" +
         std::to_string(code) + "}}";
}
std::string page(const std::vector<std::string>& objects, int version,
                 const std::string& token = "") {
  std::string items;
  for (const std::string& each : objects) items += (items.empty() ? "" : ",") + each;
  return R"({"kind":"PodList","metadata":{"resourceVersion":")" + std::to_string(version) +
         R"(","continue":")" + token + R"("},"items":[)" + items + "]}";
}
Error failure(Code code, std::optional<milliseconds> retry_after = {}) {
  return Error{code, "it failed", "server", retry_after};
}

/// One line for a step: "replace 7: a b | relist gone | watch 7".
std::string text(const WatchStep& step) {
  std::ostringstream out;
  const auto name = [](const std::string& json_text) {
    const auto begin = json_text.find("\"name\":\"") + 8;
    return json_text.substr(begin, json_text.find('"', begin) - begin);
  };
  for (const WatchDelta& delta : step.deltas) {
    if (const auto* all = std::get_if<Replace>(&delta)) {
      out << (all->continues ? "and" : "replace");
      if (!all->resource_version.empty()) out << ' ' << all->resource_version;
      out << ':';
      for (const std::string& each : all->objects) out << ' ' << name(each);
      out << " | ";
    }
    if (const auto* one = std::get_if<Upsert>(&delta))
      out << "upsert " << name(one->object->dump()) << " | ";
    if (const auto* one = std::get_if<Erase>(&delta))
      out << "erase " << name(one->object->dump()) << " | ";
  }
  if (!step.relist_reason.empty()) out << "relist " << step.relist_reason << " | ";
  if (!step.command) out << "read on";
  if (step.command) {
    if (const auto* list = std::get_if<StartList>(&*step.command)) {
      out << "list" << (list->continue_token.empty() ? "" : " from " + list->continue_token);
    }
    if (const auto* watch = std::get_if<StartWatch>(&*step.command)) {
      out << "watch " << watch->resource_version;
    }
    if (std::holds_alternative<WaitThenStep>(*step.command)) out << "wait";
  }
  return out.str();
}

milliseconds delay(const WatchStep& step) { return std::get<WaitThenStep>(*step.command).delay; }

/// A watcher that has listed `a` at version 5 and watches.
Watcher watching() {
  Watcher watcher(1);
  watcher.start();
  watcher.on_list(page({object("a", 3)}, 5));
  return watcher;
}

TEST(Watcher, lists_pages_then_watches_from_the_list_version) {
  Watcher watcher;
  EXPECT_EQ(text(watcher.start()), "list");
  EXPECT_EQ(text(watcher.on_list(page({object("a", 1), object("b", 2)}, 7, "t1"))),
            "replace: a b | list from t1");
  EXPECT_FALSE(watcher.synced());
  EXPECT_EQ(text(watcher.on_list(page({object("c", 3)}, 7))), "and 7: c | watch 7");
  EXPECT_TRUE(watcher.synced());
}

TEST(Watcher, an_empty_list_is_a_list) {
  for (const char* items : {"[]", "null"}) {
    Watcher watcher;
    watcher.start();
    const auto step = watcher.on_list(
        std::string(R"({"metadata":{"resourceVersion":"9"},"items":)") + items + "}");
    EXPECT_EQ(text(step), "replace 9: | watch 9") << items;
  }
}

TEST(Watcher, events_change_the_cache_and_move_the_version) {
  Watcher watcher = watching();
  EXPECT_EQ(text(watcher.on_line(line("ADDED", "b", 6))), "upsert b | read on");
  EXPECT_EQ(text(watcher.on_line(line("MODIFIED", "b", 8))), "upsert b | read on");
  EXPECT_EQ(text(watcher.on_line(line("DELETED", "a", 9))), "erase a | read on");
  EXPECT_EQ(watcher.resource_version(), "9");
}

TEST(Watcher, a_bookmark_moves_only_the_version) {
  Watcher watcher = watching();
  EXPECT_EQ(text(watcher.on_line(bookmark(40))), "read on");
  EXPECT_EQ(text(watcher.on_watch_end({})), "watch 40");
}

TEST(Watcher, a_line_older_than_the_last_lists_again) {
  for (const std::string& old : {line("ADDED", "b", 4), bookmark(4)}) {
    Watcher watcher = watching();
    EXPECT_EQ(text(watcher.on_line(old)), "relist went_back | wait") << old;
  }
}

TEST(Watcher, an_orderly_end_watches_on_at_once_from_the_last_version) {
  Watcher watcher = watching();
  EXPECT_EQ(text(watcher.on_watch_end({})), "watch 5");
}

TEST(Watcher, streams_that_end_without_a_line_do_not_spin) {
  Watcher watcher = watching();
  EXPECT_EQ(text(watcher.on_watch_end({})), "watch 5");
  const auto second = watcher.on_watch_end({});
  ASSERT_EQ(text(second), "wait");
  EXPECT_EQ(delay(second), Watcher::kQuietWait);
  EXPECT_EQ(text(watcher.on_waited()), "watch 5");
}

TEST(Watcher, http_410_lists_again_at_once) {
  Watcher watcher = watching();
  EXPECT_EQ(text(watcher.on_watch_end(failure(Code::gone))), "relist gone | list");
  EXPECT_TRUE(watcher.synced()) << "the old cache is believed until the new list is complete";
  EXPECT_EQ(text(watcher.on_list(page({object("b", 9)}, 12))), "replace 12: b | watch 12");
}

TEST(Watcher, a_410_inside_the_stream_is_a_410) {
  Watcher watcher = watching();
  EXPECT_EQ(text(watcher.on_line(error_line(410))), "relist gone | list");
}

TEST(Watcher, a_410_after_each_list_backs_off) {
  Watcher watcher = watching();
  EXPECT_EQ(text(watcher.on_watch_end(failure(Code::gone))), "relist gone | list");
  watcher.on_list(page({}, 12));
  EXPECT_EQ(text(watcher.on_watch_end(failure(Code::gone))), "relist gone | wait");
  EXPECT_EQ(text(watcher.on_waited()), "list");
}

TEST(Watcher, a_410_amid_the_pages_starts_the_list_over) {
  Watcher watcher;
  watcher.start();
  watcher.on_list(page({object("a", 1)}, 7, "t1"));
  EXPECT_EQ(text(watcher.on_list(failure(Code::gone))), "relist gone | list");
  EXPECT_EQ(text(watcher.on_list(page({object("b", 8)}, 9))), "replace 9: b | watch 9")
      << "nothing of the first try is left";
}

TEST(Watcher, a_failed_page_starts_the_list_over_after_a_wait) {
  Watcher watcher;
  watcher.start();
  watcher.on_list(page({object("a", 1)}, 7, "t1"));
  EXPECT_EQ(text(watcher.on_list(failure(Code::timeout))), "relist error | wait");
  EXPECT_EQ(text(watcher.on_waited()), "list");
  EXPECT_EQ(text(watcher.on_list(page({object("b", 8)}, 9))), "replace 9: b | watch 9");
}

TEST(Watcher, pages_in_a_circle_end) {
  Watcher watcher;
  watcher.start();
  WatchStep step;
  for (int i = 0; i <= Watcher::kPagesMax; ++i) step = watcher.on_list(page({}, 7, "same"));
  EXPECT_EQ(text(step), "relist malformed | wait");
}

TEST(Watcher, a_list_that_is_no_list_is_asked_for_again) {
  for (const char* body : {"", "[]", "<html>", R"({"items":[]})", R"({"metadata":{}})"}) {
    Watcher watcher;
    watcher.start();
    EXPECT_EQ(text(watcher.on_list(std::string(body))), "relist malformed | wait") << body;
    EXPECT_FALSE(watcher.synced());
  }
}

TEST(Watcher, a_line_that_is_no_event_lists_again) {
  for (const char* bad :
       {"", "{", R"({"type":"ADDED"})", R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})",
        R"({"type":"NEWS","object":{"metadata":{"resourceVersion":"6"}}})",
        R"({"object":{"metadata":{"resourceVersion":"6"}}})", R"({"type":"ADDED","object":[]})"}) {
    Watcher watcher = watching();
    EXPECT_EQ(text(watcher.on_line(bad)), "relist malformed | wait") << bad;
    EXPECT_EQ(text(watcher.on_waited()), "list");
  }
}

TEST(Watcher, a_broken_stream_resumes_from_the_last_version_after_a_wait) {
  Watcher watcher = watching();
  watcher.on_line(line("ADDED", "b", 6));
  EXPECT_EQ(text(watcher.on_watch_end(failure(Code::unavailable))), "wait");
  EXPECT_EQ(text(watcher.on_waited()), "watch 6");
}

TEST(Watcher, other_errors_inside_the_stream_resume) {
  for (const int code : {429, 500, 504, 0}) {
    Watcher watcher = watching();
    EXPECT_EQ(text(watcher.on_line(error_line(code))), "wait") << code;
    EXPECT_EQ(text(watcher.on_waited()), "watch 5");
  }
}

TEST(Watcher, streams_that_only_fail_end_in_a_new_list) {
  Watcher watcher = watching();
  for (int i = 0; i < Watcher::kResumesMax; ++i) {
    EXPECT_EQ(text(watcher.on_watch_end(failure(Code::internal))), "wait");
    EXPECT_EQ(text(watcher.on_waited()), "watch 5");
  }
  EXPECT_EQ(text(watcher.on_watch_end(failure(Code::internal))), "relist error | wait");
  EXPECT_EQ(text(watcher.on_waited()), "list");
}

TEST(Watcher, backoff_grows_to_its_bound_with_jitter_and_a_line_resets_it) {
  Watcher watcher;
  watcher.start();
  milliseconds bound = Watcher::kBackoffMin;
  for (int i = 0; i < 20; ++i) {
    const milliseconds waited = delay(watcher.on_list(failure(Code::unavailable)));
    EXPECT_LE(waited, bound);
    EXPECT_GE(waited, bound / 2);
    bound = std::min(bound * 2, Watcher::kBackoffMax);
    watcher.on_waited();
  }
  watcher.on_list(page({}, 5));
  watcher.on_line(bookmark(6));
  EXPECT_LE(delay(watcher.on_watch_end(failure(Code::unavailable))), Watcher::kBackoffMin);
}

TEST(Watcher, two_seeds_wait_differently) {
  Watcher one(1);
  Watcher two(2);
  one.start();
  two.start();
  std::vector<milliseconds> of_one;
  std::vector<milliseconds> of_two;
  for (int i = 0; i < 8; ++i) {
    of_one.push_back(delay(one.on_list(failure(Code::timeout))));
    of_two.push_back(delay(two.on_list(failure(Code::timeout))));
    one.on_waited();
    two.on_waited();
  }
  EXPECT_NE(of_one, of_two);
}

TEST(Watcher, a_server_that_asks_for_a_wait_gets_it_within_a_bound) {
  Watcher watcher = watching();
  const auto wished = failure(Code::unavailable, milliseconds(7'000));
  EXPECT_EQ(delay(watcher.on_watch_end(wished)), milliseconds(7'000));
  watcher.on_waited();
  const auto absurd = failure(Code::unavailable, std::chrono::hours(100));
  EXPECT_EQ(delay(watcher.on_watch_end(absurd)), Watcher::kRetryAfterMax);
}

TEST(Watcher, what_comes_late_from_a_dropped_stream_is_ignored) {
  Watcher watcher = watching();
  watcher.on_line(error_line(410));
  EXPECT_EQ(text(watcher.on_line(line("ADDED", "b", 6))), "read on");
  EXPECT_EQ(text(watcher.on_watch_end({})), "read on");
  EXPECT_EQ(watcher.resource_version(), "5");
}

TEST(Watcher, objects_pass_untouched_but_for_managed_fields) {
  const std::string item =
      R"({"metadata":{"labels":{"managedFields":"kept"},"managedFields":[{"manager":"k"}],)"
      R"("name":"a","resourceVersion":"3"},"spec":{"big":9007199254740993,"managedFields":1,)"
      R"("none":null,"quantity":"100m"}})";
  const std::string kept =
      R"({"metadata":{"labels":{"managedFields":"kept"},"name":"a","resourceVersion":"3"},)"
      R"("spec":{"big":9007199254740993,"managedFields":1,"none":null,"quantity":"100m"}})";
  Watcher watcher;
  watcher.start();
  const WatchStep listed = watcher.on_list(page({item}, 3));
  EXPECT_THAT(listed.deltas, testing::ElementsAre(WatchDelta(Replace{{kept}, "3"})));
  const WatchStep changed = watcher.on_line(R"({"type":"ADDED","object":)" + item + "}");
  EXPECT_THAT(changed.deltas,
              testing::ElementsAre(WatchDelta(
                  Upsert{std::make_shared<const nlohmann::json>(nlohmann::json::parse(kept))})));
}

}  // namespace
}  // namespace tj
