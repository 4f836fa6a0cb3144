#!/bin/sh
# Base images for the tests, made on this machine under the names that task folders use: none comes from a registry.
# As root, with a Docker engine that answers and debootstrap. What is there already is kept.
set -eu
root=$1   # a Debian root with python3 and pytest
have() { docker image inspect "$1" >/dev/null 2>&1; }

if ! have debian:bookworm-slim; then
    tar -C "$root" -c . | docker import --change 'CMD ["bash"]' - debian:bookworm-slim >/dev/null
fi
have ubuntu:24.04 || docker tag debian:bookworm-slim ubuntu:24.04
if ! have python:3.13-slim; then
    # the interpreter is Debian's own; what a build installs comes from where this machine's pip is told to look
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cp /etc/ssl/certs/ca-certificates.crt "$work/ca.crt"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources /etc/pip.conf; do
        if [ -f "$file" ]; then cp "$file" "$work/"; fi
    done
    cat >"$work/Dockerfile" <<'END'
FROM debian:bookworm-slim
COPY . /tmp/from-host/
RUN mkdir -p /etc/ssl/certs /etc/apt/sources.list.d && cp /tmp/from-host/ca.crt /etc/ssl/certs/ca-certificates.crt \
 && rm -f /etc/apt/sources.list \
 && for f in sources.list:/etc/apt pip.conf:/etc debian.sources:/etc/apt/sources.list.d; do \
      if [ -f "/tmp/from-host/${f%%:*}" ]; then cp "/tmp/from-host/${f%%:*}" "${f#*:}/"; fi; done \
 && apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-pip python-is-python3 >/dev/null \
 && cp /tmp/from-host/ca.crt /etc/ssl/certs/ca-certificates.crt && rm -rf /tmp/from-host /var/lib/apt/lists/*
ENV PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
CMD ["python3"]
END
    DOCKER_BUILDKIT=0 docker build -q -t python:3.13-slim "$work" >/dev/null
fi
if ! have busybox:latest; then
    work2=$(mktemp -d)
    mkdir -p "$work2/bin" "$work2/tmp" "$work2/etc" "$work2/root"
    cp "$(command -v busybox)" "$work2/bin/busybox"
    for name in $("$work2/bin/busybox" --list); do
        if [ "$name" != busybox ]; then ln -s busybox "$work2/bin/$name"; fi
    done
    printf 'root:x:0:0:root:/root:/bin/sh\n' >"$work2/etc/passwd"
    tar -C "$work2" -c . | docker import --change 'CMD ["sh"]' - busybox:latest >/dev/null
    rm -rf "$work2"
fi
