#include "trainer/checkpoint/claim.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/temporary_folder.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/retention.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

OutClaim attempt(int number) { return {.job_uid = "uid-1", .attempt = number}; }

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(OutClaim, the_later_attempt_has_the_folder) {
  const TemporaryFolder out;
  ASSERT_TRUE(claim_out(out.path(), attempt(1)));
  EXPECT_TRUE(check_claim(out.path(), attempt(1)));
  ASSERT_TRUE(claim_out(out.path(), attempt(2)));
  EXPECT_TRUE(check_claim(out.path(), attempt(2)));
  const std::string said = "--out " + out.path().string() +
                           ": attempt 2 of the job has begun in it; this process is of attempt 1, "
                           "which is over";
  for (const auto& refused :
       {check_claim(out.path(), attempt(1)), claim_out(out.path(), attempt(1))}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::conflict);
    EXPECT_EQ(describe(refused.error()), said);
  }
  EXPECT_EQ(text_of(out.path() / kClaimFile), "{\"job\":\"uid-1\",\"attempt\":2}\n");
}

TEST(OutClaim, the_job_that_begins_later_has_the_folder) {
  const TemporaryFolder out;
  ASSERT_TRUE(claim_out(out.path(), attempt(3)));
  const OutClaim next{.job_uid = "uid-2", .attempt = 0};
  ASSERT_TRUE(claim_out(out.path(), next));
  EXPECT_TRUE(check_claim(out.path(), next));
  EXPECT_EQ(describe(check_claim(out.path(), attempt(3)).error()),
            "--out " + out.path().string() +
                ": the job with uid uid-2 has begun in it; this process is of attempt 3 of "
                "another, uid-1");
}

TEST(OutClaim, without_a_job_nothing_is_claimed_and_nothing_refused) {
  const TemporaryFolder out;
  EXPECT_TRUE(claim_out(out.path(), {}));
  EXPECT_TRUE(fs::is_empty(out.path()));
  ASSERT_TRUE(claim_out(out.path(), attempt(1)));
  EXPECT_TRUE(claim_out(out.path(), {}));
  EXPECT_TRUE(check_claim(out.path(), {}));
}

TEST(OutClaim, one_that_got_lost_is_put_back) {
  const TemporaryFolder out;
  ASSERT_TRUE(claim_out(out.path(), attempt(2)));
  fs::remove(out.path() / kClaimFile);
  EXPECT_TRUE(check_claim(out.path(), attempt(2)));
  // An earlier attempt that read the folder before we began may write after us.
  out.write(kClaimFile, "{\"job\":\"uid-1\",\"attempt\":1}\n");
  EXPECT_TRUE(check_claim(out.path(), attempt(2)));
  EXPECT_FALSE(check_claim(out.path(), attempt(1)));
}

TEST(OutClaim, one_that_nobody_can_read_is_taken_over_at_the_start_and_trusted_never) {
  const TemporaryFolder out;
  for (const char* const text : {"", "{", "[]", "{\"job\":1,\"attempt\":0}", "{\"job\":\"x\"}"}) {
    out.write(kClaimFile, text);
    EXPECT_FALSE(check_claim(out.path(), attempt(1))) << text;
    EXPECT_TRUE(claim_out(out.path(), attempt(1))) << text;
    EXPECT_TRUE(check_claim(out.path(), attempt(1))) << text;
  }
}

TEST(OutClaim, who_has_lost_it_commits_nothing_and_removes_nothing) {
  const TemporaryFolder out;
  ASSERT_TRUE(claim_out(out.path(), attempt(1)));
  for (const int step : {10, 20}) out.write(checkpoint_name(step) + "/manifest.json", "{}");
  ASSERT_TRUE(claim_out(out.path(), attempt(2)));
  {
    auto draft = CheckpointDraft::begin(out.path(), 20);
    ASSERT_TRUE(draft);
    const auto committed = draft->commit({.step = 20}, attempt(1));
    ASSERT_FALSE(committed);
    EXPECT_EQ(committed.error().code, Code::conflict);
  }
  OwnCheckpoints own(1);
  own.add(20);
  prune_checkpoints(out.path(), {.keep = 1}, own.names(), attempt(1));
  EXPECT_EQ(checkpoint_names(out.path()), (std::vector<std::string>{"step-000020", "step-000010"}));
  EXPECT_EQ(text_of(out.path() / "step-000020/manifest.json"), "{}");
  prune_checkpoints(out.path(), {.keep = 1}, own.names(), attempt(2));
  EXPECT_EQ(checkpoint_names(out.path()), (std::vector<std::string>{"step-000020"}));
}

}  // namespace
}  // namespace tj::trainer
