#include "trainer/report/ledger.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "trainer/values/json_integer.h"

namespace tj::trainer {
namespace {
using nlohmann::ordered_json;

constexpr std::array<Spent, kSpentKinds> kKinds{Spent::compute, Spent::communication, Spent::data,
                                                Spent::save,    Spent::eval,          Spent::start,
                                                Spent::lost};

ordered_json to_json(const Spending& spending) {
  ordered_json document;
  for (const auto kind : kKinds) document[to_string(kind)] = spending[kind];
  return document;
}

/// Missing kinds count nothing; throws where a value is no number of seconds.
Spending spending_from(const ordered_json& document) {
  Spending spending;
  for (const auto kind : kKinds) {
    const auto seconds = document.value(to_string(kind), 0.0);
    if (!(seconds >= 0) || !std::isfinite(seconds)) throw std::domain_error("no seconds");
    spending[kind] = seconds;
  }
  return spending;
}

}  // namespace

const char* to_string(Spent kind) {
  switch (kind) {
    case Spent::compute: return "compute";
    case Spent::communication: return "communication";
    case Spent::data: return "data";
    case Spent::save: return "save";
    case Spent::eval: return "eval";
    case Spent::start: return "start";
    case Spent::lost: return "lost";
  }
  return "lost";
}

double Spending::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

std::string ledger_json(const LedgerRecord& record) {
  ordered_json document = {
      {"attempt", record.attempt},           {"updated_unix_seconds", record.updated_unix_seconds},
      {"finished", record.is_finished},      {"total_seconds", record.spending.total()},
      {"seconds", to_json(record.spending)}, {"marks", ordered_json::array()}};
  for (const auto& [step, spending] : record.marks)
    document["marks"].push_back({{"at_step", step}, {"seconds", to_json(spending)}});
  return document.dump();
}

Result<LedgerRecord> ledger_from(std::string_view text) {
  try {
    const auto document = ordered_json::parse(text);
    LedgerRecord record{.attempt = integer_of<int>(document.at("attempt")),
                        .updated_unix_seconds = document.at("updated_unix_seconds").get<double>(),
                        .is_finished = document.at("finished").get<bool>(),
                        .spending = spending_from(document.at("seconds")),
                        .marks = {}};
    for (const auto& mark : document.at("marks"))
      record.marks[integer_of(mark.at("at_step"))] = spending_from(mark.at("seconds"));
    return record;
  } catch (const std::exception& failure) {
    return Error{.code = Code::invalid,
                 .message = std::string("is no ledger: ") + failure.what(),
                 .subject = "ledger.json",
                 .retry_after = {}};
  }
}

Spending spent_before(const LedgerRecord& previous, std::int64_t step, double unix_seconds) {
  const auto after = previous.marks.upper_bound(step);
  const Spending mark = after == previous.marks.begin() ? Spending() : std::prev(after)->second;
  Spending spending = previous.spending;
  for (const auto kind : {Spent::compute, Spent::communication, Spent::data, Spent::eval}) {
    spending[Spent::lost] += std::max(0.0, spending[kind] - mark[kind]);
    spending[kind] = std::min(spending[kind], mark[kind]);
  }
  if (!previous.is_finished)
    spending[Spent::lost] += std::max(0.0, unix_seconds - previous.updated_unix_seconds);
  return spending;
}

Spending spending_of(const Seen& seen, double before_seconds) {
  Spending spending;
  const auto& of_phase = seen.phase_seconds;
  const auto& of_step = seen.step_section_seconds;
  const auto in = [](const auto& totals, auto index) {
    return totals[static_cast<std::size_t>(index)];
  };
  spending[Spent::start] = before_seconds + in(of_phase, Phase::start) + in(of_phase, Phase::end);
  spending[Spent::data] = in(of_step, Section::data);
  spending[Spent::communication] = in(of_step, Section::collective);
  spending[Spent::eval] = in(of_phase, Phase::eval);
  const double stall = in(of_step, Section::save);
  spending[Spent::save] = in(of_phase, Phase::save) + stall;
  spending[Spent::compute] = std::max(0.0, in(of_phase, Phase::step) - spending[Spent::data] -
                                               spending[Spent::communication] - stall);
  return spending;
}

Spending operator+(const Spending& one, const Spending& other) {
  Spending sum = one;
  for (const auto kind : kKinds) sum[kind] += other[kind];
  return sum;
}

std::string ledger_line(const Spending& spending) {
  constexpr double kBarCells = 30;
  const double total = std::max(spending.total(), 1e-9);
  char text[96];
  std::snprintf(text, sizeof text, "goodput %.1f %% of %.1f s",
                100 * spending[Spent::compute] / total, total);
  std::string line = text;
  for (const auto kind : kKinds) {
    if (spending[kind] < 0.05) continue;  // would be printed as nothing
    std::snprintf(text, sizeof text, " | %s %.1f s ", to_string(kind), spending[kind]);
    line +=
        text +
        std::string(static_cast<std::size_t>(std::lround(kBarCells * spending[kind] / total)), '#');
    if (line.back() == ' ') line.pop_back();
  }
  return line;
}

}  // namespace tj::trainer
