# Two images from one source: `operator` (the controller, nothing but its program and shared libraries) and
# `trainer` (the entrypoint of the workers with libtorch for CPUs, and a sample text). Built by tools/images,
# which mounts the project's cache at /cache; a plain `docker build --target operator .` works too, only cold.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS toolchain
ENV TRAININGJOB_CACHE=/cache CCACHE_DIR=/cache/ccache-images
WORKDIR /src
COPY tools/deps tools/cuda-headers tools/
RUN tools/deps build

FROM toolchain AS build-operator
COPY . .
RUN cmake --preset release -DTJ_TRAINER=OFF \
 && cmake --build --preset release --target trainingjob-operator \
 && install -D -s -t /out/bin $(find build/release -type f -executable -name trainingjob-operator) \
 && tools/hardened /out/bin/trainingjob-operator \
 && tools/runtime-packages /out/bin/trainingjob-operator >/out/packages \
 && rm -rf build

FROM toolchain AS build-trainer
COPY . .
RUN cmake --preset release -DTJ_OPERATOR=OFF \
 && cmake --build --preset release --target trainer trainer-engine trainer_nccl \
 && install -D -s -t /out/bin $(find build/release -type f -executable -name 'trainer*' ! -name '*.*') build/release/trainer/libtrainer_nccl.so \
 && tools/hardened /out/bin/* \
 && tools/runtime-packages /out/bin/* >/out/packages \
 && mkdir -p /out/lib && cp /cache/libtorch-*/lib/*.so* /out/lib/ \
 && rm -rf build

FROM ${BASE} AS operator
COPY --from=build-operator /out/packages /usr/share/trainingjob/packages
RUN apt-get update -q && xargs -a /usr/share/trainingjob/packages apt-get install -y -q --no-install-recommends \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*
COPY --from=build-operator /out/bin/trainingjob-operator /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/trainingjob-operator"]

FROM ${BASE} AS trainer
COPY --from=build-trainer /out/packages /usr/share/trainingjob/packages
RUN apt-get update -q && xargs -a /usr/share/trainingjob/packages apt-get install -y -q --no-install-recommends \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*
COPY --from=build-trainer /out/lib /usr/local/lib/trainingjob
RUN echo /usr/local/lib/trainingjob >/etc/ld.so.conf.d/trainingjob.conf && ldconfig
COPY --from=build-trainer /out/bin /usr/local/bin/
COPY manifests/examples/text /usr/share/trainingjob/text
WORKDIR /usr/share/trainingjob
ENTRYPOINT ["/usr/local/bin/trainer"]
