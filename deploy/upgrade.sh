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
cp -p .env .env.next # it may hold secrets: its mode stays
{ grep -v '^ROUNDHOUSE_VERSION=' .env || true; echo "ROUNDHOUSE_VERSION=$version"; } > .env.next
mv .env.next .env

docker compose run --rm --no-deps migrate
# twice as many api need twice the connections for a moment: see docs/self-hosting.md
for service in api worker; do
  old=$(docker compose ps --quiet "$service")
  count=$(echo "$old" | wc -w)
  [ "$count" -gt 0 ] || continue
  if ! docker compose up --detach --no-deps --no-build --no-recreate --wait --scale "$service=$((count * 2))" "$service"; then
    # a retry would count them as old
    for new in $(docker compose ps --all --quiet "$service" | grep -vxF "$old"); do
      docker logs --tail 20 "$new" >&2 || true
      docker rm --force "$new" > /dev/null
    done
    echo "$service of $version did not become healthy: its containers were removed, its last log lines are above, and the old processes continue" >&2
    exit 1
  fi
  # shellcheck disable=SC2086
  if ! { docker stop $old && docker rm $old; } > /dev/null; then
    echo "old processes of $service are left; end them before the next upgrade: docker rm --force" $old >&2
    exit 1
  fi
done
docker compose ps
