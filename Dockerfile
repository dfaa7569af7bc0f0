# opencse on a CPU, without root. Build it, see the trial run, and debias a model on documents in the current folder:
#
#     docker build -t opencse --build-arg TORCH_INDEX=URL .
#     docker run --rm opencse
#     docker run --rm --user "$(id -u)" -v "$PWD:/work" opencse run debias docs/ -o out/
#
# TORCH_INDEX is the address of PyTorch's index of CPU wheels (pytorch.org, "Get started"). Without it pip takes the default
# wheel, which on Linux brings CUDA's libraries and several gigabytes.
FROM python:3.11-slim

ARG TORCH_INDEX=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1

WORKDIR /build
COPY constraints.txt ./
RUN pip install ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$(grep '^torch==' constraints.txt)"
COPY pyproject.toml README.md LICENSE NOTICE CHANGELOG.md ./
COPY src ./src
RUN pip install --constraint constraints.txt ".[minilm,onnx]"

# Caches lie where any user may write, so that --user works.
ENV HOME=/tmp OPENCSE_CACHE=/tmp/opencse MPLCONFIGDIR=/tmp/matplotlib
RUN useradd --no-create-home opencse && mkdir /work && chown opencse /work
USER opencse
WORKDIR /work
ENTRYPOINT ["opencse"]
CMD ["run", "debias", "demo", "--backbone", "minilm", "--pairs", "demo", "-o", "out", "--quick", "--overwrite"]
