// The body of an answer, of an API server or of whatever proxy stands before it.
#include <nlohmann/json.hpp>

#include "operator/kube/rest_request.h"
#include "tests/fuzz/fuzzed.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body = tj::fuzz::text_of(data, size);
  for (const int status : {200, 301, 400, 401, 403, 404, 409, 410, 422, 429, 500, 999}) {
    const auto answer = tj::read_answer(
        {.status = status, .body = body, .retry_after = body.substr(0, 12)}, "GET /x");
    if (answer) continue;
    (void)nlohmann::json(answer.error().message).dump();  // it goes into a status, strictly
    if (const auto wait = answer.error().retry_after)
      TJ_CHECK(wait->count() >= 0, "time does not go back");
  }
  return 0;
}
