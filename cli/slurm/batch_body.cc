#include "cli/slurm/batch_body.h"

namespace tj::slurm {

// Seen with SLURM 22.05: a stop (scancel, scontrol requeue, preemption) sends SIGTERM to all tasks,
// and to the process group of this script. srun would let go of its tasks then; by `set -m` it has
// a group of its own. A task that gets SIGTERM twice may give up saving, so a stop is never
// forwarded; only the signal before the time limit is, which SLURM sends to this script alone.
// `--kill-on-bad-exit` is such a second SIGTERM, too.
const std::string_view kBatchBody = R"BODY(
say() { printf '%s tj slurm: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*"; }
fail() { say "$1"; exit "${2:-1}"; }

# Lines of srun about tasks that ended badly: their exit codes, or "signal", in the order in which they came.
bad_ends() {
  sed -n 's/^srun: error: .*: tasks\{0,1\} [^:]*: Exited with exit code \([0-9]*\)$/\1/p
    s/^srun: error: .*: tasks\{0,1\} [^:]*: .*$/signal/p' "$srun_log"
}

# The exit code of the first one; 76 says only that another one went away. $1: that of srun.
first_code() {
  local end
  for end in $(bad_ends); do
    case $end in
      76) ;;
      signal) break ;;
      *) printf '%s\n' "$end"; return ;;
    esac
  done
  printf '%s\n' "$1"
}

# Whoever waits for a lost task may wait for ever.
watch_for_loss() {
  while sleep 5 && kill -0 $$; do
    [ -n "$(bad_ends)" ] || continue
    sleep "$loss_grace_seconds"
    say "tasks still run $loss_grace_seconds s after one ended badly; they are killed"
    scancel --signal=KILL "$SLURM_JOB_ID"
    return
  done
} 2>/dev/null

seconds_left() { printf '%s\n' $((deadline_seconds - ($(date +%s) - $(cat "$folder/began")))); }

# $1: what is counted; $2: why.
queue_again() {
  if [ "$deadline_seconds" -gt 0 ] && [ "$(seconds_left)" -le $((signal_seconds + 120)) ]; then
    fail "$2; it ends here: its time ($deadline_seconds s, all runs together) is over" "$code"
  fi
  printf '%s run=%s code=%s\n' "$1" "$attempt" "$code" >>"$folder/restarts"
  say "$2; it goes back into the queue"
  scontrol requeue "$SLURM_JOB_ID" || fail "it can't go back into the queue" "$code"
  exit "$code"
}

count_of() { cat "$folder/restarts" 2>/dev/null | grep -c "^$1 "; }

take_failure() {
  local action
  action=$(action_of "$code")
  case $action in
    fail) fail "exit code $code: another try would end the same way" "$code" ;;
    restart_uncounted)
      [ "$(count_of uncounted)" -lt 1000 ] || fail "exit code $code, for the 1000th time" "$code"
      queue_again uncounted "exit code $code" ;;
    *)
      [ "$(count_of counted)" -lt "$restarts_max" ] || fail "exit code $code, and no restart is left of $restarts_max" "$code"
      queue_again counted "exit code $code" ;;
  esac
}

stop='' interrupted='' code=1
on_time_limit() {
  interrupted=yes
  [ -z "$stop" ] || return
  stop=time-limit
  say "the time limit comes: the tasks are asked to save and to end"
  scancel --signal=TERM "$SLURM_JOB_ID"
}
on_stop() { interrupted=yes stop=asked; }
trap on_time_limit USR1
trap on_stop TERM
set -m

for name in "${needed_env[@]}"; do
  [ -n "${!name+set}" ] || fail "$name is not set; it must be in the environment of sbatch" 78
done
attempt=${SLURM_RESTART_COUNT:-0}
case $output in /*) ;; *) output=$PWD/$output ;; esac
folder=$output/$SLURM_JOB_ID
mkdir -p -- "$folder" || fail "the folder $folder can't be made" 78
srun_log=$folder/srun-$attempt.log
[ -s "$folder/began" ] || date +%s >"$folder/began"
if [ "$deadline_seconds" -gt 0 ] && [ "$attempt" -gt 0 ]; then
  scontrol update JobId="$SLURM_JOB_ID" TimeLimit=$((($(seconds_left) + 59) / 60)) || true
fi

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=${master_port:-$((15000 + SLURM_JOB_ID % 10000))}
set_contract
say "run $attempt of job $SLURM_JOB_ID ($SLURM_JOB_NAME) on $SLURM_JOB_NODELIST; logs are in $folder"

one_on_each_node=(--nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1)
if [ ${#node_folders[@]} -gt 0 ]; then
  # In /tmp somebody else may have been there before.
  srun "${one_on_each_node[@]}" sh -c 'for folder; do
      mkdir -p -m 700 -- "$folder" && [ -O "$folder" ] && [ ! -L "$folder" ] || exit 1
    done' sh "${node_folders[@]}" || fail "the folders of the nodes can't be made" 1
fi

# Each task writes its own log on its node: what srun is to write is lost when a job is requeued.
[ -z "$stop" ] || fail "asked to stop before it began" 75
srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node="$tasks_per_node" --kill-on-bad-exit=0 --wait=0 --open-mode=append \
  --output="${folder//%/%%}/$log_name" "${srun_options[@]}" sh -c "$worker" worker 2>"$srun_log" &
step=$!
watch_for_loss &
watcher=$!
disown "$watcher"
while :; do
  interrupted=''
  wait "$step"
  code=$?
  # With `set -m` wait also returns when its process is only suspended.
  [ -n "$interrupted" ] || kill -0 "$step" 2>/dev/null || break
  [ -z "$stop" ] || kill -- -"$watcher" 2>/dev/null
done
kill -- -"$watcher" 2>/dev/null
cat "$srun_log" >&2

remove_node_folders() {
  [ ${#node_folders[@]} -eq 0 ] || srun "${one_on_each_node[@]}" rm -rf -- "${node_folders[@]}" || true
}
if [ "$code" = 0 ]; then
  remove_node_folders
  say "done"
  exit 0
fi
code=$(first_code "$code")
case $stop in
  asked) fail "asked to stop; the tasks ended with exit code $code" "$code" ;;
  time-limit) queue_again uncounted "its time is over, exit code $code" ;;
esac
take_failure
)BODY";

}  // namespace tj::slurm
