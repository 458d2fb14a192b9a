# A node of Soloist. `compose.yaml` shows two of them with Redis and a load balancer.
#
#   docker build -t soloist --build-arg SOLOIST_COMMIT=$(git rev-parse --short=12 HEAD) .
#
# A release names both images by digest, as deploy/digests.sh finds them.
ARG BUILD_IMAGE=rust:1-bookworm
ARG RUN_IMAGE=debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock build.rs ./
COPY src ./src
COPY crates ./crates
COPY templates ./templates
COPY static ./static
# Cargo wants to see the file of every target that the manifest names.
COPY benches ./benches
ARG SOLOIST_COMMIT=
ARG SOURCE_DATE_EPOCH=
# What is built stays in this layer: a directory that builds share could hold the program of another checkout, because cargo
# goes by the times of files. Only what is downloaded is shared.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    cargo build --profile dist --features full --locked --bin soloist && cp target/dist/soloist /soloist

FROM ${RUN_IMAGE}
# Group 0 may do what the user may: whoever runs the image under a uid of its own gives it that group, as OpenShift does.
RUN apt-get update \
    && apt-get install -y --no-install-recommends tini tzdata \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/apt /var/log/*.log \
    && useradd --system --uid 10001 --user-group --home-dir /srv/soloist --shell /usr/sbin/nologin soloist \
    && install -d -o soloist -g root -m 2770 /srv/soloist/data /srv/soloist/examples/outbound/state /var/lib/outbound /run/soloist
COPY --from=build /soloist /usr/local/bin/soloist
# The authorities alone: their package brings OpenSSL with it, 9 MB that nothing here uses.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY deploy/entrypoint.sh /usr/local/lib/soloist/
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/soloist/
COPY soloist.toml /srv/soloist/
COPY examples /srv/soloist/examples/
WORKDIR /srv/soloist
# By number: `runAsNonRoot` of Kubernetes reads no names.
USER 10001:10001
# Beyond the container's own loopback, or no port could be published. Put TLS in front of it.
# Programs in the same pod are watched there, if the directory can be written: docs/lifeline.md.
ENV SOLOIST_LISTEN=0.0.0.0:8080 SOLOIST_LIFELINE=/run/soloist/lifeline.sock HOME=/srv/soloist
EXPOSE 8080
# Nothing else is written besides /tmp: the root may be read-only (--read-only --tmpfs /tmp).
VOLUME ["/srv/soloist/data", "/var/lib/outbound"]
# It reads where the node listens, and whether by TLS, from the configuration.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["soloist", "ping"]
# An end in order. `docker stop` waits 10 s for it: give --stop-timeout when a job's stop_grace is longer than a few seconds.
STOPSIGNAL SIGTERM
ARG VERSION=
ARG SOLOIST_COMMIT=
LABEL org.opencontainers.image.title="Soloist" \
      org.opencontainers.image.description="Runs a script exactly once in a cluster, for as long as somebody wants it" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${SOLOIST_COMMIT}"
# tini is process 1: it hands signals on and reaps what nobody else does.
ENTRYPOINT ["tini", "--", "sh", "/usr/local/lib/soloist/entrypoint.sh"]
CMD ["serve"]
