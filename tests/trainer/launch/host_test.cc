#include "trainer/launch/host.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

class HostFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "host-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::optional<int> cores() const {
    return quota_cores({.membership = root_ / "membership", .mount = root_ / "cgroup"});
  }

  fs::path root_;
};

EnvLookup devices(std::optional<std::string> list) {
  return [list](std::string_view name) -> std::optional<std::string> {
    if (name == "CUDA_VISIBLE_DEVICES") return list;
    return std::nullopt;
  };
}

TEST_F(HostFiles, gpus_are_the_entries_of_cuda_visible_devices) {
  for (int gpu = 0; gpu < 4; ++gpu) write("dev/nvidia" + std::to_string(gpu), "");
  const auto count = [&](const char* list) { return visible_gpus(devices(list), root_ / "dev"); };
  EXPECT_EQ(count("0,1"), 2);
  EXPECT_EQ(count(" 3 , 5, GPU-8932f937 "), 3);
  EXPECT_EQ(count(""), 0);
  EXPECT_EQ(count("-1"), 0);
  EXPECT_EQ(count("0,-1,1"), 1);
  EXPECT_EQ(count("NoDevFiles"), 0);
}

TEST_F(HostFiles, without_it_gpus_are_device_nodes) {
  for (const char* node : {"nvidia0", "nvidia1", "nvidia12", "nvidiactl", "nvidia-uvm", "nvme0"}) {
    write(std::string("dev/") + node, "");
  }
  EXPECT_EQ(visible_gpus(devices({}), root_ / "dev"), 3);
  EXPECT_EQ(visible_gpus(devices({}), root_ / "no-such-folder"), 0);
}

TEST_F(HostFiles, gpus_of_amd_are_the_nodes_with_simd_units_of_a_driver_that_is_given) {
  const AmdFiles files{.dev = root_ / "dev", .topology = root_ / "nodes"};
  EXPECT_EQ(amd_gpus(files), std::nullopt);
  // As amdkfd writes them: a processor, two GPUs, and one that this container may not look at.
  write("nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\nvendor_id 0\n");
  for (const char* const node : {"nodes/1", "nodes/2"})
    write(std::string(node) + "/properties", "cpu_cores_count 0\nsimd_count 440\nvendor_id 4098\n");
  write("nodes/3/properties", "");
  EXPECT_EQ(amd_gpus(files), std::nullopt);  // a container that was not given the device
  write("dev/kfd", "");
  EXPECT_EQ(amd_gpus(files), 2);
  EXPECT_EQ(amd_gpus({.dev = root_ / "dev", .topology = root_ / "no-such-folder"}), 0);
  EXPECT_EQ(amd_gpus_text(2), "2 GPUs of AMD");
  EXPECT_EQ(amd_gpus_text(1), "1 GPU of AMD");
  EXPECT_EQ(amd_gpus_text(0), "GPUs of AMD");
}

TEST_F(HostFiles, an_index_of_no_gpu_is_refused_with_those_that_are_there) {
  for (const char* node : {"nvidia3", "nvidia5"}) write(std::string("dev/") + node, "");
  const auto check = [&](std::optional<std::string> list) {
    const auto named = check_visible_gpus(devices(std::move(list)), root_ / "dev");
    return named ? "" : describe(named.error());
  };
  // CUDA counts those that the container has been given, whatever their nodes are called.
  EXPECT_EQ(check("0,1"), "");
  EXPECT_EQ(check("1, 2"),
            "CUDA_VISIBLE_DEVICES: is \"1, 2\", and there is no GPU 2 (CUDA: invalid device "
            "ordinal); it must be of indices from 0 to 1, as 2 GPUs are here, or not be set");
  EXPECT_NE(check("99999999999999999999").find("there is no GPU 99999999999999999999"),
            std::string::npos);
  EXPECT_EQ(check("GPU-8932f937,MIG-1"), "");
  EXPECT_EQ(check("-1"), "");
  EXPECT_EQ(check(""), "");
  EXPECT_EQ(check({}), "");
  // Without nodes nothing is known.
  EXPECT_TRUE(check_visible_gpus(devices("7"), root_ / "no-such-folder"));
}

TEST_F(HostFiles, an_index_beyond_the_only_gpu_is_told_which_one_there_is) {
  write("dev/nvidia0", "");
  const auto named = check_visible_gpus(devices("1"), root_ / "dev");
  ASSERT_FALSE(named);
  EXPECT_NE(named.error().message.find("it must be 0, the only GPU here, or not be set"),
            std::string::npos);
}

TEST_F(HostFiles, kills_for_memory_are_those_of_the_innermost_group_that_tells) {
  const CgroupFiles files{.membership = root_ / "membership", .mount = root_ / "cgroup"};
  EXPECT_EQ(out_of_memory_kills(files), 0);
  write("membership", "0::/pod/container\n");
  write("cgroup/pod/memory.events", "low 0\noom 7\noom_kill 5\n");
  EXPECT_EQ(out_of_memory_kills(files), 5);
  write("cgroup/pod/container/memory.events", "low 0\noom 3\noom_kill 2\n");
  EXPECT_EQ(out_of_memory_kills(files), 2);
  write("membership", "9:cpu:/other\n4:memory:/pod\n");
  write("cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  EXPECT_EQ(out_of_memory_kills(files), 1);
}

TEST_F(HostFiles, cgroup_v2_quota_of_the_container) {
  write("membership", "0::/\n");
  write("cgroup/cpu.max", "250000 100000\n");
  EXPECT_EQ(cores(), 2);
}

TEST_F(HostFiles, cgroup_v2_takes_the_tightest_of_all_levels) {
  write("membership", "0::/pods/pod/container\n");
  write("cgroup/pods/cpu.max", "800000 100000\n");
  write("cgroup/pods/pod/cpu.max", "300000 100000\n");
  write("cgroup/pods/pod/container/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), 3);
}

TEST_F(HostFiles, cgroup_v1_sees_its_own_group_at_the_mount) {
  write("membership", "5:memory:/kubepods/x\n4:cpu,cpuacct:/kubepods/x\n");
  write("cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n");
  write("cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(), 4);
}

TEST_F(HostFiles, less_than_a_core_is_one_and_no_quota_is_none) {
  write("membership", "4:cpu:/\n");
  EXPECT_EQ(cores(), std::nullopt);
  write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cores(), std::nullopt);
  write("cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(cores(), 1);
  write("cgroup/cpu/cpu.cfs_quota_us", "nonsense\n");
  EXPECT_EQ(cores(), std::nullopt);
}

TEST(Host, there_is_a_core_and_a_free_port) {
  EXPECT_GE(usable_cores(), 1);
  const auto port = free_port();
  ASSERT_TRUE(port.ok()) << describe(port.error());
  EXPECT_GE(*port, 1024);
}

}  // namespace
}  // namespace tj::trainer
