#include "cli/check/check_report.h"

#include <algorithm>

#include "cli/plain_text.h"
#include "cli/submit/output.h"

namespace tj::check {
namespace {

// Of docs/check.md.
constexpr int kRetry = 69;
constexpr int kFatal = 78;
// A shell's, and a runtime's that can't start the program.
constexpr int kNoProgram[] = {126, 127, 128};

std::string result_text(const RankResult& result) {
  if (!result.exit) {
    return "no result" + (result.waiting.empty() ? "" : ": " + plain_line(result.waiting));
  }
  const int code = result.exit->exit_code;
  if (code == 0) return "pass";
  const std::string text = code == kRetry ? "retry" : code == kFatal ? "fatal" : "failed";
  return text + " (exit code " + std::to_string(code) + ")";
}

bool lacks_program(const RankResult& result) {
  return result.exit &&
         std::ranges::find(kNoProgram, result.exit->exit_code) != std::end(kNoProgram);
}

}  // namespace

bool has_passed(const RankResult& result) { return result.exit && result.exit->exit_code == 0; }

std::string report_text(const std::vector<RankResult>& results, const std::string& image) {
  std::string text;
  for (const RankResult& result : results) {
    text += "worker " + std::to_string(result.rank) +
            (result.node.empty() ? "" : " on node " + plain_line(result.node)) + ": " +
            result_text(result) + "\n";
    for (const std::string& line : result.log) text += "  " + plain_line(line) + "\n";
    const bool is_silent = result.log.empty() && result.exit && !result.exit->message.empty();
    if (is_silent && !has_passed(result)) text += "  " + plain_line(result.exit->message) + "\n";
  }
  if (std::ranges::any_of(results, lacks_program)) {
    text += "the image " + plain_line(image) +
            " seems to have no program `trainer`; --image takes "
            "one that has it, with the job's volumes and network\n";
  }
  const auto passed = std::ranges::count_if(results, has_passed);
  const bool all = !results.empty() && passed == static_cast<std::ptrdiff_t>(results.size());
  return text + (all ? "training can begin" : "training can't begin") + ": " +
         std::to_string(passed) + " of " + std::to_string(results.size()) + " workers pass\n";
}

}  // namespace tj::check
