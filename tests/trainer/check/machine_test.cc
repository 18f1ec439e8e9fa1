// A table of facts about a machine -> result and words.
#include "trainer/check/machine.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {
using enum Severity;

constexpr std::uint64_t kGigabyte = 1'000'000'000;

MemoryFacts plenty() {
  return {.shm_bytes = 8 * kGigabyte, .available_bytes = 64 * kGigabyte, .cores = 8};
}

/// The finding of one check; fails where there is none.
Finding finding_of(const std::vector<Finding>& findings, const std::string& check) {
  for (const Finding& finding : findings)
    if (finding.check == check) return finding;
  ADD_FAILURE() << "no finding of " << check;
  return {};
}

Finding judged(const std::string& check, const MemoryFacts& facts, const Devices& devices = {},
               int processes = 1) {
  return finding_of(judge_memory({.processes = processes}, facts, devices), check);
}

TEST(CheckMachine, shared_memory_of_64_mb_is_warned_of_with_the_remedy) {
  MemoryFacts facts = plenty();
  facts.shm_bytes = 64 << 20;
  const auto finding = judged("shared memory", facts);
  EXPECT_EQ(finding.severity, warn);
  EXPECT_EQ(finding.found, "67 MB in /dev/shm");
  EXPECT_NE(finding.advice.find("emptyDir with medium: Memory"), std::string::npos);
  facts.shm_bytes = kGigabyte / 2;
  EXPECT_EQ(judged("shared memory", facts).severity, pass);
  EXPECT_EQ(judged("shared memory", facts, {.gpus = 8}).severity, warn);
  facts.shm_bytes.reset();
  EXPECT_EQ(judged("shared memory", facts).severity, warn);
}

TEST(CheckMachine, a_memlock_limit_is_fatal_where_infiniband_would_lock_memory) {
  MemoryFacts facts = plenty();
  EXPECT_EQ(judged("memlock limit", facts).found, "unlimited");
  facts.memlock_bytes = 65536;
  EXPECT_EQ(judged("memlock limit", facts).severity, pass);
  const auto finding = judged("memlock limit", facts, {.gpus = 8, .has_verbs = true});
  EXPECT_EQ(finding.severity, fatal);
  EXPECT_EQ(finding.found, "66 kB");
  EXPECT_NE(finding.advice.find("IPC_LOCK"), std::string::npos);
}

TEST(CheckMachine, what_is_left_of_the_limit_counts_not_what_the_machine_has) {
  MemoryFacts facts = plenty();
  facts.group_limit_bytes = 4 * kGigabyte;
  facts.group_used_bytes = 3 * kGigabyte;
  const auto finding = judged("memory", facts);
  EXPECT_EQ(finding.severity, warn);
  EXPECT_EQ(finding.found, "1 GB free of the limit 4 GB");
  facts.group_used_bytes = kGigabyte;
  EXPECT_EQ(judged("memory", facts).severity, pass);
  EXPECT_EQ(judged("memory", facts, {}, 4).severity, warn);
  facts.group_used_bytes = 9 * kGigabyte;  // pages that may be reclaimed
  EXPECT_EQ(judged("memory", facts).found, "0 bytes free of the limit 4 GB");
}

TEST(CheckMachine, more_processes_than_cores_are_warned_of) {
  EXPECT_EQ(judged("cores", plenty(), {}, 8).severity, pass);
  EXPECT_EQ(judged("cores", plenty(), {}, 9).severity, warn);
}

