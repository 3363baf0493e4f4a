#!/bin/sh
# For cron: does what is due, if anything is. Arguments go to `wake --once`.
set -eu
. "$(dirname -- "$0")/lib.sh"
wake=$(find_program wake)
explicit_path
cd "$root" # an .env here counted once: the program says how to move it
exec "$wake" --once "$@"
