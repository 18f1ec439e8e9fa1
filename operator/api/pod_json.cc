#include "operator/api/pod_json.h"

#include <nlohmann/json.hpp>

#include "operator/api/read.h"

namespace tj {
namespace {
using namespace read;
}  // namespace

const json& main_container(const json& pod) {
  static const json kNone = json::object();
  const json& containers = array_at(object_at(pod, "spec"), "containers");
  return !containers.empty() && containers.front().is_object() ? containers.front() : kNone;
}

json* main_container_in(json& pod) {
  return main_container(pod).empty() ? nullptr : &pod["spec"]["containers"].front();
}

std::string quantity_of(const json& container, std::string_view list, std::string_view resource) {
  const json& quantity = value_at(object_at(object_at(container, "resources"), list), resource);
  return quantity.is_number() ? quantity.dump() : text_of(quantity);
}

}  // namespace tj