TEST(CheckMachine, the_tightest_group_above_holds_in_both_versions_of_control_groups) {
  const TemporaryFolder folder;
  folder.write("self", "5:cpu:/\n4:memory:/a/b\n0::/\n");
  folder.write("groups/memory/a/memory.limit_in_bytes", "1000000\n");
  folder.write("groups/memory/a/memory.usage_in_bytes", "400000\n");
  folder.write("groups/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  const CgroupFiles v1{.membership = folder.path() / "self", .mount = folder.path() / "groups"};
  ASSERT_TRUE(group_memory(v1));
  EXPECT_EQ(group_memory(v1)->limit_bytes, 1'000'000u);
  EXPECT_EQ(group_memory(v1)->used_bytes, 400'000u);
  folder.write("self2", "0::/pod/x\n");
  folder.write("groups2/pod/memory.max", "5000\n");
  folder.write("groups2/pod/memory.current", "10\n");
  folder.write("groups2/pod/x/memory.max", "max\n");
  const CgroupFiles v2{.membership = folder.path() / "self2", .mount = folder.path() / "groups2"};
  ASSERT_TRUE(group_memory(v2));
  EXPECT_EQ(group_memory(v2)->limit_bytes, 5000u);
  EXPECT_FALSE(group_memory({.membership = folder.path() / "none", .mount = folder.path()}));
}

TEST(CheckMachine, a_master_that_can_not_be_found_may_be_there_later) {
  const CheckedWorker worker{.has_rank_0 = false, .master_port = 29500, .master_host = "job-0"};
  const auto finding = finding_of(
      judge_master(worker, {.error = "the name does not resolve (Name or service not known)"}),
      "master");
  EXPECT_EQ(finding.severity, retry);
  EXPECT_EQ(finding.found, "job-0:29500");
}

TEST(CheckMachine, another_interface_than_the_routes_is_warned_of) {
  const CheckedWorker worker{.has_rank_0 = false, .master_port = 29500, .master_host = "a"};
  MasterFacts facts{.address = "10.0.0.2", .interface = "eth0", .gloo_interfaces = {"docker0"}};
  const auto other = finding_of(judge_master(worker, facts), "interface");
  EXPECT_EQ(other.severity, warn);
  EXPECT_NE(other.advice.find("by eth0 (10.0.0.2)"), std::string::npos);
  facts.gloo_interfaces = {"docker0", "eth0"};
  EXPECT_EQ(finding_of(judge_master(worker, facts), "interface").severity, pass);
}

TEST(CheckMachine, an_interface_without_a_speed_has_none) {
  EXPECT_EQ(link_mbps("lo"), 0);
  EXPECT_EQ(link_mbps("no-such-interface-here"), 0);
}

TEST(CheckMachine, rank_0_needs_the_port_and_an_address_that_leads_to_it) {
  const CheckedWorker worker{.master_port = 29500, .master_host = "a"};
  MasterFacts facts{.address = "10.0.0.2", .interface = "eth0", .is_master_local = false};
  EXPECT_EQ(finding_of(judge_master(worker, facts), "master").severity, warn);
  EXPECT_EQ(finding_of(judge_master(worker, facts), "port").severity, pass);
  facts.port_error = Error{.code = Code::conflict, .message = "is already in use"};
  EXPECT_EQ(finding_of(judge_master(worker, facts), "port").severity, retry);
}

TEST(CheckMachine, adapters_that_are_down_or_out_of_reach_are_named) {
  EXPECT_EQ(judge_adapters(NetworkFacts{}).front().found, "none: TCP");
  NetworkFacts facts{.ports = {{.device = "mlx5_0", .is_active = true, .rate_gbps = 400},
                               {.device = "mlx5_1", .is_active = false}}};
  auto findings = judge_adapters(facts);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].severity, warn);  // no /dev/infiniband
  EXPECT_EQ(findings[1].found, "mlx5_1:1 is down");
  facts.has_verbs = true;
  findings = judge_adapters(facts);
  EXPECT_EQ(findings[0].severity, pass);
  EXPECT_EQ(findings[0].found, "mlx5_0:1 400 Gb/s");
}

TEST(CheckMachine, the_network_of_several_workers_is_named_with_the_reason) {
  const NetworkUse use{.network = "Ethernet eth0", .why = "no InfiniBand adapter"};
  EXPECT_EQ(judge_network(2, use).found, "Ethernet eth0: no InfiniBand adapter");
  EXPECT_EQ(judge_network(1, use).found, "none: a single worker");
}

