#include "cli/local/run_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "operator/api/read.h"

namespace tj {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Error file_error(Code code, const fs::path& path, const std::string& what) {
  return Error{code, what, path.string(), {}};
}

/// An object without name, namespace or uid can be no object of a server.
bool is_whole(const json& object) {
  const json& meta = read::object_at(object, "metadata");
  return !read::string_at(meta, "name").empty() && !read::string_at(meta, "namespace").empty() &&
         !read::string_at(meta, "uid").empty();
}

std::vector<json> objects_at(const json& file, const char* key) {
  std::vector<json> objects;
  for (const json& object : read::array_at(file, key)) {
    if (is_whole(object)) objects.push_back(object);
  }
  return objects;
}

}  // namespace

Result<void> write_run_objects(const fs::path& folder, const RunObjects& objects) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  const fs::path target = folder / kObjectsFile;
  const fs::path draft = target.string() + "." + std::to_string(getpid());
  {
    std::ofstream file(draft, std::ios::binary | std::ios::trunc);
    const json text = {{"jobs", objects.jobs}, {"pods", objects.pods}, {"events", objects.events}};
    file << text.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
    file.flush();
    if (!file) {
      const std::string why = std::strerror(errno);
      fs::remove(draft, failure);
      return file_error(Code::internal, draft, "can't be written: " + why);
    }
  }
  fs::rename(draft, target, failure);
  if (failure) return file_error(Code::internal, target, failure.message());
  return {};
}

Result<RunObjects> read_run_objects(const fs::path& folder) {
  const fs::path path = folder / kObjectsFile;
  std::ifstream file(path, std::ios::binary);
  if (!file) return file_error(Code::not_found, path, "there is no such file");
  std::error_code failure;
  if (fs::file_size(path, failure) > kObjectsBytesMax || failure) {
    return file_error(Code::invalid, path,
                      "has more than " + std::to_string(kObjectsBytesMax) + " bytes");
  }
  std::ostringstream text;
  text << file.rdbuf();
  const json parsed = read::parse(text.str());
  if (!parsed.is_object()) return file_error(Code::invalid, path, "holds no JSON object");
  return RunObjects{.jobs = objects_at(parsed, "jobs"),
                    .pods = objects_at(parsed, "pods"),
                    .events = objects_at(parsed, "events")};
}

fs::path run_log_file(const fs::path& folder, const std::string& pod, int attempt,
                      const std::string& init_container) {
  std::string name = pod;
  if (attempt > 0) name += ".attempt-" + std::to_string(attempt);
  if (!init_container.empty()) name += "." + init_container;
  return folder / (name + ".log");
}

}  // namespace tj
