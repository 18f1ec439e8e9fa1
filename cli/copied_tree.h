// What a tar archive of another machine becomes here: files and folders below one path, and nothing
// anywhere else. Links are not made, as with kubectl: they are named.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/tar_reader.h"
#include "contract/result.h"

namespace tj {

class CopiedTree {
 public:
  /// The archive's entries are `base` ("." for any) and what lies below it; `target` takes its
  /// place.
  CopiedTree(std::filesystem::path target, std::string base);
  ~CopiedTree();
  CopiedTree(const CopiedTree&) = delete;
  CopiedTree& operator=(const CopiedTree&) = delete;

  /// A file has its name only once it is whole: until then it ends with ".part".
  TarReader::Handlers handlers();

  std::uint64_t bytes() const { return bytes_; }
  int files() const { return files_; }
  /// Not copied, with the reason.
  const std::vector<std::string>& left_out() const { return left_out_; }
  int left_out_count() const { return left_out_count_; }

 private:
  Result<void> begin(const TarEntry& entry);
  Result<void> write(std::string_view bytes);
  Result<void> end();
  Result<std::filesystem::path> place_of(const std::string& name) const;
  Result<void> make_folders(const std::filesystem::path& folder) const;
  void leave_out(const std::string& what);

  std::filesystem::path target_;
  std::string base_;
  std::filesystem::path path_;  // of the file that is written
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
  int files_ = 0;
  std::vector<std::string> left_out_;
  int left_out_count_ = 0;
};

}  // namespace tj
