# Build with the repository's own build, run on the Node the figures are for.
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY . .
RUN npm run build && CI=true npx --yes pnpm@10.34.8 prune --prod

FROM node:24-bookworm-slim
RUN useradd --uid 10001 --create-home skald && mkdir -p /var/loki && chown 10001:10001 /var/loki
COPY --from=build --chown=10001:10001 /src/bin /app/bin
COPY --from=build --chown=10001:10001 /src/scripts /app/scripts
COPY --from=build --chown=10001:10001 /src/packages /app/packages
COPY --from=build --chown=10001:10001 /src/node_modules /app/node_modules
COPY --from=build --chown=10001:10001 /src/package.json /app/package.json
COPY deploy/docker/local-config.yaml /etc/loki/local-config.yaml
USER 10001
WORKDIR /var/loki
EXPOSE 3100 9095
VOLUME /var/loki
ENTRYPOINT ["/app/bin/skald"]
CMD ["-config.file=/etc/loki/local-config.yaml"]
