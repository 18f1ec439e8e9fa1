#include "trainer/data/video/libav/video_error.h"

extern "C" {
#include <libavutil/error.h>
}

namespace tj::trainer {

void fail(const std::string& what) { throw VideoError(what); }

std::string words_of(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof text);
  return text;
}

int checked(int code, const char* what) {
  if (code < 0) fail(std::string(what) + ": " + words_of(code));
  return code;
}

}  // namespace tj::trainer
