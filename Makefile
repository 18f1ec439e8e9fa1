# `make help` lists what is here. Everything is set up on the way; a fresh Debian 12 needs only git and make.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run build install release test arm arm-cluster bench bench-operator bench-trainer bench-logs bench-tokenizer bench-lerobot bench-decode bench-profile bench-builds soak storm cpus repeat images-from-source faults fuzz gpu-kit check format clean site bench-slow-network bench-plan bench-text network-policies

export TRAININGJOB_CACHE ?= $(HOME)/.cache/trainingjob
export CCACHE_DIR ?= $(TRAININGJOB_CACHE)/ccache
export CCACHE_MAXSIZE ?= 5G

job ?= manifests/examples/gpt2-nano.yaml

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | while IFS=$$'\t' read -r name what; do \
	  printf '  make %-18s %s\n' "$$name" "$$what"; done

run: build  ## sets everything up and runs the example job here, as local processes (job=FILE for another)
	build/dev/cli/tj run -f $(job)

build:  ## sets everything up and builds tj and the trainer (build/dev/cli, build/dev/trainer)
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target tj trainer trainer-engine trainer_nccl trainer_video trainer_parquet trainer_sentencepiece trainer_picture

test:  ## sets everything up and runs all tests, a real two-node Kubernetes included
	@command -v /usr/bin/python3 >/dev/null || tools/deps apt
	tools/test/run

bench: bench-operator bench-trainer bench-slow-network  ## the three of the following

bench-operator:  ## measures the operator beside others on a quiet machine (half an hour) and writes docs/measurements.md
	tools/deps build
	tools/deps peers
	tools/deps cluster
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainingjob-operator bare_client pod_reaper
	tests/bench/operator/run --peers all --docs

bench-trainer:  ## measures the trainer beside PyTorch on a quiet machine (twenty minutes), for the same document
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer trainer-engine trainer_video trainer_zero_test
	tests/bench/trainer/run --docs
	tests/bench/trainer/zero_memory.py build/dev/tests/trainer/engine/trainer_zero_test

bench-logs:  ## measures tj logs beside kubectl and stern, 64 ranks at 1,000 lines a second each (three minutes)
	tools/deps build
	tools/deps cluster
	tools/deps stern
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target tj
	tests/bench/logs/run

arm:  ## a small pi0 learns to move a drawn arm onto targets, from 200 recorded episodes: nine of ten or more (five minutes)
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer trainer-engine trainer_parquet trainer_sentencepiece trainer_video
	tests/arm/run --long

arm-cluster:  ## the same in two pods, on a real Kubernetes of two nodes (ten minutes, and the images where they are missing; root)
	tools/deps apt
	tools/deps build
	tools/deps cluster
	tests/e2e/run --long --only pi0

bench-lerobot:  ## measures our reader of LeRobot data sets beside LeRobot's own, one thread each (two minutes)
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target lerobot_probe trainer_parquet trainer_video
	tests/bench/lerobot/run

bench-tokenizer:  ## measures trainer prepare beside Hugging Face's tokenizers on a quiet machine, 1 GB each of English and Chinese (half an hour)
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer
	tests/bench/tokenizer/run

bench-slow-network:  ## measures two nodes on a network that is too slow, beside PyTorch (half an hour), for the same document
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer trainer-engine
	tests/bench/slow_network/run --docs

bench-text:  ## trains a small GPT-2 on 45 MB of real text, Chinese and English (40 minutes), and shows what it learnt in docs/systems/gpt2.md
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer trainer-engine
	tests/bench/text/run --docs

bench-decode:  ## measures how long a training on videos waits for them (five minutes)
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer trainer-engine trainer_video
	tests/bench/trainer/decode.py

bench-profile:  ## samples where a step of GPT-2 nano spends the CPU, ours and PyTorch's (three minutes; needs perf)
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer trainer-engine
	tests/bench/trainer/cpu_profile.py

