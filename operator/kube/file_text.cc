#include "operator/kube/file_text.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tj {
namespace {
Error file_error(const std::string& path, int number) {
  const Code code = number == ENOENT || number == ENOTDIR ? Code::not_found
                    : number == EACCES                    ? Code::forbidden
                                                          : Code::invalid;
  return Error{code, std::string("can't be read: ") + std::strerror(number), path, {}};
}
}  // namespace

Result<std::string> read_file_text(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return file_error(path, errno == 0 ? EIO : errno);
  std::string text(kCredentialFileBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return file_error(path, errno == 0 ? EIO : errno);
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kCredentialFileBytesMax) {
    return Error{Code::invalid,
                 "is larger than " + std::to_string(kCredentialFileBytesMax) + " bytes",
                 path,
                 {}};
  }
  return text;
}

std::string trimmed(const std::string& text) {
  const char* const blank = " \t\r\n";
  const auto begin = text.find_first_not_of(blank);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

}  // namespace tj
