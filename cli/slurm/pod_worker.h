// The first container of a pod template as what runs on a node of SLURM: its words, variables and
// folders. Pure; part of from_manifest.h.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/left_out.h"
#include "cli/slurm/batch_job.h"
#include "cli/slurm/from_manifest.h"
#include "operator/api/field_checker.h"
#include "operator/local/pod_command.h"

namespace tj::slurm {

class PodWorker {
 public:
  /// All of them must live longer.
  PodWorker(BatchJob& job, const SlurmPlace& place, LeftOut& left_out, field::FieldChecker& checker)
      : job_(job), place_(place), left_out_(left_out), checker_(checker) {}

  /// `pod_template` has metadata and spec, and at least one container.
  void take(const field::Field& pod_template);

 private:
  void take_resources(const field::Field& container);
  void take_mounts(const field::Field& pod, const field::Field& container);
  void take_mount(const field::Field& pod, const field::Field& mount);
  std::string folder_of(const field::Field& pod, const field::Field& mount);
  void take_env(const field::Field& container, const field::Field& metadata);
  void take_variable(const field::Field& variable, const field::Field& metadata);
  void take_source(const field::Field& variable, const field::Field& metadata);
  void take_command(const field::Field& container);
  ShellText text_of(const field::Field& field, const std::string& text);

  BatchJob& job_;
  const SlurmPlace& place_;
  LeftOut& left_out_;
  field::FieldChecker& checker_;
  std::vector<MountedFolder> replaced_;  // where there is no container
};

/// A text that a script can show as it is: UTF-8, without control letters but ends of lines and
/// tabs.
bool is_printable(std::string_view text);

/// Puts --resume behind the words `trainer train`, so that a training goes on where it was when its
/// job comes back from the queue. False: it stands there, or these words don't.
bool add_resume(std::vector<ShellText>& command);

}  // namespace tj::slurm