bench-builds:  ## is build/dev slower than another build, before=FOLDER, such as an earlier checkout's build/dev? (seven minutes)
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer-engine
	tests/bench/trainer/two_builds.py $(or $(before),$(error before=FOLDER is missing: the folder of another build)) build/dev

bench-plan:  ## holds `trainer plan` to runs over shaped links (ten minutes; root)
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer trainer-engine
	tests/bench/plan/run

soak:  ## 200 jobs come and go in ten minutes; the operator may not grow
	tools/deps build
	tools/deps cluster
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainingjob-operator pod_reaper
	tests/soak/run

storm:  ## kills a training run 50 times (kill -9), half of the time in a save; it must end as if undisturbed
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer-engine
	TJ_ENGINE=$(CURDIR)/build/dev/trainer/trainer-engine tests/trainer/engine/kill_storm.py --kills 50

cpus:  ## the trainer's tests with the kernels that torch takes on older CPUs, and with 1, 2 and 4 threads (a quarter of an hour)
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer-engine trainer_torch_test trainer_zero_test
	tests/trainer/cpus build/dev

repeat:  ## the trainer's tests fifty times beside three busy processes (a night)
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev
	tests/trainer/repeat build/dev 50

images-from-source: build  ## the Dockerfile compiles the images, in a Debian of its own; the cluster's stories are told with them (an hour)
	cmake --build --preset dev --target hostile_manifests
	tools/deps apt
	tools/deps cluster
	tools/deps python-torch
	tests/e2e/run --from-source

faults:  ## two ranks on two nodes, killed, frozen, cut off: a table of who was blamed and how fast all were gone
	tools/deps apt
	tools/deps build
	tools/deps cluster
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer trainer-engine
	TJ_TRAINER=$(CURDIR)/build/dev/trainer/trainer tests/trainer/faults/fault_table.py
	tests/e2e/run --faults

network-policies:  ## who may connect to operator, page and workers, on a two-node cluster that enforces NetworkPolicies (root)
	tools/deps apt
	tools/deps cluster
	tools/deps network-policies
	tests/e2e/run --network-policies

seconds ?= 600
fuzz:  ## each fuzzer for ten minutes (seconds=N for other times): executions, inputs and coverage as a table
	tools/deps clang
	cmake --preset asan --log-level=WARNING >/dev/null
	cmake --build --preset asan --target fuzzers
	tests/fuzz/run --seconds $(seconds)

PREFIX ?= /usr/local
install: build  ## installs tj, the trainer, libraries and examples below PREFIX (/usr/local); DESTDIR for packagers
	for part in tj trainer libraries; do cmake --install build/dev --component $$part --strip --prefix $(abspath $(PREFIX)) >/dev/null; done
	@echo "installed in $(DESTDIR)$(abspath $(PREFIX)): bin/tj, bin/kubectl-tj, bin/trainer, lib/trainingjob, share/trainingjob/examples"

release: build  ## images as OCI archives, SBOMs, the chart, tarballs, Debian packages and SHA256SUMS, into build/release (root)
	tools/deps apt
	tools/deps cluster
	tools/release build/release

gpu-kit:  ## packs build/gpu-kit.tar.gz: gpu-kit/run in it tries everything on a machine with a GPU (docs/gpu-kit.md)
	tools/deps build
	cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target trainer trainer-engine trainer_nccl trainer_picture communicator_probe kernel_times pi0_colours qwen_scenes
	tools/gpu-kit

check:  ## static checks only: format, lint, clang-tidy
	tools/deps build
	tools/deps check
	cmake --preset dev --log-level=WARNING >/dev/null
	tools/check/all

format:  ## formats the C++ sources
	tools/deps check
	git ls-files -z '*.h' '*.cc' | xargs -0 clang-format-14 -i

site:  ## the documents as a site of plain pages: build/site/index.html
	tools/site/render >/dev/null
	@echo build/site/index.html

clean:  ## removes build/ (the caches outside stay)
	rm -rf build
