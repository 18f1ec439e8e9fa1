"""`trainer plan` as a person runs it, and a run that is held to it."""

import json
import unittest
import xml.etree.ElementTree

from engine import ENGINE, EngineTest

NANO = ("--model", "gpt2-nano", "--vocabulary", 257, "--batch-size", 8)
GIVEN = ("--step-seconds", 1, "--no-passes")
KILO = 1000


class PlanTest(EngineTest):
    def start_plan(self, *flags, rank=0, world_size=1):
        return self.spawn([ENGINE, "plan", *map(str, flags)], self.environment(rank, world_size))

    def plan(self, *flags, code=0):
        return self.finish(self.start_plan(*flags), code)

    def document(self, *flags):
        return json.loads(self.plan(*flags, "--json")[0])


class Plan(PlanTest):
    def test_the_sum_of_two_nodes_at_one_gigabit(self):
        plan = self.document("--model", "gpt2-tiny", "--vocabulary", 50257, "--world", 2, "--batch-size", 256,
                             "--accumulation", 8, "--link", "117MB/s", *GIVEN)
        self.assertEqual(plan["ranks"], 2)
        self.assertAlmostEqual(plan["step"]["sent_bytes"], 4 * plan["parameters"])
        self.assertAlmostEqual(plan["step"]["wire_seconds"], 4 * plan["parameters"] / 117e6, 2)
        self.assertAlmostEqual(plan["step"]["compute_seconds"], 1)
        by_setting = {(row["accumulation"], row["reduce"]): row["sent_bytes"] for row in plan["table"]}
        self.assertAlmostEqual(by_setting[8, "bf16"] * 2, by_setting[8, "fp32"])
        self.assertLess(by_setting[8, "powersgd"] * 25, by_setting[8, "fp32"])
        self.assertFalse(plan["memory"]["with_activations"])

    def test_computing_and_memory_are_measured_here(self):
        small = self.document(*NANO, "--world", 2, "--link", "1gbps")
        self.assertEqual(small["compute"]["from"], "measured here")
        for part in ("forward", "backward", "update"):
            self.assertGreater(small["compute"][f"{part}_seconds"], 0)
        large = self.document(*NANO, "--batch-size", 32, "--world", 2, "--link", "1gbps")
        activations = [plan["memory"]["parts"]["activations"] for plan in (small, large)]
        self.assertGreater(activations[1], 2 * activations[0])  # four times the samples in a pass
        self.assertEqual(small["memory"]["parts"]["weights"], 4 * small["parameters"])
        self.assertTrue(small["memory"]["fits"])

    def test_any_workload_answers(self):
        plan = self.document("--model", "taehv-nano", "--batch-size", 2, "--world", 2, "--link", "1gbps")
        self.assertGreater(plan["memory"]["parts"]["activations"], 0)
        self.assertGreater(plan["step"]["sent_bytes"], KILO)

    def test_data_says_what_no_flag_does(self):
        plan = self.document("--model", "gpt2-nano", "--data", self.data, "--world", 1, *GIVEN)
        self.assertEqual(plan["step"]["sent_bytes"], 0)
        self.assertGreater(plan["parameters"], 800 * KILO)

    def test_a_picture(self):
        picture = self.folder / "plan.svg"
        out, _ = self.plan(*NANO, "--world", 2, "--link", "1gbps", *GIVEN, "--svg", picture)
        self.assertIn("efficiency by passes", out)
        root = xml.etree.ElementTree.parse(picture).getroot()
        self.assertEqual(len(root.findall("{*}polyline")), 5)

    def test_what_does_not_fit_is_said(self):
        out, _ = self.plan(*NANO, "--world", 2, "--link", "1gbps", *GIVEN, "--gpu-memory", "1MiB")
        self.assertIn("does not fit: a rank needs", out)

    def test_wrong_ones_are_named(self):
        for flags, cause in (
            ((*NANO, "--world", 2), "--link: is missing"),
            ((*NANO, "--world", 2, "--link", "fast"), '--link: is "fast"'),
            ((*NANO, "--world", 0, "--link", "1gbps"), "--world"),
            ((*NANO, "--probe"), "--probe: measures between ranks"),
            ((*NANO, "--world", 3, "--link", "1gbps", *GIVEN), "--batch-size"),
            ((*NANO, "--no-passes"), "--no-passes"),
            ((*NANO, "--step-seconds", "nan"), "--step-seconds"),
            ((*NANO, "--codec-rate", "int8"), "--codec-rate"),
            ((*NANO, "--target-efficiency", "200%"), "--target-efficiency"),
            ((*NANO, "--gpu", "GTX 970"), "--gpu"),
            (("--model", "gpt2-nano"), "--vocabulary: is missing"),
        ):
            with self.subTest(flags=flags):
                _, err = self.plan(*flags, code=78)
                self.assertIn(cause, self.cause(err))
        self.plan("--what", code=64)

    def test_ranks_measure_the_link_between_them(self):
        ranks = [self.start_plan(*NANO, "--probe", "--json", "--pass-seconds", 1, rank=rank, world_size=2) for rank in range(2)]
        (out, _), (other, _) = (self.finish(rank) for rank in ranks)
        plan = json.loads(out)
        self.assertEqual(other, "")
        self.assertEqual(plan["ranks"], 2)
        self.assertEqual(plan["link"]["from"], "measured between 2 ranks")
        self.assertGreater(plan["link"]["bytes_per_second"], KILO * KILO)


class Held(EngineTest):
    FLAGS = ("--layers", 1, "--width", 32, "--heads", 2, "--seq-len", 16, "--batch-size", 4)

    def test_a_run_says_after_sixty_steps_what_was_predicted(self):
        (out, _), _ = self.train_ranks(2, *self.FLAGS, "--steps", 62)
        self.assertRegex(out, r"predicted [\d.]+ m?s a step, measured [\d.]+ m?s \([+-][\d.]+ %\) over steps 11 to 60: exposed")
        event = next(line for line in self.events() if line["event"] == "prediction")
        self.assertEqual(event["at_step"], 60)
        self.assertGreater(event["bytes_per_second"], KILO * KILO)

    def test_a_short_run_says_nothing(self):
        (out, _), _ = self.train_ranks(2, *self.FLAGS, "--steps", 59)
        self.assertNotIn("predicted", out)


if __name__ == "__main__":
    unittest.main()
