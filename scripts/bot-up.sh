#!/bin/sh
# For cron: starts the bot, unless one runs. It keeps its own log; what goes wrong is in bot.err.log, too. Arguments go to `bot`.
set -eu
. "$(dirname -- "$0")/lib.sh"
bot=$(find_program bot)
explicit_path
cd "$root" # an .env here counted once: the program says how to move it
logs=$(workspace)/logs
(umask 077 && mkdir -p "$logs" && : >>"$logs/bot.err.log")
exec "$bot" --unless-running "$@" >>"$logs/bot.err.log" 2>&1
