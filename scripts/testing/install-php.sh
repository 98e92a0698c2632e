#!/usr/bin/env bash
# Installs PHP, Composer and the packages that the client in clients/php is tested with, from Debian, which needs root.
# With TALLYSTICK_PHP=required these tests fail where there is no PHP; without it they are left out.
set -eu

packages='php-cli php-curl composer php-guzzlehttp-guzzle php-illuminate-support php-illuminate-container php-illuminate-config
  php-illuminate-bus php-illuminate-queue php-illuminate-events'
# shellcheck disable=SC2086
dpkg -s $packages >/dev/null 2>&1 && exit 0
# shellcheck disable=SC2086
apt-get install -y --no-install-recommends $packages ||
  { apt-get update && apt-get install -y --no-install-recommends $packages; }
