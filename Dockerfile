# Two images: `operator` (the controller, nothing but its program and shared libraries) and `trainer` (the entrypoint of
# the workers with libtorch for CPUs, FFmpeg's and Arrow's libraries, a sample text and a few sample videos). Compiles both from this
# source: `make images-from-source`, or a plain `docker build --target operator .`. tools/images passes the programs of
# build/dev, which the same flags compiled, in place of the stages `operator-programs` and `trainer-programs`, so that
# nothing is compiled twice.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS toolchain
ENV TRAININGJOB_CACHE=/cache CCACHE_DIR=/cache/ccache-images
WORKDIR /src
COPY tools/deps tools/cuda-headers tools/
RUN tools/deps build

FROM toolchain AS operator-programs
COPY . .
RUN cmake --preset release -DTJ_TRAINER=OFF \
 && cmake --build --preset release --target trainingjob-operator \
 && tools/programs operator build/release /out \
 && rm -rf build

FROM toolchain AS trainer-programs
COPY . .
RUN cmake --preset release -DTJ_OPERATOR=OFF \
 && cmake --build --preset release --target trainer trainer-engine trainer_nccl trainer_video trainer_parquet \
 && tools/programs trainer build/release /out \
 && rm -rf build

FROM ${BASE} AS operator
COPY --from=operator-programs /out/packages /usr/share/trainingjob/packages
RUN apt-get update -q && xargs -a /usr/share/trainingjob/packages apt-get install -y -q --no-install-recommends \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*
COPY --from=operator-programs /out/bin/trainingjob-operator /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/trainingjob-operator"]

FROM ${BASE} AS trainer
COPY --from=trainer-programs /out/packages /usr/share/trainingjob/packages
RUN apt-get update -q && xargs -a /usr/share/trainingjob/packages apt-get install -y -q --no-install-recommends \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*
COPY --from=trainer-programs /out/lib /usr/local/lib/trainingjob
RUN echo /usr/local/lib/trainingjob >/etc/ld.so.conf.d/trainingjob.conf && ldconfig
COPY --from=trainer-programs /out/bin /usr/local/bin/
COPY manifests/examples/text /usr/share/trainingjob/text
COPY manifests/examples/videos /usr/share/trainingjob/videos
WORKDIR /usr/share/trainingjob
ENTRYPOINT ["/usr/local/bin/trainer"]
