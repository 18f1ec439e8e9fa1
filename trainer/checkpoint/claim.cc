#include "trainer/checkpoint/claim.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "trainer/process/durable_file.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
constexpr std::int64_t kClaimBytesMax = 4096;

Result<std::optional<OutClaim>> read_claim(const fs::path& out) {
  const auto text = read_small_file(out / kClaimFile, kClaimBytesMax);
  if (!text && text.error().code == Code::not_found) return std::optional<OutClaim>();
  if (!text) return text.error();
  const auto document = nlohmann::json::parse(*text, nullptr, false);
  try {
    return std::optional(OutClaim{.job_uid = document.at("job").get<std::string>(),
                                  .attempt = document.at("attempt").get<int>()});
  } catch (const nlohmann::json::exception&) {
    return Error{.code = Code::invalid,
                 .message = "does not say which attempt has begun",
                 .subject = (out / kClaimFile).string()};
  }
}

/// Under another name first: it is read whole or not at all.
Result<void> write_claim(const fs::path& out, const OutClaim& claim) {
  const nlohmann::ordered_json document = {{"job", claim.job_uid}, {"attempt", claim.attempt}};
  const std::string self = std::to_string(claim.attempt) + "-" + std::to_string(::getpid());
  const fs::path draft = out / (".draft-attempt-" + self);
  if (const auto written = write_durably(draft, document.dump() + "\n"); !written)
    return written.error();
  std::error_code failure;
  fs::rename(draft, out / kClaimFile, failure);
  if (!failure) return sync_folder(out);
  return Error{.code = Code::unavailable,
               .message = "can't get its name: " + failure.message(),
               .subject = draft.string()};
}

Error superseded(const fs::path& out, const OutClaim& mine, const OutClaim& found) {
  const std::string self = "this process is of attempt " + std::to_string(mine.attempt);
  return {.code = Code::conflict,
          .message = found.job_uid == mine.job_uid
                         ? "attempt " + std::to_string(found.attempt) +
                               " of the job has begun in it; " + self + ", which is over"
                         : "the job with uid " + found.job_uid + " has begun in it; " + self +
                               " of another, " + mine.job_uid,
          .subject = "--out " + out.string()};
}

bool is_later(const OutClaim& found, const OutClaim& mine) {
  return found.job_uid == mine.job_uid && found.attempt > mine.attempt;
}

}  // namespace

Result<void> claim_out(const fs::path& out, const OutClaim& claim) {
  if (claim.job_uid.empty()) return {};
  const auto found = read_claim(out);
  if (!found && found.error().code != Code::invalid) return found.error();
  if (found && *found && is_later(**found, claim)) return superseded(out, claim, **found);
  return write_claim(out, claim);
}

Result<void> check_claim(const fs::path& out, const OutClaim& claim) {
  if (claim.job_uid.empty()) return {};
  const auto found = read_claim(out);
  if (!found) return found.error();
  if (*found == claim) return {};
  const bool is_other_job = *found && (*found)->job_uid != claim.job_uid;
  if (is_other_job || (*found && is_later(**found, claim))) return superseded(out, claim, **found);
  // Removed by somebody, or overwritten by an earlier attempt that began at the same time.
  return write_claim(out, claim);
}

}  // namespace tj::trainer
