"""Stages run beside each other only where they may, each after what it needs, and none is forgotten."""
import pathlib
import random
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools" / "test"))
import budget  # noqa: E402
import one_stage  # noqa: E402
import results  # noqa: E402
import schedule  # noqa: E402
import stages  # noqa: E402


def stage(name, lane="build", needs=(), **more):
    return stages.Stage(name, name, "true", needs, lane=lane, **more)


def done(*names):
    return {name: results.Row(name, results.Spent(1), results.Counted(passed=1)) for name in names}


class MayStart(unittest.TestCase):
    def started(self, selected, running, rows):
        by_name = {entry.name: entry for entry in selected}
        return [entry.name for entry in schedule.may_start(selected, [by_name[name] for name in running], rows)]

    def test_a_lane_takes_one_at_a_time_and_lanes_run_beside_each_other(self):
        selected = [stage("a"), stage("b"), stage("c", "cluster")]
        self.assertEqual(self.started(selected, [], {}), ["a", "c"])
        self.assertEqual(self.started(selected, ["a", "c"], {}), [])
        self.assertEqual(self.started(selected, ["c"], done("a")), ["b"])

    def test_what_waits_for_another_lane_lets_the_next_pass(self):
        selected = [stage("go", "cluster"), stage("unit", needs=("go",)), stage("asan")]
        self.assertEqual(self.started(selected, ["go"], {}), ["asan"])
        self.assertEqual(self.started(selected, [], done("go")), ["unit"])

    def test_what_comes_after_another_does_so_only_where_that_runs(self):
        late = stage("late", "cluster", after=("early",))
        self.assertEqual(self.started([stage("early"), late], [], {}), ["early"])
        self.assertEqual(self.started([late], [], {}), ["late"])

    def test_what_failed_is_named_to_those_who_need_it(self):
        rows = {"a": results.not_run("a", "x"), **done("b")}
        self.assertEqual(schedule.missing(stage("c", needs=("b", "a")), rows), "a")
        self.assertIsNone(schedule.missing(stage("c", needs=("b",)), rows))


class All(unittest.TestCase):
    def test_every_stage_runs_once_in_whatever_order_they_end(self):
        for seed in range(200):
            dice, running, rows = random.Random(seed), [], {}
            while len(rows) < len(stages.STAGES):
                started = schedule.may_start(stages.STAGES, running, rows)
                for entry in started:
                    self.assertLessEqual(set(entry.needs), set(rows), f"{entry.name}, seed {seed}")
                running += started
                self.assertEqual(len({entry.lane for entry in running}), len(running), f"seed {seed}")
                ended = running.pop(dice.randrange(len(running)))
                rows.update(done(ended.name))
            self.assertEqual(running, [])

    def test_a_stage_comes_after_what_it_needs(self):
        seen = set()
        for entry in stages.STAGES:
            self.assertLessEqual({*entry.needs, *entry.after}, seen, entry.name)
            seen.add(entry.name)
        self.assertEqual(len(seen), len(stages.STAGES))


class Budget(unittest.TestCase):
    def judged(self, seconds, *yardsticks, cold=False):
        taken = iter(yardsticks)
        slowness = budget.Slowness(lambda: next(taken))
        spent = results.Spent(seconds, cold=cold)
        return budget.judge(stage("a", warm_seconds=100, cold_seconds=300), spent, slowness), spent.budget_seconds

    def test_a_stage_within_its_budget_asks_once_how_slow_the_machine_is(self):
        self.assertEqual(self.judged(100, 1.0), (None, 100))
        self.assertEqual(self.judged(300, 1.0, cold=True), (None, 300))
        self.assertEqual(self.judged(200, 2.0), (None, 200))

    def test_a_machine_that_has_become_slow_gives_more_time(self):
        self.assertEqual(self.judged(250, 1.0, 2.5), (None, 250))

    def test_a_stage_above_its_budget_says_by_how_much(self):
        complaint, _ = self.judged(250, 1.2, 1.0)
        self.assertEqual(complaint, "a: took 250 s; its budget is 120 s (warm, on a machine that is 1.2 times as slow)")

    def test_the_yardstick_never_makes_a_budget_smaller(self):
        self.assertGreaterEqual(budget.yardstick(), 1.0)

    def test_a_stage_was_cold_where_it_made_anything(self):
        for said in ("deps: fetching torch 2.11.0 (530 MB)", "cluster: building etcd", "x\nimages: building trainer",
                     "tidy: 301 sources, 4 of them new or changed, 0 with findings"):
            self.assertTrue(budget.was_cold(said + "\n", 0), said)
        self.assertTrue(budget.was_cold("", 1))
        self.assertFalse(budget.was_cold("tidy: 301 sources, 0 of them new or changed, 0 with findings\n", 0))

    def test_what_ccache_did_not_have_is_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            self.assertEqual(budget.compiled(log), 0)
            log.write_text("# a.cc\ndirect_cache_miss\npreprocessed_cache_miss\ncache_miss\n# b.cc\ndirect_cache_hit\n")
            self.assertEqual(budget.compiled(log), 1)


class OneStage(unittest.TestCase):
    def run_of(self, command, folder, told):
        (folder / "build/test").mkdir(parents=True)
        env = {"PATH": "/usr/bin:/bin"}
        return one_stage.Run(stages.Stage("a", "a", command, counts="script"), folder, env, budget.Slowness(lambda: 1.0), told)

    def test_it_tells_its_end_and_what_it_used(self):
        with tempfile.TemporaryDirectory() as name:
            ended = threading.Event()
            run = self.run_of("printf 'deps: fetching\\n2 passed, 0 failed\\n'", pathlib.Path(name), lambda run: ended.set())
            self.assertTrue(ended.wait(60))
            row = run.row()
            self.assertEqual((row.counted.passed, row.counted.failed, row.spent.cold), (2, [], True))
            self.assertGreater(row.spent.cpu_seconds, 0)

    def test_it_is_ended_with_all_that_it_started(self):
        with tempfile.TemporaryDirectory() as name:
            run = self.run_of("mkfifo here; cat here & cat here", pathlib.Path(name), lambda run: None)
            run.time_out()
            self.assertTrue(run.ended.is_set())
            self.assertEqual(run.exit_code, -15)
            self.assertEqual(run.row().counted.failed[-1], "a: ended after 0 minutes")


if __name__ == "__main__":
    unittest.main()
