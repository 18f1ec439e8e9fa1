// The files of the page, which the build puts into the program (tools/cmake/embed.cmake).
#pragma once
#include <span>
#include <string_view>

namespace tj::ui {

struct PageFile {
  std::string_view path;  // below cli/ui/page
  std::string_view bytes;
};
std::span<const PageFile> page_files();

}  // namespace tj::ui
