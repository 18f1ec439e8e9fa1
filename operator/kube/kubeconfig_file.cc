#include "operator/kube/kubeconfig_file.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "operator/kube/file_text.h"

namespace tj {
namespace {

Result<std::string> decode_base64(const KubeConfigField& field) {
  std::string text = field.text();
  text.erase(std::remove_if(text.begin(), text.end(),
                            [](unsigned char c) { return std::isspace(c) != 0; }),
             text.end());
  std::string bytes(text.size(), '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), int(text.size()));
  if (size < 0 || text.size() % 4 != 0) return field.wrong("is not base64");
  const auto padding =
      std::count(text.end() - std::min<std::ptrdiff_t>(2, std::ssize(text)), text.end(), '=');
  bytes.resize(static_cast<std::size_t>(size) - static_cast<std::size_t>(padding));
  return bytes;
}

}  // namespace

KubeConfigField KubeConfigField::at(const std::string& key) const {
  return {node && node.IsMap() ? YAML::Node(node[key]) : YAML::Node(YAML::NodeType::Undefined),
          file, path.empty() ? key : path + "." + key};
}

std::vector<KubeConfigField> KubeConfigField::items() const {
  std::vector<KubeConfigField> all;
  if (!present() || !node.IsSequence()) return all;
  for (const YAML::Node& item : node)
    all.push_back({item, file, path + "[" + std::to_string(all.size()) + "]"});
  return all;
}

Error KubeConfigField::wrong(const std::string& message) const {
  return Error{Code::invalid, message, name(), {}};
}

std::string resolved_path(const KubeConfigField& field) {
  return (std::filesystem::path(field.file).parent_path() / field.text()).string();
}

Result<Pem> read_pem(const KubeConfigField& parent, const std::string& key) {
  const KubeConfigField data = parent.at(key + "-data");
  if (data.present()) {
    Result<std::string> text = decode_base64(data);
    if (!text) return text.error();
    return Pem{*text, data.name()};
  }
  const KubeConfigField file = parent.at(key);
  if (file.text().empty()) return Pem{};
  Result<std::string> text = read_file_text(resolved_path(file));
  if (!text) return file.wrong(describe(text.error()));
  return Pem{*text, resolved_path(file) + " (" + file.name() + ")"};
}

Result<std::vector<KubeConfigField>> read_kubeconfigs(const std::vector<std::string>& paths) {
  std::vector<KubeConfigField> documents;
  for (const std::string& path : paths) {
    Result<std::string> text = read_file_text(path);
    const bool one_of_many = paths.size() > 1;
    if (!text && text.error().code == Code::not_found && one_of_many) continue;
    if (!text) return text.error();
    try {
      YAML::Node node = YAML::Load(*text);
      if (!node.IsMap()) return Error{Code::invalid, "is not a kubeconfig: no YAML map", path, {}};
      documents.push_back({node, path, ""});
    } catch (const YAML::Exception& error) {
      return Error{Code::invalid, std::string("is not YAML: ") + error.what(), path, {}};
    }
  }
  if (documents.empty()) {
    return Error{Code::not_found, "none of these files exists", paths.front() + " ...", {}};
  }
  return documents;
}

Result<KubeConfigField> find_named(const std::vector<KubeConfigField>& documents,
                                   const NamedPart& part) {
  for (const KubeConfigField& document : documents) {
    const KubeConfigField entries = document.at(part.list);
    if (!entries.present() || !entries.node.IsSequence()) continue;
    for (const YAML::Node& entry : entries.node) {
      const KubeConfigField field{entry, document.file, part.list + "[" + part.name + "]"};
      if (field.at("name").text() == part.name) return field.at(part.kind);
    }
  }
  return Error{Code::invalid,
               "there is none named \"" + part.name + "\"",
               documents.front().file + ": " + part.list,
               {}};
}

}  // namespace tj
