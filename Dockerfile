# The service in a container: the binary on a small Debian, as a user without rights.
#
#   docker build --build-arg COMMIT=$(git rev-parse HEAD) --tag pitlane .
#   docker run --network host --volume pitlane:/var/lib/pitlane pitlane
#
# As it stands it listens on loopback only, which is the host's with `--network host` and nobody's without. To be reached through published ports
# it needs somebody who may log in, and then its listeners (config/service.toml tells more):
#
#   docker run --rm --volume pitlane:/var/lib/pitlane pitlane token create desk --role trade --file /var/lib/pitlane/tokens
#   docker run --volume pitlane:/var/lib/pitlane --publish 9443:9443 \
#       --env PITLANE_AUTH__TOKENS_FILE=/var/lib/pitlane/tokens --env PITLANE_HTTPS__LISTEN=0.0.0.0:9443 pitlane
#
# Docker forbids io_uring by default; sockets are served by epoll then, as they are unless `net.driver` says otherwise. It runs with
# `--read-only --cap-drop ALL --security-opt no-new-privileges`.

FROM rust:1.95-slim-bookworm AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# For aws-lc: cc comes with the image's libc6-dev and gcc; for the page: npm.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends make perl nodejs npm \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
# The commit is told, since git's files are not copied.
ARG COMMIT=unknown
ENV BUILT_FROM_COMMIT=$COMMIT
RUN make page \
    && cargo build --release --locked --package pitlane \
    && install -D -m 755 target/release/pitlane /image/usr/local/bin/pitlane \
    && install -D -m 644 config/service.toml /image/etc/pitlane/pitlane.toml \
    && install -d -m 700 -o 10001 -g 10001 /image/var/lib/pitlane

FROM debian:bookworm-slim
COPY --from=build /image /
# By number, so that it holds where names are not known: a host that forbids root looks at numbers.
USER 10001:10001
VOLUME /var/lib/pitlane
WORKDIR /var/lib/pitlane
# https, STOMP over TLS, FIX over TLS; nothing listens there before it is told to.
EXPOSE 9443 61612 9881
# SIGTERM ends it in good order, in less than five seconds.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["pitlane", "health", "--config", "/etc/pitlane/pitlane.toml"]
ENTRYPOINT ["pitlane"]
CMD ["serve", "--quiet", "--config", "/etc/pitlane/pitlane.toml"]
