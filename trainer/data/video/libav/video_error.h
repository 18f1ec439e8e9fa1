// What FFmpeg's libraries refuse, as an exception within the plug-in.
#pragma once
#include <stdexcept>
#include <string>

namespace tj::trainer {

/// What FFmpeg says, in words.
struct VideoError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::string& what);
/// What FFmpeg says to one of its error codes.
std::string words_of(int code);
/// `code`, unless it is one of an error: then it throws "`what`: words".
int checked(int code, const char* what);

}  // namespace tj::trainer