TEST(CheckMachine, a_gpu_that_is_ill_busy_or_another_model_is_named) {
  EXPECT_EQ(judge_gpus({}).front().severity, pass);
  EXPECT_EQ(judge_gpus({.visible = 8, .error = "libnvidia-ml.so.1 is missing"}).front().severity,
            warn);
  const GpuFacts good{.name = "H800", .memory_bytes = 80 * kGigabyte};
  GpusFacts facts{.visible = 4, .gpus = {good, good, good, good}};
  EXPECT_EQ(judge_gpus(facts).size(), 1u);
  EXPECT_EQ(judge_gpus(facts).front().found, "4 GPUs visible, H800, 80 GB each");
  facts.gpus[1].uncorrected_errors = 2;
  facts.gpus[2].used_bytes = 20 * kGigabyte;
  facts.gpus[3].name = "A100";
  facts.without_peer_access = {"0 and 3"};
  const auto findings = judge_gpus(facts);
  ASSERT_EQ(findings.size(), 5u);
  EXPECT_EQ(findings[1].found, "GPU 1: 2 uncorrected ECC errors");
  EXPECT_EQ(findings[2].found, "GPU 2: 20 GB in use");
  EXPECT_EQ(findings[3].found, "GPU 3 is A100");
  EXPECT_EQ(findings[4].found, "no peer access: 0 and 3");
}

TEST(CheckMachine, gpus_of_amd_are_named_with_what_is_trained_on_instead) {
  EXPECT_TRUE(judge_amd_gpus(std::nullopt, 8).empty());
  const auto alone = judge_amd_gpus(1, 0);
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].severity, warn);
  EXPECT_EQ(alone[0].found, "1 GPU of AMD (/dev/kfd)");
  EXPECT_NE(alone[0].advice.find("nothing for ROCm: training is on the CPU;"), std::string::npos);
  const auto beside = judge_amd_gpus(0, 2);
  ASSERT_EQ(beside.size(), 1u);
  EXPECT_EQ(beside[0].found, "GPUs of AMD (/dev/kfd)");
  EXPECT_NE(beside[0].advice.find("training is on those of NVIDIA;"), std::string::npos);
}

TEST(CheckMachine, a_full_disk_is_fatal_a_slow_or_nearly_full_one_a_warning) {
  DiskFacts facts{
      .path = "/out", .free_bytes = 50 * kGigabyte, .written_bytes = 64'000'000, .seconds = 0.1};
  EXPECT_EQ(judge_disk(facts).front().severity, pass);
  EXPECT_EQ(judge_disk(facts).front().found, "/out: 50 GB free, 640 MB/s");
  facts.seconds = 6.4;
  EXPECT_EQ(judge_disk(facts).front().severity, warn);
  EXPECT_NE(judge_disk(facts).front().advice.find("takes 2.5 min"), std::string::npos);
  facts.free_bytes = kGigabyte / 2;
  EXPECT_EQ(judge_disk(facts).front().severity, warn);
  facts.error = "a write of a test file failed: No space left on device";
  facts.is_full = true;
  EXPECT_EQ(judge_disk(facts).front().severity, fatal);
}

TEST(CheckMachine, the_disk_test_leaves_nothing_behind) {
  const TemporaryFolder folder;
  const auto facts = disk_facts((folder.path() / "not/there/yet").string());
  EXPECT_EQ(facts.error, "");
  EXPECT_GT(facts.written_bytes, 0u);
  EXPECT_GT(facts.seconds, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  folder.write("file", "x");
  EXPECT_NE(disk_facts((folder.path() / "file").string()).error, "");
}

TEST(CheckMachine, a_path_that_is_missing_or_empty_is_fatal) {
  const TemporaryFolder folder;
  const auto judge = [&](const std::string& path) {
    return judge_path(path_facts("MODEL_PATH", path));
  };
  EXPECT_EQ(judge((folder.path() / "none").string()).severity, fatal);
  EXPECT_EQ(judge(folder.path().string()).severity, fatal);
  folder.write("a", "x");
  EXPECT_EQ(judge(folder.path().string()).severity, pass);
  EXPECT_EQ(judge((folder.path() / "a").string()).severity, pass);
}

}  // namespace
}  // namespace tj::trainer
