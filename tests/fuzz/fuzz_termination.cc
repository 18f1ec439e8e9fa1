// A termination message, or the end of a log that takes its place: any image writes what it likes.
#include <nlohmann/json.hpp>

#include "contract/outcome.h"
#include "tests/fuzz/fuzzed.h"
#include "trainer/launch/failure.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string words = tj::fuzz::text_of(data, size);
  tj::trainer::ProcessEnd end{.env = {}, .pid = 7, .exit_code = 1};
  const auto told = to_termination_message(tj::trainer::outcome_of(end, words));
  TJ_CHECK(told.size() <= tj::kTerminationMessageBytesMax, "kubelet cuts a longer one");
  TJ_CHECK(tj::from_termination_message(told).ok(), "what we write can be read");
  (void)tj::trainer::describe_failure(end, words);
  const auto outcome = tj::from_termination_message(words);
  if (!outcome) return 0;
  const std::string text = to_termination_message(*outcome);
  TJ_CHECK(text.size() <= tj::kTerminationMessageBytesMax, "kubelet cuts a longer one");
  const auto again = tj::from_termination_message(text);
  TJ_CHECK(again.ok(), "what we write can be read");
  const bool is_cut = again->message != outcome->message || again->reason != outcome->reason;
  TJ_CHECK(is_cut || *again == *outcome, "a message reads as it was written");
  return 0;
}
