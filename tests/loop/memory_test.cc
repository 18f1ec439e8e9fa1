// What the view costs for each pod and job: a share of the operator's 20 MB with 1,000 jobs of 8
// workers.
#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "operator/loop/packed_pod.h"
#include "operator/loop/resident_memory.h"
#include "operator/loop/view.h"
#include "tests/loop/world.h"

namespace tj {
namespace {

constexpr bool kCountsBytes = !kIsSanitized;  // a sanitizer's allocator does not tell

std::size_t bytes_in_use() { return mallinfo2().uordblks; }

std::string number(int value, std::size_t width) {
  std::string digits = std::to_string(value);
  return std::string(width - digits.size(), '0') + digits;
}

std::string uid_of(int job, int rank) {
  return number(job, 8) + "-1111-4222-8333-" + number(rank, 12);
}

nlohmann::json running_pod(int job, int rank) {
  const std::string job_name = "training-" + number(job, 4);
  const nlohmann::json owner{
      {"apiVersion", "kubebrain.io/v1"}, {"kind", "TrainingJob"}, {"name", job_name},
      {"uid", uid_of(job, 99)},          {"controller", true},    {"blockOwnerDeletion", true}};
  const nlohmann::json labels{{"job-name", job_name},
                              {"kubebrain.io/trainingjob", job_name},
                              {"kubebrain.io/worker-index", std::to_string(rank)},
                              {"kubebrain.io/attempt", "0"}};
  const nlohmann::json metadata{{"name", job_name + "-worker-" + std::to_string(rank)},
                                {"namespace", "team-vision"},
                                {"uid", uid_of(job, rank)},
                                {"resourceVersion", "12345678"},
                                {"creationTimestamp", "2026-11-21T00:00:00Z"},
                                {"labels", labels},
                                {"ownerReferences", nlohmann::json::array({owner})}};
  nlohmann::json container{{"name", "main"}, {"ready", true}};
  container["state"]["running"]["startedAt"] = "2026-11-21T00:00:00Z";
  nlohmann::json pod{{"metadata", metadata}};
  pod["spec"]["nodeName"] = "gpu-node-" + number(job % 100, 4);
  pod["status"]["phase"] = "Running";
  pod["status"]["containerStatuses"] = nlohmann::json::array({container});
  return pod;
}

TEST(PackedPod, keeps_every_field) {
  const TimePoint now{std::chrono::milliseconds{1'795'000'000'123}};
  Pod pod{.meta = {"name", "ns", "uid", "17", 3, "owner", now, now + std::chrono::seconds{1}},
          .job_name = "job",
          .worker_index = 300,
          .attempt = -1,
          .phase = PodPhase::unknown,
          .ready = true,
          .node = "node",
          .ip = "10.1.2.3",
          .reason = "Evicted",
          .message = std::string(300, 'm'),
          .waiting_reason = "Unschedulable",
          .waiting_message = "0/2 nodes",
          .waiting_since = TimePoint{std::chrono::milliseconds{-5}},
          .conditions = {{"DisruptionTarget", "PreemptionByScheduler", "why"}, {"b", "", ""}},
          .exit = ContainerExit{137, "OOMKilled", std::string("a\0b", 3), now}};
  EXPECT_EQ(PackedPod(pod).unpack(), pod);
  EXPECT_EQ(meta_of(PackedPod(pod)), pod.meta);
  EXPECT_EQ(PackedPod(Pod{}).unpack(), Pod{});
}

nlohmann::json running_job(int job) {
  nlohmann::json container{{"name", "main"}, {"image", "registry.example/team/training:2026.11"}};
  container["command"] = {"python", "-m", "train", "--config", "/etc/training/config.yaml"};
  container["resources"]["limits"] = {{"nvidia.com/gpu", 8}, {"memory", "512Gi"}};
  nlohmann::json object;
  object["metadata"] = {{"name", "training-" + number(job, 4)},
                        {"namespace", "team-vision"},
                        {"uid", uid_of(job, 99)},
                        {"resourceVersion", "12345678"}};
  nlohmann::json& worker = object["spec"]["replicaSpecs"]["Worker"];
  worker["replicas"] = 8;
  worker["template"]["spec"]["containers"] = nlohmann::json::array({container});
  nlohmann::json& status = object["status"];
  status["phase"] = "Running";
  status["message"] = "8 of 8 workers have started";
  for (const char* type : {"Running", "Suspended", "Restarting", "Succeeded", "Failed"}) {
    status["conditions"].push_back({{"type", type},
                                    {"status", "False"},
                                    {"reason", "WorkersRunning"},
                                    {"lastTransitionTime", "2026-11-21T00:00:00Z"}});
  }
  return object;
}

TEST(Memory, a_job_in_the_view_costs_few_kilobytes) {
  if (!kCountsBytes) GTEST_SKIP() << "the sanitizer's allocator does not count";
  View view([] { return TimePoint{}; });
  const std::size_t before = bytes_in_use();
  for (int job = 0; job < 250; ++job) {
    view.apply(Resource::training_jobs,
               Upsert{std::make_shared<const nlohmann::json>(running_job(job))});
  }
  const std::size_t each = (bytes_in_use() - before) / view.jobs().objects().size();
  std::printf("bytes per job: %zu (sizeof(TrainingJob) %zu)\n", each, sizeof(TrainingJob));
  EXPECT_LE(each, 4'096U);
}

TEST(Memory, a_pod_in_the_view_costs_few_bytes) {
  if (!kCountsBytes) GTEST_SKIP() << "the sanitizer's allocator does not count";
  View view([] { return TimePoint{}; });
  const std::size_t before = bytes_in_use();
  for (int job = 0; job < 250; ++job) {
    for (int rank = 0; rank < 8; ++rank)
      view.apply(Resource::pods,
                 Upsert{std::make_shared<const nlohmann::json>(running_pod(job, rank))});
  }
  const std::size_t each = (bytes_in_use() - before) / view.pods().objects().size();
  RecordProperty("bytes_per_pod", static_cast<int>(each));
  std::printf("bytes per pod: %zu (sizeof(Pod) %zu)\n", each, sizeof(Pod));
  EXPECT_LE(each, 512U);
}

long resident_file_kb() {
  std::ifstream status("/proc/self/status");
  long kb = 0;
  for (std::string line; std::getline(status, line);) {
    if (std::sscanf(line.c_str(), "RssFile: %ld kB", &kb) == 1) break;
  }
  return kb;
}

TEST(Memory, what_only_the_start_has_read_is_given_back) {
  if (!kCountsBytes) GTEST_SKIP() << "a sanitizer's own pages are many";
  const long before = resident_file_kb();
  drop_clean_file_pages();
  EXPECT_LT(resident_file_kb(), before * 3 / 4);
}

}  // namespace
}  // namespace tj
