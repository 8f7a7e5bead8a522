# Assent in a small image: no build tools, no package manager, no root.
#   docker build -t assent .
#   docker run -p 8000:8000 -v assent:/data assent
FROM python:3.13-slim-trixie AS build
WORKDIR /assent
RUN python -m venv /assent/.venv
COPY requirements.lock .
RUN .venv/bin/python -m pip install --no-cache-dir --no-deps --require-hashes --requirement requirements.lock \
    && .venv/bin/python -m pip uninstall --yes pip
COPY app app
COPY migrations migrations
COPY static static
COPY templates templates
COPY pyproject.toml ./
RUN .venv/bin/python -m compileall -q app migrations

FROM python:3.13-slim-trixie
RUN useradd --system --uid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin assent \
    && install --directory --owner assent --group assent --mode 0700 /data
WORKDIR /assent
COPY --from=build /assent /assent
ENV ASSENT_HOST=0.0.0.0 \
    ASSENT_PORT=8000 \
    ASSENT_DATA_DIR=/data \
    PATH=/assent/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1
USER 10001
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['ASSENT_PORT'] + '/readyz', timeout=4)"]
ENTRYPOINT ["python", "-m", "app"]
