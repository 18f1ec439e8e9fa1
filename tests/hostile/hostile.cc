#include "tests/hostile/hostile.h"

#include <algorithm>
#include <random>

namespace tj {
namespace {
using nlohmann::json;

constexpr const char* kTemplate = "/spec/replicaSpecs/Worker/template";

/// What is read of a job, of its template and of its main container.
constexpr const char* kPlaces[] = {"/metadata/labels",
                                   "/metadata/annotations",
                                   "/metadata/annotations/kubebrain.io~1progress-port",
                                   "/spec",
                                   "/spec/replicaSpecs",
                                   "/spec/replicaSpecs/Worker",
                                   "/spec/replicaSpecs/Worker/replicas",
                                   "/spec/runPolicy",
                                   "/spec/runPolicy/maxRestarts",
                                   "/spec/runPolicy/managedBy",
                                   "/spec/failurePolicy",
                                   "/spec/failurePolicy/rules",
                                   "/spec/failurePolicy/rules/0",
                                   "/spec/failurePolicy/rules/0/exitCodes",
                                   "/spec/failurePolicy/rules/0/exitCodes/0",
                                   "/spec/nodeLoss",
                                   "/spec/network",
                                   "/spec/masterPort",
                                   "/spec/nprocPerNode",
                                   "/spec/successPolicy"};
constexpr const char* kPlacesOfTemplate[] = {
    "",
    "/metadata",
    "/metadata/labels",
    "/metadata/labels/team",
    "/metadata/annotations",
    "/metadata/annotations/kubebrain.io~1progress-port",
    "/metadata/name",
    "/metadata/ownerReferences",
    "/metadata/finalizers",
    "/spec",
    "/spec/affinity",
    "/spec/affinity/nodeAffinity",
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution",
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
    "nodeSelectorTerms",
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
    "nodeSelectorTerms/0",
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
    "nodeSelectorTerms/0/matchFields",
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
    "nodeSelectorTerms/0/matchFields/0",
    "/spec/tolerations",
    "/spec/tolerations/0",
    "/spec/tolerations/0/key",
    "/spec/tolerations/0/tolerationSeconds",
    "/spec/containers",
    "/spec/containers/1",
    "/spec/initContainers",
    "/spec/initContainers/0",
    "/spec/initContainers/0/env",
    "/spec/volumes",
    "/spec/volumes/0",
    "/spec/volumes/0/name",
    "/spec/volumes/0/emptyDir",
    "/spec/restartPolicy",
    "/spec/hostname",
    "/spec/subdomain",
    "/spec/hostNetwork",
    "/spec/nodeName",
    "/spec/nodeSelector",
    "/spec/schedulerName",
    "/spec/terminationGracePeriodSeconds",
    "/spec/activeDeadlineSeconds",
    "/spec/priority",
    "/spec/securityContext",
    "/spec/fieldOfTheFuture"};
constexpr const char* kPlacesOfContainer[] = {"",
                                              "/name",
                                              "/image",
                                              "/command",
                                              "/command/0",
                                              "/args",
                                              "/env",
                                              "/env/0",
                                              "/env/0/name",
                                              "/env/0/value",
                                              "/env/0/valueFrom",
                                              "/env/1/valueFrom",
                                              "/env/1/valueFrom/fieldRef",
                                              "/env/1/valueFrom/fieldRef/fieldPath",
                                              "/envFrom",
                                              "/ports",
                                              "/resources",
                                              "/resources/limits",
                                              "/resources/limits/nvidia.com~1gpu",
                                              "/resources/requests",
                                              "/resources/requests/memory",
                                              "/terminationMessagePath",
                                              "/terminationMessagePolicy",
                                              "/volumeMounts",
                                              "/volumeMounts/0",
                                              "/volumeMounts/0/name",
                                              "/volumeMounts/0/mountPath",
                                              "/volumeMounts/0/subPath",
                                              "/workingDir",
                                              "/livenessProbe",
                                              "/securityContext"};

json nested(int levels) {
  json value = json::array();
  for (int level = 1; level < levels; ++level) value = {{"a", json::array({std::move(value)})}};
  return value;
}

std::vector<json> wrong_values() {
  const json object = json::object();
  const json list = json::array();
  return {nullptr,
          true,
          -1,
          0,
          5,
          0.5,
          1.5e308,
          INT64_MIN,
          std::uint64_t{1} << 63,
          "",
          "x",
          "2147483648",
          "\xef\xbf\xbd\xf0\x9f\x92\xa5",
          std::string("a\0b", 3),
          std::string(5'000, 'y'),
          object,
          {{"", 1}},
          {{"key", 5}},
          {{"name", nullptr}, {"value", list}},
          list,
          json::array({nullptr}),
          json::array({"x"}),
          json::array({5, object}),
          json::array({list}),
          json::array({{{"key", 5}}}),
          nested(40),
          nested(400)};
}

std::string shown(const json& value) {
  const std::string text = value.dump(-1, ' ', true);
  return text.size() <= 60 ? text : text.substr(0, 60) + "... of " + std::to_string(text.size());
}

std::vector<std::string> all_places() {
  std::vector<std::string> places(std::begin(kPlaces), std::end(kPlaces));
  for (const char* place : kPlacesOfTemplate) places.push_back(std::string(kTemplate) + place);
  for (const char* place : kPlacesOfContainer) {
    places.push_back(std::string(kTemplate) + "/spec/containers/0" + place);
  }
  return places;
}

}  // namespace

json good_manifest(const std::string& name) {
  json manifest = json::parse(R"json({
    "apiVersion": "kubebrain.io/v1", "kind": "TrainingJob",
    "metadata": {"labels": {"team": "a"}, "annotations": {"kubebrain.io/progress-port": "off"}},
    "spec": {
      "replicaSpecs": {"Worker": {"replicas": 1, "template": {
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "kept"}},
        "spec": {
          "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [
              {"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]}]}}},
          "tolerations": [{"key": "a", "operator": "Exists"}],
          "containers": [
            {"name": "main", "image": "none", "command": ["true"], "args": ["$(A)"],
             "env": [{"name": "A", "value": "b"},
                     {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
             "resources": {"limits": {"memory": "64Mi"}, "requests": {"memory": "32Mi"}},
             "volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "s"}]},
            {"name": "side", "image": "none"}],
          "initContainers": [{"name": "first", "image": "none", "command": ["true"], "env": []}],
          "volumes": [{"name": "data", "emptyDir": {}}]
      }}}},
      "runPolicy": {"maxRestarts": 0},
      "failurePolicy": {"rules": [{"action": "Fail", "exitCodes": [3]}]}
    }
  })json");
  manifest["metadata"]["name"] = name;
  return manifest;
}

std::vector<HostileManifest> all_hostile_manifests() {
  std::vector<HostileManifest> all;
  const std::vector<json> values = wrong_values();
  for (const std::string& place : all_places()) {
    for (const json& value : values) {
      json manifest = good_manifest("hostile");
      manifest[json::json_pointer(place)] = value;
      all.push_back({place + " is " + shown(value), std::move(manifest)});
    }
  }
  return all;
}

std::vector<HostileManifest> some_hostile_manifests(std::size_t count, std::uint32_t seed) {
  std::vector<HostileManifest> all = all_hostile_manifests();
  std::shuffle(all.begin(), all.end(), std::mt19937(seed));
  all.resize(std::min(count, all.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].manifest["metadata"]["name"] = "hostile-" + std::to_string(i);
  }
  return all;
}

}  // namespace tj
