#include "trainer/report/ledger_file.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>

#include "trainer/checkpoint/folder.h"

namespace tj::trainer {
namespace {
constexpr std::size_t kLedgerBytesMax = 256 * 1024;
}

LedgerFile::LedgerFile(std::filesystem::path path, const PhaseClock& clock, double before_seconds)
    : path_(std::move(path)), clock_(clock), before_seconds_(before_seconds) {}

Spending LedgerFile::now() const {
  return record_.spending + spending_of(clock_.seen(), before_seconds_);
}

void LedgerFile::begin(int attempt, bool resumes, std::int64_t step) {
  LedgerRecord record;
  if (resumes) {
    const auto text = read_small_file(path_, kLedgerBytesMax);
    const auto previous = text ? ledger_from(*text) : Result<LedgerRecord>(text.error());
    const double own_seconds = spending_of(clock_.seen(), before_seconds_).total();
    if (previous) {
      record.spending = spent_before(*previous, step, unix_seconds() - own_seconds);
      record.marks = previous->marks;
      record.marks.erase(record.marks.upper_bound(step), record.marks.end());
    }
  }
  record.attempt = attempt;
  {
    const std::scoped_lock lock(mutex_);
    record_ = std::move(record);
    has_begun_ = true;
  }
  mark(step);
  write();
}

void LedgerFile::mark(std::int64_t step) {
  const std::scoped_lock lock(mutex_);
  record_.marks[step] = now();
  if (record_.marks.size() > kLedgerMarksMax) record_.marks.erase(record_.marks.begin());
}

void LedgerFile::finish() {
  const std::scoped_lock lock(mutex_);
  record_.is_finished = true;
}

Spending LedgerFile::spending() const {
  const std::scoped_lock lock(mutex_);
  return now();
}

void LedgerFile::write() {
  LedgerRecord record;
  {
    const std::scoped_lock lock(mutex_);
    if (!has_begun_) return;
    record = record_;
    record.spending = now();
  }
  record.updated_unix_seconds = unix_seconds();
  const auto draft = std::filesystem::path(path_.string() + ".draft");
  std::error_code failure;
  {
    std::ofstream file(draft, std::ios::trunc);
    file << ledger_json(record) << "\n";
    if (!file.flush()) {
      file.close();
      std::filesystem::remove(draft, failure);
      return;
    }
  }
  std::filesystem::rename(draft, path_, failure);
}

double process_age_seconds() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  constexpr int kStartTimeField = 20;  // man 5 proc: field 22, two are before the name's end
  for (int index = 0; index < kStartTimeField; ++index) fields >> field;
  timespec since_boot{};
  if (!fields || ::clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0) return 0;
  const double ticks = std::strtod(field.c_str(), nullptr);
  const double begun = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double now =
      static_cast<double>(since_boot.tv_sec) + 1e-9 * static_cast<double>(since_boot.tv_nsec);
  return now > begun ? now - begun : 0;
}

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace tj::trainer
