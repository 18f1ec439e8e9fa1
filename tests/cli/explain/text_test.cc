// How causes are told, of what nothing is seen, and the document's table of them.
#include <fstream>
#include <regex>
#include <set>

#include "tests/cli/explain/explain_site.h"
#include "tests/places.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Explain, a_job_that_runs_has_no_cause) {
  Site site;
  site.start_all();
  EXPECT_THAT(site.causes(), testing::IsEmpty());
  EXPECT_THAT(to_text(site.evidence(), {}), HasSubstr("It runs, and nothing is in its way."));
}

// Words and forms.

TEST(ExplainText, times_are_relative_and_absolute_and_what_to_do_names_the_job) {
  Site site(1, with_policy({{"maxRestarts", 0}}));
  site.start_all();
  site.end("a-worker-0", 3, "bye");
  site.pass(5min);
  const std::string text = to_text(site.evidence(), site.findings());
  EXPECT_THAT(
      text,
      HasSubstr("job default/a: Failed (WorkerFailed): worker 0 on node n1 failed first: exit code "
                "3: bye\n\n1. ProgramFailed: pod a-worker-0 of attempt 0, 5 min ago (2026-"));
  EXPECT_THAT(text, HasSubstr("\n   What to do: tj logs a --first-failure shows the last lines of "
                              "that worker\n2. NotRetried: "));
  const json object = to_json(site.evidence(), site.findings());
  EXPECT_EQ(object["findings"][0]["cause"], "ProgramFailed");
  EXPECT_TRUE(parse_time(object["findings"][0]["time"].get<std::string>()));
  EXPECT_EQ(object["phase"], "Failed");
}

TEST(ExplainText, ages_have_a_unit_that_suits) {
  const TimePoint now = *parse_time("2026-11-21T12:00:00Z");
  EXPECT_EQ(age_text(now - 5s, now), "5 s ago (2026-11-21T11:59:55Z)");
  EXPECT_EQ(age_text(now - 3min, now), "3 min ago (2026-11-21T11:57:00Z)");
  EXPECT_EQ(age_text(now - 5h, now), "5 h ago (2026-11-21T07:00:00Z)");
  EXPECT_EQ(age_text(now - 72h, now), "3 days ago (2026-11-18T12:00:00Z)");
  EXPECT_EQ(age_text(now + 30s, now), "in 30 s (2026-11-21T12:00:30Z)");
}

TEST(ExplainText, what_is_no_object_is_not_seen) {
  Site site(1);
  Gathered all{.job = site.job("a"), .pods = {}, .events = {}, .nodes = {}};
  for (const json& odd :
       {json(nullptr), json(7), json("x"), json::array({1}),
        json{{"metadata", 1},
             {"status", {{"conditions", 3}, {"initContainerStatuses", {1, nullptr}}}}}}) {
    all.pods.push_back(odd);
    all.events.push_back(odd);
    all.nodes.push_back(odd);
  }
  EXPECT_NO_THROW((void)explain(*read_evidence(all, site.now())));
  EXPECT_FALSE(read_evidence({}, site.now()).ok());
}

/// The rows of the tables of causes in the document: the first cell of each, as `Cause`.
std::set<std::string> causes_of_document() {
  std::ifstream file(source_dir() + "/docs/logs-and-explain.md");
  const std::regex row("^\\| `([A-Z][A-Za-z]+)` \\|.*");
  std::set<std::string> causes;
  std::smatch found;
  for (std::string line; std::getline(file, line);) {
    if (std::regex_match(line, found, row)) causes.insert(found[1]);
  }
  return causes;
}

TEST(ExplainDocument, has_a_row_for_each_rule_and_no_other) {
  std::set<std::string> of_rules;
  for (const Rule& rule : all_rules()) {
    EXPECT_TRUE(of_rules.insert(rule.cause).second) << rule.cause << " twice";
    EXPECT_STRNE(rule.remedy, "");
  }
  EXPECT_GE(of_rules.size(), 20U);
  EXPECT_EQ(causes_of_document(), of_rules);
}

}  // namespace
}  // namespace tj
