"""Runs the real `trainer launch` with small children: what they are told, restarts, output, and what is refused.

  launch_behaviour_test.py TRAINER [TEST]   one test, or all; exit code 77: skipped, the reason is printed
"""
import json
import os
import shutil
import signal
import subprocess

from launching import CONTRACT, DEADLINE_S, Launch, SLURM_TASK, TRAINER, main


class Behaviour(Launch):
    # How the engine's threads wait for each other

    def spin_count(self, command, **env):
        """What an engine is told that only says it."""
        programs = os.path.join(self.folder, "bin")
        os.makedirs(programs, exist_ok=True)
        engine, trainer = (os.path.join(programs, name) for name in ("trainer-engine", "trainer"))
        with open(engine, "w", encoding="utf-8") as script:
            script.write("#!/bin/sh\necho ${GOMP_SPINCOUNT-not said}\n")
        os.chmod(engine, 0o755)
        if not os.path.exists(trainer):
            shutil.copy(TRAINER, trainer)
        clean = {"PATH": os.environ["PATH"], "TRAININGJOB_TERMINATION_LOG": self.words}
        return self.finish(self.spawn([trainer, command], clean | env, text=False), 0)[0].strip()

    def test_threads_of_a_command_sleep_soon_unless_the_user_says_otherwise(self):
        self.assertEqual(self.spin_count("decode"), "1000")
        self.assertEqual(self.spin_count("decode", GOMP_SPINCOUNT="7"), "7")
        self.assertEqual(self.spin_count("decode", OMP_WAIT_POLICY="active"), "not said")

    def test_threads_of_a_training_sleep_soon_where_others_want_the_cores(self):
        for _ in range(os.cpu_count() + 1):
            self.spawn(["sh", "-c", "while :; do :; done"], {"PATH": os.environ["PATH"]}, text=False)
        self.assertEqual(self.spin_count("train"), "1000")

    # What the processes are told

    def variables_seen(self, rank, nproc):
        script = ("import json, os\n"
                  "open(os.path.join(os.environ['D'], 'env-' + os.environ['RANK']), 'w')"
                  ".write(json.dumps(dict(os.environ)) + '\\n')")
        self.run_launch("--", "python3", "-c", script,
                        env={**CONTRACT, "RANK": str(rank), "NPROC_PER_NODE": str(nproc),
                             "TRAININGJOB_UID": "uid-1", "TRAININGJOB_ATTEMPT": "3",
                             "CUDA_VISIBLE_DEVICES": "GPU-5,GPU-6"})
        ranks = range(rank * nproc, (rank + 1) * nproc)
        return [json.loads(text) for text in self.wait_for_files(*[f"env-{r}" for r in ranks])]

    def test_two_workers_of_two_processes_are_four_ranks(self):
        seen = self.variables_seen(0, 2) + self.variables_seen(1, 2)
        names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
                 "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT",
                 "TORCHELASTIC_RUN_ID", "CUDA_VISIBLE_DEVICES", "NPROC_PER_NODE", "TRAININGJOB_UID"]
        self.assertEqual([[env[name] for name in names] for env in seen], [
            [str(rank), "4", str(rank % 2), "2", str(rank // 2), "2", str(rank), "4", "job-worker-0.job", "29500",
             "0", "uid-1-3", "GPU-5,GPU-6", "2", "uid-1"] for rank in range(4)])
        logs = {env["TRAININGJOB_TERMINATION_LOG"] for env in seen}
        self.assertEqual(len(logs), 4, "each process has its own file for last words")
        for env in seen:
            self.assertGreaterEqual(int(env["OMP_NUM_THREADS"]), 1)

    def test_alone_it_is_one_process_with_a_free_port(self):
        out, err = self.run_launch("--", "sh", "-c", "echo $RANK $WORLD_SIZE $MASTER_ADDR; echo $MASTER_PORT")
        identity, port = out.splitlines()
        self.assertEqual(identity, "0 1 127.0.0.1")
        self.assertGreater(int(port), 1023)
        self.assertIn("worker 0 of 1 (no launch variables), 1 process (no GPU)", err)

    def test_an_operators_eight_gpus_start_eight_processes_without_a_gpu(self):
        out, _ = self.run_launch("--", "sh", "-c", "echo $LOCAL_RANK", env={**CONTRACT, "NPROC_PER_NODE": "8"})
        self.assertCountEqual(out.splitlines(), [f"[rank {8 + i}] {i}" for i in range(8)])

    def test_a_set_omp_num_threads_is_kept(self):
        out, _ = self.run_launch("--nproc", "1", "--", "sh", "-c", "echo $OMP_NUM_THREADS",
                                 env={"OMP_NUM_THREADS": "13"})
        self.assertEqual(out, "13\n")

    def test_a_task_of_slurm_is_one_process(self):
        out, err = self.run_launch("--", "sh", "-c", "echo $RANK $LOCAL_RANK $MASTER_ADDR $MASTER_PORT $TRAININGJOB_UID",
                                   env=SLURM_TASK)
        self.assertEqual(out, "3 1 node003 19711 slurm-884711-0\n")
        self.assertIn("worker 1 of 2 (SLURM), its process 1 of 2 processes (SLURM_STEP_TASKS_PER_NODE), 4 in all", err)

    def test_a_shell_in_an_allocation_is_alone_and_says_why(self):
        _, err = self.run_launch("--", "true", env={"SLURM_JOB_ID": "884711", "SLURM_NTASKS": "16"})
        self.assertEqual(self.last_line(err), "trainer launch: not followed: SLURM job 884711 is an allocation without "
                                              "a step; srun starts its tasks")

    def test_flags_name_one_process_of_a_node(self):
        out, _ = self.run_launch("--world-size", "16", "--gpus-per-node", "8", "--rank", "11", "--master-addr", "a", "--",
                                 "sh", "-c", "echo $RANK $WORLD_SIZE $LOCAL_RANK $GROUP_RANK $MASTER_ADDR $MASTER_PORT")
        self.assertEqual(out, "11 16 3 1 a 29500\n")

    def test_env_says_what_the_first_process_would_be_told(self):
        out, _ = self.finish(self.start("env", env={**CONTRACT, "NPROC_PER_NODE": "4"}), 0)
        told = dict(line.split("=", 1) for line in out.splitlines())
        self.assertEqual([told[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "MASTER_ADDR")],
                         ["4", "8", "0", "1", "job-worker-0.job"])

    def test_env_explains_each_value(self):
        out, _ = self.finish(self.start("env", "--explain", env={**CONTRACT, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}), 0)
        self.assertRegex(out, r"(?m)^convention +processes +set: LOCAL_RANK, LOCAL_WORLD_SIZE")
        self.assertRegex(out, r"(?m)^ranks here +1 +RANK$")
        self.assertRegex(out, r"(?m)^master address +job-worker-0.job +MASTER_ADDR$")

    # Restarts in place

    def tries(self, *flags, script, expect):
        counted = "echo $TORCHELASTIC_RESTART_COUNT ${TRAININGJOB_ATTEMPT:-0} > $D/try-$TORCHELASTIC_RESTART_COUNT-$RANK\n"
        _, err = self.run_launch(*flags, "--", "sh", "-c", counted + script, expect=expect)
        names = [name for name in os.listdir(self.folder) if name.startswith("try-") and name.endswith("-1")]
        return [self.wait_for_files(name)[0] for name in sorted(names)], err

    def test_a_failure_is_restarted_in_place_until_it_succeeds(self):
        script = "[ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0; [ $RANK = 1 ] && exit 5; exec sleep 1000"
        tries, err = self.tries("--nproc", "2", "--max-restarts", "3", script=script, expect=0)
        self.assertEqual(tries, ["0 0", "1 1", "2 2"])
        for count in (1, 2):
            self.assertIn(f"failed first: exit code 5; the others were stopped; restart {count} of 3", err)
        self.assertFalse(os.path.exists(self.words))

    def test_restarts_run_out(self):
        tries, err = self.tries("--nproc", "2", "--max-restarts", "1", script="[ $RANK = 1 ] && exit 5; exec sleep 1000",
                                expect=5)
        self.assertEqual(tries, ["0 0", "1 1"])
        self.assertEqual(self.last_line(err), "trainer launch: rank 1 (local rank 1, pid P) failed first: exit code 5; "
                                              "the others were stopped")
        self.assertEqual((self.outcome()["rank"], self.outcome()["attempt"]), (1, 1))

    def test_what_a_retry_can_not_mend_is_not_restarted(self):
        tries, _ = self.tries("--nproc", "2", "--max-restarts", "3", script="[ $RANK = 1 ] && exit 78; exec sleep 1000",
                              expect=78)
        self.assertEqual(tries, ["0 0"])

    def test_asked_to_stop_it_does_not_restart(self):
        process = self.start("launch", "--nproc", "1", "--max-restarts", "3", "--", "sh", "-c",
                             "echo >> $D/up; exec sleep 1000")
        self.wait_for_files("up")
        process.send_signal(signal.SIGTERM)
        _, err = self.finish(process, 143)
        self.assertNotIn("restart", err)

    # Output

    def test_the_output_of_one_process_is_untouched(self):
        out, err = self.run_launch("--nproc", "1", "--", "sh", "-c", "printf 'a\\r\\0b'; printf err >&2")
        self.assertEqual(out, "a\r\0b")
        self.assertTrue(err.endswith("err"))

    def test_lines_of_several_carry_their_rank(self):
        out, err = self.run_launch("--nproc", "2", "--", "sh", "-c", "echo out $RANK; printf 'no end' >&2")
        self.assertEqual(sorted(out.splitlines()), ["[rank 0] out 0", "[rank 1] out 1"])
        self.assertEqual(sorted(err.splitlines()[-2:]), ["[rank 0] no end", "[rank 1] no end"])

    def test_a_megabyte_of_each_arrives_whole(self):
        out, _ = self.run_launch("--nproc", "4", "--", "sh", "-c", "seq -f '%.0f xxxxxxxxxxxxxxxxxxxx' 40000")
        lines = out.splitlines()
        self.assertEqual(len(lines), 160000)
        for rank in range(4):
            own = [line for line in lines if line.startswith(f"[rank {rank}] ")]
            self.assertEqual([int(line.split()[2]) for line in own], list(range(1, 40001)))

    # The log of a node

    def log_of_node(self, name):
        """The lines of the one file in `logs`, without their times."""
        (found,) = os.listdir(self.path("logs"))
        self.assertRegex(found, name)
        with open(self.path(f"logs/{found}"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        for line in lines:
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
        return [line.split(" ", 1)[1] for line in lines]

    def test_the_log_of_a_node_has_all_that_it_prints(self):
        out, err = self.run_launch("--nproc", "2", "--node-log", self.path("logs"), "--", "sh", "-c",
                                   "echo out $RANK; echo err $RANK >&2; [ $RANK = 2 ] || exit 5", env=CONTRACT, expect=5)
        lines = self.log_of_node(r"^train_node1_\d{8}T\d{6}Z\.log$")
        self.assertTrue(lines[0].startswith("log of node 1 of 2 ("), lines)
        self.assertEqual(sorted(lines[1:]), sorted(out.splitlines() + err.splitlines()))
        for line in ("[rank 2] out 2", "[rank 3] out 3", "[rank 2] err 2", "[rank 3] err 3"):
            self.assertIn(line, lines)
        self.assertIn("rank 3 (local rank 1, pid P) failed first: exit code 5", self.last_line(lines[-1]))

    def test_the_log_of_a_node_goes_on_after_a_restart(self):
        self.run_launch("--nproc", "1", "--max-restarts", "1", "--node-log", self.path("logs"), "--", "sh", "-c",
                        "echo try $TORCHELASTIC_RESTART_COUNT; exit $((1 - TORCHELASTIC_RESTART_COUNT))")
        lines = self.log_of_node(r"^train_node0_")
        self.assertEqual([line for line in lines if line.startswith("try")], ["try 0", "try 1"])

    def test_with_a_log_of_the_node_one_process_prints_the_same(self):
        out, _ = self.run_launch("--nproc", "1", "--node-log", self.path("logs"), "--", "sh", "-c", "echo a; printf b")
        self.assertEqual(out, "a\nb\n")
        self.assertEqual(self.log_of_node(r"^train_node0_")[-2:], ["a", "b"])

    def test_a_folder_for_the_log_that_can_not_be_made_starts_nothing(self):
        with open(self.path("file"), "w", encoding="utf-8"):
            pass
        error = self.refused("launch", "--node-log", self.path("file/logs"), "--", "touch", self.path("ran"), expect=78)
        self.assertEqual(error, 'trainer launch: --node-log: is "FOLDER/file/logs", which can\'t be made: Not a directory; it must be a folder '
                                "that this process can write")
        self.assertEqual(self.outcome()["reason"], "BadConfig")
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_a_disk_that_takes_no_more_ends_the_log_of_a_node_and_nothing_else(self):
        process = self.start("launch", "--nproc", "2", "--node-log", self.path("logs"), "--", "seq", "40000",
                             wrapper=("prlimit", "--fsize=65536:65536"))
        out, err = self.finish(process, 0)
        self.assertEqual(len(out.splitlines()), 80000)
        self.assertEqual(err.count("holds no more lines of the processes: can't be written: File too large"), 1)

    # What can't be started

    def refused(self, *arguments, expect, env=None):
        process = self.start(*arguments, env=env)
        _, err = self.finish(process, expect)
        return err.strip().splitlines()[-1].replace(self.folder, "FOLDER")

    def test_a_command_that_is_not_there(self):
        self.assertEqual(self.refused("launch", "--", "no-such-command", env={"PATH": "/nowhere"}, expect=127),
                         "trainer launch: no-such-command: command not found; it must be in PATH (/nowhere)")
        self.assertEqual(self.outcome()["reason"], "CommandNotFound")
        self.assertEqual(self.refused("launch", "--nproc", "2", "--", "/no/such", expect=127),
                         "trainer launch: /no/such: no such file; it must be the path of a program")

    def test_a_command_that_is_not_executable(self):
        script = self.path("start.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/no/such/interpreter\n")
        self.assertEqual(self.refused("launch", "--", script, expect=126),
                         "trainer launch: FOLDER/start.sh: permission denied; it must be an executable file")
        self.assertEqual(self.outcome()["reason"], "CommandNotExecutable")
        os.chmod(script, 0o755)
        self.assertEqual(self.refused("launch", "--", script, expect=127),
                         "trainer launch: FOLDER/start.sh: its interpreter is missing; the first line of the file "
                         "must name one that exists")

    def test_bad_variables_start_nothing(self):
        error = self.refused("launch", "--", "touch", self.path("ran"), env={**CONTRACT, "RANK": "2"}, expect=78)
        self.assertEqual(error, "trainer launch: RANK: is 2 with WORLD_SIZE 2; it must be from 0 to 1")
        self.assertEqual(self.outcome()["reason"], "BadConfig")
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertEqual(self.refused("launch", "--", "true", env={**CONTRACT, "WORLD_SIZE": None}, expect=78),
                         "trainer launch: WORLD_SIZE: is not set; it must be the number of workers")

    def test_a_second_launcher_is_refused(self):
        env = {**CONTRACT, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        self.assertEqual(self.refused("launch", "--", "true", env=env, expect=78),
                         "trainer launch: LOCAL_RANK: is \"0\": a launcher has started this process already; it must be "
                         "unset here, or the command be run without trainer launch")

    def test_restarts_are_the_operators_where_there_is_one(self):
        error = self.refused("launch", "--max-restarts", "2", "--", "true", env={**CONTRACT, "TRAININGJOB_UID": "u"},
                             expect=78)
        self.assertEqual(error, "trainer launch: --max-restarts: is 2 in a job of the operator, which restarts all "
                                "workers together; it must not be given: spec.runPolicy.maxRestarts says how often")

    def test_env_refuses_as_launch_does(self):
        self.assertEqual(self.refused("env", env={**CONTRACT, "NNODES": "3", "TRAININGJOB_UID": "u"}, expect=78),
                         "trainer env: NNODES: is \"3\" with WORLD_SIZE 2; both say the same thing and must be equal")

    def test_wrong_usage(self):
        self.assertEqual(self.refused("launch", "--nproc", "x", "--", "true", expect=64),
                         "--nproc: is \"x\"; it must be auto or a number from 1 to 1024")

    # trainer train

    def copy_of_trainer(self):
        return shutil.copy(TRAINER, self.path("trainer"))

    def test_train_becomes_the_engine_beside_it(self):
        trainer = self.copy_of_trainer()
        with open(self.path("trainer-engine"), "w", encoding="utf-8") as engine:
            engine.write("#!/bin/sh\necho \"$$ $*\"\n")
        os.chmod(self.path("trainer-engine"), 0o755)
        process = subprocess.Popen([trainer, "train", "--data", "a b", "--help"], stdout=subprocess.PIPE, text=True)
        out, _ = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(out, f"{process.pid} train --data a b --help\n")

    def test_train_without_an_engine_says_so(self):
        done = subprocess.run([self.copy_of_trainer(), "train"], capture_output=True, text=True, timeout=DEADLINE_S,
                              check=False, env={"TRAININGJOB_TERMINATION_LOG": self.words})
        self.assertEqual(done.returncode, 127)
        self.assertEqual(done.stderr, f"trainer train: {self.folder}/trainer-engine: No such file or directory; "
                                      "trainer-engine must lie beside trainer\n")


if __name__ == "__main__":
    main()
