#!/usr/bin/env bash
# Installs the servers of engines into .runtimes: they are too heavy for `pnpm test`, which leaves out the tests that lack theirs.
# With TALLYSTICK_ENGINES=all these tests fail instead. Takes Redis from PATH, or from Debian, without root unless its lists are old.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Temporal's packages read a history in JSON only if they share one protobufjs.
npm install --prefix .runtimes --no-audit --no-fund @restatedev/restate-server@1.7.12 \
  protobufjs@8.8.1 @temporalio/testing@1.24.0 @temporalio/worker@1.24.0 miniflare@4.20260426.0

if ! command -v redis-server && ! command -v valkey-server && [ ! -x .runtimes/redis/usr/bin/redis-server ]; then
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' EXIT
  packages='redis-server redis-tools liblzf1 libjemalloc2 libatomic1'
  # shellcheck disable=SC2086
  (cd "$folder" && { apt-get download $packages || { apt-get update && apt-get download $packages; }; })
  for package in "$folder"/*.deb; do dpkg -x "$package" .runtimes/redis; done
fi
