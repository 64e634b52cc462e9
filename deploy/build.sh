#!/bin/sh
# Builds the image with the tags VERSION and VERSION-COMMIT: one commit has one tag, and what is not committed has none.
#
#   deploy/build.sh [--force]     # --force: build again although the tag is there
#
# Arguments for `docker build` may be given in BUILD_FLAGS, such as `--network host`.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' package.json)
commit=$(git rev-parse --short=12 HEAD)
# what .dockerignore lets in
if [ -n "$(git status --porcelain -- Dockerfile package.json package-lock.json .npmrc houses.yaml houses.real.yaml src jobs sql)" ]; then
  echo "expected a clean work tree, found changes; commit them, so that the tag names what is in the image" >&2
  exit 2
fi
tag=roundhouse:$version-$commit
if [ "${1:-}" != --force ] && docker image inspect "$tag" > /dev/null 2>&1; then
  echo "$tag is built already"
else
  # shellcheck disable=SC2086
  docker build ${BUILD_FLAGS:-} --build-arg "VERSION=$version" --build-arg "REVISION=$commit" -t "$tag" .
fi
docker tag "$tag" "roundhouse:$version"
echo "$tag"
