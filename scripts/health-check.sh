#!/bin/sh
# For cron: looks for what a crash left behind and repairs what can be repaired safely. Arguments go to `health check`.
set -eu
. "$(dirname -- "$0")/lib.sh"
health=$(find_program health)
explicit_path
cd "$root" # an .env here counted once: the program says how to move it
exec "$health" check "$@"
