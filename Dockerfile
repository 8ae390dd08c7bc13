# The service in a small image: docker build -t streamlasso . (docs/deploy.md)
FROM python:3.13-slim AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY src src
RUN python -m venv /opt/streamlasso \
    && /opt/streamlasso/bin/pip install --no-cache-dir --no-compile ".[serve,kafka]"

FROM python:3.13-slim
COPY --from=build /opt/streamlasso /opt/streamlasso
# The image may be read-only (--read-only): all that is written is in the volume.
ENV PATH=/opt/streamlasso/bin:$PATH PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=/data/.matplotlib TMPDIR=/data
RUN install -d -o 10001 -g 10001 -m 0700 /data
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
ENTRYPOINT ["streamlasso"]
# Reachable from other machines, so tokens are needed: mount them, say as a secret.
CMD ["serve", "--store", "/data", "--host", "0.0.0.0", "--tokens", "/run/secrets/streamlasso"]
