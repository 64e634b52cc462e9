#!/bin/sh
# A rolling upgrade of a running `docker compose`: new processes are healthy before old ones drain, so calls are served throughout.
#
#   deploy/upgrade.sh VERSION      # the image roundhouse:VERSION, such as deploy/build.sh makes
#
# Missing secrets are made and migrations run first; old processes continue with the newer schema. ROUNDHOUSE_VERSION is kept in .env.
set -eu
cd "$(dirname "$0")/.."
version=${1:?usage: deploy/upgrade.sh VERSION}
docker image inspect "roundhouse:$version" > /dev/null || { echo "expected an image roundhouse:$version; build or load it first" >&2; exit 2; }
deploy/secrets.sh # a new version may need files that the previous one did not; passwords and URLs of other servers stay
touch .env
{ grep -v '^ROUNDHOUSE_VERSION=' .env || true; echo "ROUNDHOUSE_VERSION=$version"; } > .env.next
mv .env.next .env

docker compose run --rm --no-deps migrate
# twice as many api need twice the connections for a moment: see docs/self-hosting.md
for service in api worker; do
  old=$(docker compose ps --quiet "$service")
  count=$(echo "$old" | wc -w)
  [ "$count" -gt 0 ] || continue
  docker compose up --detach --no-deps --no-build --no-recreate --wait --scale "$service=$((count * 2))" "$service"
  # shellcheck disable=SC2086
  docker stop $old > /dev/null && docker rm $old > /dev/null
done
docker compose ps
