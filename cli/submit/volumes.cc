#include "cli/submit/volumes.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <string_view>

#include "operator/api/field.h"

namespace tj::submit {
namespace {

using Json = nlohmann::json;
using field::shown;

constexpr const char* kForms =
    "; it must be FOLDER:PATH, pvc:NAME:PATH or configmap:NAME:PATH, each with :ro behind it "
    "where nothing may be written, as in /mnt/data:/data:ro";
constexpr std::size_t kTextCharsMax = 4096;  // of a path

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (auto end = text.find(':'); end != std::string::npos; end = text.find(':', begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

bool is_path(const std::string& text) {
  const auto has_part = [&](std::string_view part) {
    return (text + "/").find(part) != std::string::npos;
  };
  return text.starts_with('/') && text.size() <= kTextCharsMax && !has_part("/../");
}

/// RFC 1123: the name of an object.
bool is_object_name(const std::string& text) {
  static const std::regex kName("[a-z0-9]([-a-z0-9.]*[a-z0-9])?");
  return text.size() <= 253 && std::regex_match(text, kName);
}

/// What the pod's volume is, but for its name; nothing where `text` has another form.
struct Mount {
  Json source;
  std::string path;
  bool is_read_only = false;
};

std::optional<Mount> read_mount(const std::string& text) {
  std::vector<std::string> parts = parts_of(text);
  Mount mount;
  if (parts.size() > 2 && (parts.back() == "ro" || parts.back() == "rw")) {
    mount.is_read_only = parts.back() == "ro";
    parts.pop_back();
  }
  mount.path = parts.back();
  if (!is_path(mount.path) || mount.path == "/") return std::nullopt;
  if (parts.size() == 2 && is_path(parts[0])) {
    mount.source = {{"hostPath", {{"path", parts[0]}}}};
    return mount;
  }
  if (parts.size() != 3 || !is_object_name(parts[1])) return std::nullopt;
  if (parts[0] == "pvc") {
    mount.source = {{"persistentVolumeClaim", {{"claimName", parts[1]}}}};
  } else if (parts[0] == "configmap") {
    mount.source = {{"configMap", {{"name", parts[1]}}}};
  } else {
    return std::nullopt;
  }
  return mount;
}

bool is_taken(const Json& mounts, const std::string& path) {
  return std::any_of(mounts.begin(), mounts.end(),
                     [&](const Json& mount) { return mount["mountPath"] == path; });
}

void add(Volumes& to, const std::string& name, const Mount& mount) {
  Json volume = mount.source;
  volume["name"] = name;
  to.volumes.push_back(std::move(volume));
  Json entry = {{"name", name}, {"mountPath", mount.path}};
  if (mount.is_read_only) entry["readOnly"] = true;
  to.mounts.push_back(std::move(entry));
}

/// A quantity of bytes (k8s.io/apimachinery, resource.Quantity), more than none.
bool is_size(const std::string& text) {
  static const std::regex kSize("0*[1-9][0-9]{0,17}(Ki|Mi|Gi|Ti|k|M|G|T)?");
  return text.size() < 40 && std::regex_match(text, kSize);
}

}  // namespace

Volumes read_volumes(const std::vector<std::string>& mounts, const std::string& shm,
                     std::vector<FieldError>& errors) {
  Volumes found;
  for (const std::string& text : mounts) {
    const auto mount = read_mount(text);
    if (!mount) {
      errors.push_back({"--mount", "is " + shown(Json(text)) + kForms});
    } else if (is_taken(found.mounts, mount->path)) {
      errors.push_back({"--mount", "is " + shown(Json(text)) + "; " + mount->path +
                                       " is where another one is mounted, too"});
    } else {
      add(found, "mount-" + std::to_string(found.volumes.size()), *mount);
    }
  }
  if (shm.empty()) return found;
  if (!is_size(shm)) {
    errors.push_back({"--shm", "is " + shown(Json(shm)) + "; it must be a size, as in 64Gi"});
  } else if (is_taken(found.mounts, "/dev/shm")) {
    errors.push_back({"--shm", "is given, and a --mount for /dev/shm, too; one of them must go"});
  } else {
    add(found, "shm",
        {.source = {{"emptyDir", {{"medium", "Memory"}, {"sizeLimit", shm}}}}, .path = "/dev/shm"});
  }
  return found;
}

}  // namespace tj::submit
