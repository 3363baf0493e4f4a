//! A small server of the Model Context Protocol that can change its mind.

/// Speaks the protocol line by line. Its tools, its answer and its mood stand in files beside it; it writes down what it is called.
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
