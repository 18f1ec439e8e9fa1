#include "cli/exit.h"

#include <cstdio>

#include "cli/plain_text.h"

namespace tj {

int refuse(const Error& error) {
  std::fprintf(stderr, "%s\n", describe(error).c_str());
  return tj_exit::kWrongInput;
}

void complain(const Error& error) {
  std::fprintf(stderr, "tj: %s\n", plain_line(describe(error)).c_str());
}

int fail(const Error& error) {
  complain(error);
  switch (error.code) {
    case Code::invalid: return tj_exit::kWrongInput;
    case Code::not_found: return tj_exit::kNotFound;
    case Code::forbidden: return tj_exit::kRefused;
    case Code::unavailable:
    case Code::timeout: return tj_exit::kUnreachable;
    case Code::conflict:
    case Code::gone:
    case Code::internal: return tj_exit::kFailed;
  }
  return tj_exit::kFailed;
}

}  // namespace tj
