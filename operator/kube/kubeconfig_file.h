// A kubeconfig's YAML, read field by field: each field knows the path that leads to it, so that
// each error can name it. Private to operator/kube.
#pragma once
#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "contract/result.h"

namespace tj {

/// A kubeconfig, or the part of one.
struct KubeConfigField {
  YAML::Node node;
  std::string file;
  std::string path;

  KubeConfigField at(const std::string& key) const;
  /// Those of a sequence; empty when it is none.
  std::vector<KubeConfigField> items() const;
  bool present() const { return node.IsDefined() && !node.IsNull(); }
  std::string text() const { return present() && node.IsScalar() ? node.Scalar() : std::string(); }
  bool is_true() const { return text() == "true"; }
  /// "FILE: path", as messages name it.
  std::string name() const { return file + ": " + path; }
  Error wrong(const std::string& message) const;
};

struct Pem {
  std::string text;
  std::string source;
};
/// `key`-data wins over `key`, as with kubectl. Both empty where neither is there.
Result<Pem> read_pem(const KubeConfigField& parent, const std::string& key);

/// Paths in a kubeconfig are relative to the folder it lies in.
std::string resolved_path(const KubeConfigField& field);

/// All that exist of several; the only one must. May throw YAML::Exception later, when read.
Result<std::vector<KubeConfigField>> read_kubeconfigs(const std::vector<std::string>& paths);

/// clusters[name].cluster and the like: the first document that has it wins.
struct NamedPart {
  std::string list;  // "clusters"
  std::string kind;  // "cluster"
  std::string name;
};
Result<KubeConfigField> find_named(const std::vector<KubeConfigField>& documents,
                                   const NamedPart& part);

}  // namespace tj
