// Where the seconds of a run go, over all its attempts: each belongs to one kind, and together they
// are the time from its start to now. Seen from rank 0.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "contract/result.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

enum class Spent {
  compute,
  communication,  // the training waits for other ranks
  data,           // it waits for the next batch
  save,           // it waits for a checkpoint
  eval,
  start,  // from the start of the process until its first step is done, and its end
  lost,   // work that a restart threw away, and the time until it was there
};
inline constexpr int kSpentKinds = 7;
const char* to_string(Spent kind);

/// Seconds by kind.
struct Spending {
  std::array<double, kSpentKinds> seconds{};
  double& operator[](Spent kind) { return seconds[static_cast<std::size_t>(kind)]; }
  double operator[](Spent kind) const { return seconds[static_cast<std::size_t>(kind)]; }
  double total() const;
  bool operator==(const Spending&) const = default;
};

/// What an attempt leaves for the next one: ledger.json.
struct LedgerRecord {
  int attempt = 0;
  double updated_unix_seconds = 0;
  bool is_finished = false;  // all steps are done: what comes later is another matter
  Spending spending;         // of all attempts so far
  std::map<std::int64_t, Spending>
      marks;  // by step: what was spent when it was saved, or begun from
  bool operator==(const LedgerRecord&) const = default;
};
inline constexpr std::size_t kLedgerMarksMax = 64;  // the newest

std::string ledger_json(const LedgerRecord& record);
/// Fails with Code::invalid where the text is none of ledger_json().
Result<LedgerRecord> ledger_from(std::string_view text);

/// What the run has spent when an attempt that goes on from `step` begins at `unix_seconds`: the
/// steps after the mark of this one are lost, and so is the time since.
Spending spent_before(const LedgerRecord& previous, std::int64_t step, double unix_seconds);

/// What this process has spent, `before_seconds` of it before its clock began.
Spending spending_of(const Seen& seen, double before_seconds);
Spending operator+(const Spending& one, const Spending& other);

/// goodput 91.2 % of 63.5 s | compute 57.9 s ######### | start 3.1 s # | lost 2.5 s
std::string ledger_line(const Spending& spending);

}  // namespace tj::trainer
