#!/bin/sh
# For cron: does what is due, if anything is. Arguments go to `wake --once`.
set -eu
. "$(dirname -- "$0")/lib.sh"
wake=$(find_program wake)
explicit_path
cd "$root" # its .env counts when the workspace has none
exec "$wake" --once "$@"
