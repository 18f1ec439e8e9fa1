// Whether a sanitizer runs the tests, which takes ten to thirty times as long: a test of many cases
// that are alike takes a part of them there.
#pragma once

namespace tj {

#if defined(__has_feature)  // clang, which compiles for the sanitizers
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TJ_IS_SANITIZED
#endif
#endif
#ifdef TJ_IS_SANITIZED
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace tj
