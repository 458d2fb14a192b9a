# A node of Soloist. `compose.yaml` shows two of them with Redis and a load balancer.

FROM rust:1-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY src ./src
COPY templates ./templates
COPY static ./static
# Cargo wants to see the file of every target that the manifest names.
COPY benches ./benches
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin soloist && cp target/release/soloist /soloist

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --home-dir /srv/soloist --shell /usr/sbin/nologin soloist \
    && install -d -o soloist -g soloist /srv/soloist/data /srv/soloist/examples/outbound/state /var/lib/outbound
COPY --from=build /soloist /usr/local/bin/soloist
COPY deploy/entrypoint.sh deploy/healthcheck.sh /usr/local/lib/soloist/
COPY soloist.toml /srv/soloist/
COPY examples /srv/soloist/examples/
WORKDIR /srv/soloist
USER soloist
# Beyond the container's own loopback, or no port could be published. Put TLS in front of it.
ENV SOLOIST_LISTEN=0.0.0.0:8080
EXPOSE 8080
VOLUME ["/srv/soloist/data", "/var/lib/outbound"]
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["bash", "/usr/local/lib/soloist/healthcheck.sh"]
# tini is process 1: it hands signals on and reaps what nobody else does.
ENTRYPOINT ["tini", "--", "sh", "/usr/local/lib/soloist/entrypoint.sh"]
CMD ["serve"]
