# Builds on the Node that the published figures are for, and runs on a base without a shell or a package manager.
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY . .
RUN SKALD_NO_RUNTIME=1 npm run build \
  && node deploy/docker/assemble.mjs /out \
  && mkdir -p /empty/loki

# It has only libc, libstdc++, certificates and Node: 86 MB less than the slim image, and no shell for an intruder.
FROM gcr.io/distroless/nodejs24-debian13
COPY --from=build /out /app
COPY deploy/docker/local-config.yaml /etc/loki/local-config.yaml
COPY deploy/docker/health.mjs deploy/docker/prepare-shutdown.mjs /app/
COPY --from=build --chown=10001:10001 /empty/loki /var/loki
USER 10001:10001
WORKDIR /var/loki
# The port of HTTP, and the port of calls between services.
EXPOSE 3100 9095
# The program writes only here: the root may be read-only, and /tmp is not needed.
VOLUME /var/loki
# Large memory that is freed goes back to the system at once.
ENV MALLOC_MMAP_THRESHOLD_=131072
# After SIGTERM the process seals and uploads what is in memory: give it 60 s or more.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s --retries=3 CMD ["/nodejs/bin/node", "/app/health.mjs"]
# Nor does a burst of requests leave V8 with 128 MiB for new objects.
ENTRYPOINT ["/nodejs/bin/node", "--max-semi-space-size=16", "/app/packages/skald/bundle/main.js"]
CMD ["-config.file=/etc/loki/local-config.yaml"]
