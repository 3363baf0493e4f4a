//! A small server of the Model Context Protocol whose behaviour can change.

/// A script that speaks the protocol line by line. Files beside it hold its tools, its answer and its `mood` (`die`, `sleep` or neither);
/// it records each call in `calls`.
pub(crate) const SERVER: &str = r#"#!/bin/sh
dir=$(dirname "$0")
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"1"}}' ;;
    *'"method":"tools/list"'*) result="{\"tools\":$(cat "$dir/tools.json")}" ;;
    *'"method":"tools/call"'*)
      printf '%s\n' "$line" >> "$dir/calls"
      case $(cat "$dir/mood") in
        die) echo "I give up" >&2; exit 3 ;;
        sleep) sleep 600 ;;
      esac
      result=$(cat "$dir/answer.json") ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;
