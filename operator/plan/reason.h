// Why a job is where it is, in one word: `status.reason`, the reason of its conditions and of its
// events. docs/operating.md explains each, and tests/docs compares.
#pragma once

namespace tj::reason {

inline constexpr const char* kCreatingWorkers = "CreatingWorkers";
inline constexpr const char* kCreateFailed = "CreateFailed";
inline constexpr const char* kInternalError = "InternalError";
inline constexpr const char* kNameConflict = "NameConflict";
inline constexpr const char* kWaitingForWorkers = "WaitingForWorkers";
inline constexpr const char* kWorkersRunning = "WorkersRunning";
inline constexpr const char* kSuspended = "Suspended";
inline constexpr const char* kSpecChanged = "SpecChanged";
inline constexpr const char* kNodesReadmitted = "NodesReadmitted";
inline constexpr const char* kWorkersSucceeded = "WorkersSucceeded";
inline constexpr const char* kWorker0Succeeded = "Worker0Succeeded";
inline constexpr const char* kDeadlineExceeded = "DeadlineExceeded";
inline constexpr const char* kInvalid = "Invalid";

// A first failure: of a restart, or of the job's end.
inline constexpr const char* kWorkerFailed = "WorkerFailed";
inline constexpr const char* kWrongCommand = "WrongCommand";
inline constexpr const char* kOOMKilled = "OOMKilled";
inline constexpr const char* kDisrupted = "Disrupted";
inline constexpr const char* kNodeLost = "NodeLost";
inline constexpr const char* kWorkerLost = "WorkerLost";
inline constexpr const char* kPodRejected = "PodRejected";
inline constexpr const char* kStartDeadlineExceeded = "StartDeadlineExceeded";
inline constexpr const char* kHung = "Hung";
inline constexpr const char* kRestartsExhausted = "RestartsExhausted";

}  // namespace tj::reason
