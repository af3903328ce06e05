# The service in a container: the binary on a minimal Debian, as an unprivileged user.
#
#   docker build --build-arg COMMIT=$(git rev-parse HEAD) --tag pitlane .
#   docker run --network host --volume pitlane:/var/lib/pitlane pitlane
#
# By default the service listens on loopback only. With `--network host` this is the loopback of the
# host; without it, the service cannot be reached. To publish ports, first create a login, then set
# the listeners (config/service.toml explains more):
#
#   docker run --rm --volume pitlane:/var/lib/pitlane pitlane token create desk --role trade --file /var/lib/pitlane/tokens
#   docker run --volume pitlane:/var/lib/pitlane --publish 9443:9443 \
#       --env PITLANE_AUTH__TOKENS_FILE=/var/lib/pitlane/tokens --env PITLANE_HTTPS__LISTEN=0.0.0.0:9443 pitlane
#
# Docker forbids io_uring by default; the service then uses epoll, which is also the default of
# `net.driver`. The container also runs with
# `--read-only --cap-drop ALL --security-opt no-new-privileges`.

FROM rust:1.95-slim-bookworm AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# make and perl for aws-lc (the image has gcc and libc6-dev); npm for the web page.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends make perl nodejs npm \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
# The commit is an argument, because the files of git are not copied.
ARG COMMIT=unknown
ENV BUILT_FROM_COMMIT=$COMMIT
RUN make page \
    && cargo build --release --locked --package pitlane \
    && install -D -m 755 target/release/pitlane /image/usr/local/bin/pitlane \
    && install -D -m 644 config/service.toml /image/etc/pitlane/pitlane.toml \
    && install -d -m 700 -o 10001 -g 10001 /image/var/lib/pitlane

FROM debian:bookworm-slim
COPY --from=build /image /
# By number, because a host that forbids root checks the number and does not know the name.
USER 10001:10001
VOLUME /var/lib/pitlane
WORKDIR /var/lib/pitlane
# https, STOMP over TLS, FIX over TLS. The settings must first give them an address other than
# loopback.
EXPOSE 9443 61612 9881
# SIGTERM shuts the service down gracefully, in less than five seconds.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["pitlane", "health", "--config", "/etc/pitlane/pitlane.toml"]
ENTRYPOINT ["pitlane"]
CMD ["serve", "--quiet", "--config", "/etc/pitlane/pitlane.toml"]
