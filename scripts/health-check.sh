#!/bin/sh
# For cron: looks for what a crash left behind and repairs what can be repaired safely. Arguments go to `health check`.
set -eu
. "$(dirname -- "$0")/lib.sh"
health=$(find_program health)
explicit_path
cd "$root" # its .env counts when the workspace has none
exec "$health" check "$@"
