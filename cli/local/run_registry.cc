// The registry of local runs: a file for each folder, with a lock that its `tj run` holds. Locks
// are those of open files (F_OFD_SETLK): they end with the process, and can be looked at without
// being taken.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "cli/local/run_folder.h"
#include "contract/launch_env.h"
#include "operator/api/read.h"

namespace tj {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kEntryBytesMax = 64 * 1024;
constexpr int kTriesMax = 10;  // to lock a file that somebody is just removing

/// A descriptor that is closed when it goes.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Error run_error(Code code, const std::string& subject, const std::string& message) {
  return Error{code, message, subject, {}};
}

/// FNV-1a of the folder: the same folder has the same entry.
std::string entry_name(const fs::path& folder) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char letter : folder.string())
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ull;
  char name[32];
  std::snprintf(name, sizeof name, "%016llx.json", static_cast<unsigned long long>(hash));
  return name;
}

// glibc 2.36 declares these two without extern "C".
int open_process(int pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }
int send_signal(int process, int number) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, process, number, nullptr, 0));
}

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool take_lock(int fd) {
  struct flock lock = whole_file(F_WRLCK);
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool is_locked(const fs::path& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct flock lock = whole_file(F_RDLCK);
  return file.ok() && fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool is_still(int fd, const fs::path& path) {
  struct stat opened {};
  struct stat there {};
  return fstat(fd, &opened) == 0 && stat(path.c_str(), &there) == 0 &&
         opened.st_ino == there.st_ino && opened.st_dev == there.st_dev;
}

std::string host_name() {
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  return name;
}

/// Field 22 of /proc/<pid>/stat (proc(5)); 0: there is no such process. The name before it may hold
/// spaces and brackets.
long long process_start(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text, '\0');
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(text.substr(name_end + 1));
  std::string field;
  for (int number = 3; number < 22; ++number) rest >> field;
  long long start = 0;
  rest >> start;
  return rest ? start : 0;
}

json to_json(const RunEntry& run) {
  return {{"job", run.job},
          {"namespace", run.ns},
          {"folder", run.folder.string()},
          {"host", run.host},
          {"pid", run.pid},
          {"processStart", run.process_start},
          {"startedAt", format_time(run.started_at)}};
}

std::optional<RunEntry> read_entry(const fs::path& path) {
  std::error_code failure;
  if (fs::file_size(path, failure) > kEntryBytesMax || failure) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  const json entry = read::parse(text.str());
  const auto started = read::time_at(entry, "startedAt");
  RunEntry run{.job = read::string_at(entry, "job"),
               .ns = read::string_at(entry, "namespace"),
               .folder = read::string_at(entry, "folder"),
               .host = read::string_at(entry, "host"),
               .pid = read::number_at(entry, "pid"),
               .process_start = read::number_at<long long>(entry, "processStart"),
               .started_at = started.value_or(TimePoint{}),
               .is_alive = is_locked(path)};
  if (run.job.empty() || run.folder.empty() || run.pid <= 0) return std::nullopt;
  return run;
}

std::vector<RunEntry> all_entries(const fs::path& registry) {
  std::vector<RunEntry> runs;
  std::error_code failure;
  for (fs::directory_iterator each(registry, failure), end; !failure && each != end;
       each.increment(failure)) {
    if (each->path().extension() != ".json") continue;
    if (auto run = read_entry(each->path())) runs.push_back(*std::move(run));
  }
  std::stable_sort(runs.begin(), runs.end(), [](const RunEntry& a, const RunEntry& b) {
    if (a.is_alive != b.is_alive) return a.is_alive;
    return a.started_at > b.started_at;
  });
  return runs;
}

bool has_objects(const RunEntry& run) {
  std::error_code failure;
  return fs::is_regular_file(run.folder / kObjectsFile, failure);
}

/// The oldest go, and those whose folder has gone. Runs that live stay.
void drop_stale(const fs::path& registry) {
  std::size_t kept = 0;
  for (const RunEntry& run : all_entries(registry)) {
    const bool is_kept = run.is_alive || (has_objects(run) && kept < kRunsMax);
    if (is_kept) {
      ++kept;
    } else {
      forget_run(run, registry);
    }
  }
}

bool write_whole(int fd, const std::string& text) {
  return ftruncate(fd, 0) == 0 &&
         pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

}  // namespace

fs::path run_registry() {
  const fs::path state = process_env("XDG_STATE_HOME").value_or("");
  if (state.is_absolute()) return state / "trainingjob" / "runs";
  const fs::path home = process_env("HOME").value_or("");
  return home.is_absolute() ? home / ".local" / "state" / "trainingjob" / "runs" : fs::path{};
}

std::vector<RunEntry> list_runs(const fs::path& registry) {
  std::vector<RunEntry> runs = all_entries(registry);
  std::erase_if(runs, [](const RunEntry& run) { return !has_objects(run); });
  return runs;
}

std::optional<RunEntry> find_run(const std::string& job, const fs::path& registry) {
  for (RunEntry& run : list_runs(registry)) {
    if (run.job == job) return std::move(run);
  }
  return std::nullopt;
}

void forget_run(const RunEntry& run, const fs::path& registry) {
  const fs::path path = registry / entry_name(run.folder);
  const Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.ok() && take_lock(file.get())) unlink(path.c_str());
}

