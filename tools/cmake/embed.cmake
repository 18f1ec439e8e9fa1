# Writes OUT, a C++ source that holds FILES (paths below ROOT, with commas between them) as bytes. Run by cmake -P when one of them changes.
string(REPLACE "," ";" files "${FILES}")
set(arrays "")
set(table "")
set(index 0)
foreach(file IN LISTS files)
  file(READ "${ROOT}/${file}" hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char kFile${index}[] = {${bytes} 0};\n")
  string(APPEND table "    {\"${file}\", {kFile${index}, sizeof kFile${index} - 1}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE "${OUT}" "// Made by tools/cmake/embed.cmake.
#include \"cli/ui/page_files.h\"

namespace tj::ui {
namespace {
${arrays}
constexpr PageFile kFiles[] = {
${table}};
}  // namespace

std::span<const PageFile> page_files() { return kFiles; }

}  // namespace tj::ui
")
