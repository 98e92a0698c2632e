#!/usr/bin/env bash
# Installs Chromium for the tests of the inspector: Debian's, which needs root, or else one from npm, into .runtimes.
# With TALLYSTICK_BROWSER=required these tests fail where there is none; without it they are left out.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [ -x "${CHROMIUM_PATH:-}" ] || command -v chromium || command -v google-chrome; then exit 0; fi

if [ "$(id -u)" -eq 0 ] && command -v apt-get; then
  packages='chromium fonts-dejavu-core'
  # shellcheck disable=SC2086
  apt-get install -y --no-install-recommends $packages ||
    { apt-get update && apt-get install -y --no-install-recommends $packages; } && exit 0
fi

npm install --prefix .runtimes --no-audit --no-fund @sparticuz/chromium@153.0.0