Result<RunRegistration> RunRegistration::make(RunEntry run, const fs::path& registry) {
  if (registry.empty()) {
    return run_error(Code::not_found, "the registry of runs",
                     "neither XDG_STATE_HOME nor HOME names a folder");
  }
  std::error_code failure;
  const mode_t before = umask(077);  // it names folders of a person
  fs::create_directories(registry, failure);
  umask(before);
  drop_stale(registry);
  const fs::path path = registry / entry_name(run.folder);
  run.host = host_name();
  run.pid = getpid();
  run.process_start = process_start(run.pid);
  run.started_at = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  for (int tries = 0; tries < kTriesMax; ++tries) {
    Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file.ok()) return run_error(Code::internal, path.string(), std::strerror(errno));
    if (!take_lock(file.get())) {
      return run_error(Code::conflict, run.folder.string(), "another tj run has this folder");
    }
    if (!is_still(file.get(), path)) continue;
    if (!write_whole(file.get(), to_json(run).dump() + "\n"))
      return run_error(Code::internal, path.string(), std::strerror(errno));
    return RunRegistration(file.release());
  }
  return run_error(Code::conflict, path.string(), "it is removed again and again");
}

RunRegistration::RunRegistration(RunRegistration&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

RunRegistration& RunRegistration::operator=(RunRegistration&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

RunRegistration::~RunRegistration() {
  if (fd_ >= 0) close(fd_);
}

/// Between two looks at the lock the descriptor of the process was opened: it is the run's, for a
/// process that ends gives up its lock.
Result<void> end_run(const RunEntry& run, std::chrono::seconds wait_max, const fs::path& registry) {
  const fs::path path = registry / entry_name(run.folder);
  const auto ended = [&] { return run_error(Code::not_found, run.job, "its tj run has ended"); };
  if (!is_locked(path)) return ended();
  if (run.host != host_name()) {
    return run_error(Code::forbidden, run.job,
                     "its tj run is a process of the machine " + run.host);
  }
  const Fd process(open_process(run.pid));
  if (!process.ok()) {
    return run_error(
        Code::forbidden, run.job,
        "its tj run, process " + std::to_string(run.pid) + ", can't be seen from here");
  }
  if (!is_locked(path)) return ended();
  if (process_start(run.pid) != run.process_start) {
    return run_error(Code::forbidden, run.job,
                     "process " + std::to_string(run.pid) + " is another one than its tj run");
  }
  if (send_signal(process.get(), SIGTERM) != 0)
    return run_error(Code::forbidden, run.job, std::strerror(errno));
  const auto until = std::chrono::steady_clock::now() + wait_max;
  pollfd end{.fd = process.get(), .events = POLLIN, .revents = 0};
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int found = poll(&end, 1, static_cast<int>(std::max<long long>(left.count(), 0)));
    if (found > 0) return {};
    if (found == 0) {
      return run_error(
          Code::timeout, run.job,
          "its tj run has not ended within " + std::to_string(wait_max.count()) + " s");
    }
    if (errno != EINTR) return run_error(Code::internal, run.job, std::strerror(errno));
  }
}

}  // namespace tj
