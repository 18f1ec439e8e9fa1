# Three images: `operator` (the controller, `tj` for the page inside a cluster, and their shared libraries), `trainer` (the
# entrypoint of the workers with libtorch for CPUs, FFmpeg's, Arrow's and SentencePiece's libraries, and a sample text, a few
# sample videos, episodes of a robot and rooms to walk through), and `trainer-cuda`, the same with PyTorch's libraries for CUDA and NVIDIA's (NCCL,
# cuDNN, cuBLAS, ...) out of their wheels. None runs as root.
#
# Compiles them from this source: `make images-from-source`, or a plain `docker build --target operator .`. tools/images
# passes the programs of build/dev, which the same flags compiled, in place of the stages `operator-programs` and
# `trainer-programs`, so that nothing is compiled twice, and the SBOM in place of the stages that make it here.
# The operator builds on arm64, too: its stages name no architecture, and all that it needs are Debian's packages. libtorch's
# wheel is pinned for x86-64 only (tools/deps).
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS toolchain
ENV TRAININGJOB_CACHE=/cache CCACHE_DIR=/cache/ccache-images
WORKDIR /src
COPY tools/deps tools/cuda-headers tools/
RUN tools/deps operator

FROM toolchain AS operator-programs
COPY . .
RUN cmake --preset release -DTJ_TRAINER=OFF \
 && cmake --build --preset release --target trainingjob-operator tj \
 && tools/programs operator build/release /out \
 && rm -rf build

FROM toolchain AS trainer-programs
RUN tools/deps build
COPY . .
RUN cmake --preset release -DTJ_OPERATOR=OFF \
 && cmake --build --preset release --target trainer trainer-engine trainer_nccl trainer_video trainer_parquet trainer_sentencepiece trainer_picture \
 && tools/programs trainer build/release /out \
 && rm -rf build

FROM toolchain AS trainer-cuda-libraries
COPY tools/cuda-libraries tools/cuda-libraries
RUN tools/cuda-libraries/fetch /out

# What an image holds. /var/lib/dpkg says which packages, /usr/share/trainingjob/origin what our programs are made of.
FROM ${BASE} AS operator-content
COPY --from=operator-programs /out/packages /out/archives /out/wheels /usr/share/trainingjob/origin/
RUN apt-get update -q && xargs -a /usr/share/trainingjob/origin/packages apt-get install -y -q --no-install-recommends \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*
COPY --from=operator-programs /out/tree /usr/local/

FROM ${BASE} AS trainer-content
COPY --from=trainer-programs /out/packages /out/archives /out/wheels /usr/share/trainingjob/origin/
RUN apt-get update -q && xargs -a /usr/share/trainingjob/origin/packages apt-get install -y -q --no-install-recommends \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*
# Programs that ask who they are want a line here; no folder of this user's is needed.
RUN echo 'trainer:x:65532:65532:TrainingJob trainer:/tmp:/usr/sbin/nologin' >>/etc/passwd && echo 'trainer:x:65532:' >>/etc/group
COPY --from=trainer-programs /out/tree /usr/local/
COPY manifests/examples/text /usr/share/trainingjob/text
COPY manifests/examples/videos /usr/share/trainingjob/videos
COPY manifests/examples/robot /usr/share/trainingjob/robot
COPY manifests/examples/navigation /usr/share/trainingjob/navigation

FROM trainer-content AS trainer-cuda-content
COPY --from=trainer-cuda-libraries /out/lib /usr/local/lib/trainingjob
COPY --from=trainer-cuda-libraries /out/wheels /usr/share/trainingjob/origin/cuda-wheels
# cuDNN and others load parts of themselves by name.
RUN cat /usr/share/trainingjob/origin/cuda-wheels >>/usr/share/trainingjob/origin/wheels \
 && echo /usr/local/lib/trainingjob >/etc/ld.so.conf.d/trainingjob.conf && ldconfig && rm -rf /var/cache/ldconfig

# SPDX documents of what the images hold.
FROM toolchain AS operator-sbom
ARG VERSION=0.1.0
COPY tools/sbom tools/
RUN --mount=type=bind,from=operator-content,target=/image mkdir /out && tools/sbom --name trainingjob-operator --version "$VERSION" \
  --programs /image/usr/local --origin /image/usr/share/trainingjob/origin --root /image >/out/sbom.spdx.json

FROM toolchain AS trainer-sbom
ARG VERSION=0.1.0
COPY tools/sbom tools/
RUN --mount=type=bind,from=trainer-content,target=/image mkdir /out && tools/sbom --name trainingjob-trainer --version "$VERSION" \
  --programs /image/usr/local --origin /image/usr/share/trainingjob/origin --root /image >/out/sbom.spdx.json

FROM toolchain AS trainer-cuda-sbom
ARG VERSION=0.1.0
COPY tools/sbom tools/
RUN --mount=type=bind,from=trainer-cuda-content,target=/image mkdir /out && tools/sbom --name trainingjob-trainer-cuda --version "$VERSION" \
  --programs /image/usr/local --origin /image/usr/share/trainingjob/origin --root /image >/out/sbom.spdx.json

# The images. What differs from one commit to the next comes last, so that it costs no layer.
FROM operator-content AS operator
COPY --from=operator-sbom /out/sbom.spdx.json /usr/share/trainingjob/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/trainingjob-operator"]
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
ARG SOURCE=https://kubebrain.io/trainingjob
LABEL org.opencontainers.image.title="TrainingJob operator" \
      org.opencontainers.image.description="Runs TrainingJobs as gangs of ranked worker pods" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"

FROM trainer-content AS trainer
COPY --from=trainer-sbom /out/sbom.spdx.json /usr/share/trainingjob/
WORKDIR /usr/share/trainingjob
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/trainer"]
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
ARG SOURCE=https://kubebrain.io/trainingjob
LABEL org.opencontainers.image.title="TrainingJob trainer" \
      org.opencontainers.image.description="Trains as one worker of a TrainingJob, on CPUs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"

FROM trainer-cuda-content AS trainer-cuda
COPY --from=trainer-cuda-sbom /out/sbom.spdx.json /usr/share/trainingjob/
WORKDIR /usr/share/trainingjob
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/trainer"]
# NVIDIA's container runtime brings the driver's libraries into a container that asks for it so.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility,video
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
ARG SOURCE=https://kubebrain.io/trainingjob
LABEL org.opencontainers.image.title="TrainingJob trainer for CUDA" \
      org.opencontainers.image.description="Trains as one worker of a TrainingJob, on NVIDIA's GPUs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"
