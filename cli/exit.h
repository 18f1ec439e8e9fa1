// What tj exits with, and how it says why: the error is the last line on standard error.
#pragma once
#include "contract/result.h"

namespace tj {

namespace tj_exit {
inline constexpr int kSucceeded = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongInput = 2;
inline constexpr int kNotFound = 3;       // no such job
inline constexpr int kRefused = 4;        // by a right, or by the server
inline constexpr int kUnreachable = 5;    // no answer in time
inline constexpr int kTimedOut = 124;     // the time of --timeout is over, as with timeout(1)
inline constexpr int kInterrupted = 130;  // 128 + SIGINT
inline constexpr int kTerminated = 143;   // 128 + SIGTERM
}  // namespace tj_exit

/// Of input: the error as it is, which begins with where it stands; the exit code for wrong input.
int refuse(const Error& error);
/// Of what the world refused: "tj: ..." made plain.
void complain(const Error& error);
/// Complains; the exit code by the kind of error.
int fail(const Error& error);
/// Of a manifest, which may be wrong here or by the server's word: each field on a line of its own.
inline int refuse_or_fail(const Error& error) {
  return error.code == Code::invalid ? refuse(error) : fail(error);
}

}  // namespace tj
