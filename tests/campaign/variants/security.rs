//! The list of what a hostile mind has to find. What each breaks is a promise of docs/SECURITY.md.
//!
//! Where two walls stand before the same thing, none of them is here: the other one holds. Their tests look at each alone
//! (docs/SECURITY.md names them).

use super::Variant;

/// So many trials are all that there are, and more.
const ALL_TRIALS: u64 = 1_000;

type Words = &'static str;

const fn hostile(name: Words, file: Words, line: Words, broken: Words) -> Variant {
    Variant { name, layer: "hostile", file, line, broken, trials: ALL_TRIALS }
}

const fn story(name: Words, file: Words, line: Words, broken: Words) -> Variant {
    Variant { name, layer: "stories", file, line, broken, trials: ALL_TRIALS }
}

/// All of them.
pub(crate) const VARIANTS: &[Variant] = &[
    hostile(
        "a folder's end is one danger among others",
        "src/policy/classify/destroy.rs",
        r#""rm" | "grm" if is_recursive() =>"#,
        r#""rm" | "grm" if false && is_recursive() =>"#,
    ),
    hostile(
        "what leaves after others' words needn't ask",
        "src/policy/judge.rs",
        r#"scales.ask(format!("Text from {taint} was read in this cycle, and this leaves the machine."));"#,
        "drop(taint.len());",
    ),
    hostile(
        "what persists after others' words needn't ask",
        "src/policy/judge.rs",
        r#"scales.ask(format!("Text from {taint} was read in this cycle, and this outlives it."));"#,
        "drop(taint.len());",
    ),
    hostile(
        "notes stay free after others' words",
        "src/policy/judge.rs",
        "if subject.is_free && subject.reach != Reach::Steers && !outlives_taint {",
        "if subject.is_free && subject.reach != Reach::Steers && (!outlives_taint || true) {",
    ),
    hostile(
        "a forwarded message is taken for its sender's words",
        "src/cycle/taint.rs",
        "joined(messages.iter().filter_map(|message| message.words_of_others()).chain(others))",
        "joined(messages.iter().filter_map(|message| message.words_of_others().filter(|_| false)).chain(others))",
    ),
    hostile(
        "a quotation is taken for its sender's words",
        "src/cycle/taint.rs",
        "message.quoted.is_some() && !message.quotes_own",
        "message.quoted.is_some() && message.quotes_own",
    ),
    hostile("a page's words are nobody's", "src/tool/web_fetch.rs", "taint: Some(page.origin),", "taint: None,"),
    hostile(
        "a program's words are nobody's",
        "src/tool/bash.rs",
        "taint: Some(TAINT.to_owned()),",
        "taint: Some(TAINT.to_owned()).filter(|_| false),",
    ),
    hostile(
        "a file's words are nobody's",
        "src/tool/edit.rs",
        "taint: files::origin(place, &whole, world),",
        "taint: files::origin(place, &whole, world).filter(|_| false),",
    ),
    hostile(
        "an MCP server's failure is nobody's word",
        "src/mcp/client/tools.rs",
        "Done { content, taint: Some(origin(server)), is_failure: true",
        "Done { content, taint: Some(origin(server)).filter(|_| false), is_failure: true",
    ),
    hostile(
        "an MCP server's call stays on this machine",
        "src/mcp/client/tools.rs",
        "reach: Reach::Leaves,",
        "reach: Reach::Within,",
    ),
    hostile(
        "what a cycle learns of others is known at once",
        "src/tool/remember.rs",
        "if let Some(taint) = &world.taint {",
        "if let Some(taint) = world.taint.as_ref().filter(|_| false) {",
    ),
    hostile(
        "a forward stands in the next opening",
        "src/queue/inbox.rs",
        "Some(_) => provenance::of_incoming(&kind, &text, forwarded_from.as_deref()),",
        "Some(_) => provenance::of_incoming(&kind, &text, forwarded_from.as_deref()).filter(|_| false),",
    ),
    hostile(
        "an answer after others' words stands in the next opening",
        "src/queue/inbox.rs",
        "None => row.get(6)?,",
        "None => row.get::<_, Option<String>>(6)?.filter(|_| false),",
    ),
    hostile(
        "facts in quarantine stand in the next opening",
        "src/memory/others.rs",
        "folded(title) == folded(UNCONFIRMED)",
        "folded(title) == folded(UNCONFIRMED) && false",
    ),
    hostile(
        "what a marked wake did stands in the next opening",
        "src/cycle/finish.rs",
        "others::mark(self.store.taints_of(&ending.cycle.id)?.is_some());",
        "others::mark(self.store.taints_of(&ending.cycle.id)?.is_some() && false);",
    ),
    hostile(
        "reading what was withheld is free",
        "src/tool/exchange.rs",
        "taint: (!origins.is_empty()).then(",
        "taint: (!origins.is_empty() && false).then(",
    ),
    hostile(
        "an own answer is quoted as if nobody else had had a hand in it",
        "src/queue/inbox.rs",
        "provenance::quotes_own(tx, bot_id, message)?,",
        "message.quotes_own || provenance::quotes_own(tx, bot_id, message)?,",
    ),
    hostile(
        "a yes counts for other bytes",
        "src/queue/approvals.rs",
        "AND action = ?4 AND state = 'approved'",
        "AND ?4 = ?4 AND state = 'approved'",
    ),
    hostile(
        "a no counts as a yes",
        "src/queue/approvals.rs",
        "(id, decided(is_approval), rfc3339(now)),",
        "(id, decided(is_approval || true), rfc3339(now)),",
    ),
    hostile(
        "a question can be answered for ever",
        "src/queue/approvals.rs",
        r#"WHERE id = ?1 AND state = 'pending' AND expires_at > ?3","#,
        r#"WHERE id = ?1 AND state = 'pending' AND ?3 = ?3","#,
    ),
    hostile(
        "a mask hides what is agreed to",
        "src/cycle/ask.rs",
        "if verdict.decision == Decision::Ask && is_masked() {",
        "if verdict.decision == Decision::Ask && is_masked() && false {",
    ),
    hostile(
        "what a screen doesn't show is asked about as it is",
        "src/shown.rs",
        "if is_hidden(c) { c.escape_unicode()",
        "if is_hidden(c) && false { c.escape_unicode()",
    ),
    hostile(
        "a call carries a secret away",
        "src/cycle/ask.rs",
        "if sends && redactor.carries_live_secret(input) {",
        "if sends && redactor.carries_live_secret(input) && false {",
    ),
    hostile(
        "a secret spelled in part passes",
        "src/redact.rs",
        "[text, &once, &twice].into_iter()",
        "[text].into_iter()",
    ),
    hostile("a place of keys isn't hidden", "src/sandbox/places.rs", "    \".gnupg\",\n", ""),
    hostile(
        "the workspace isn't covered",
        "src/sandbox/mod.rs",
        "covered: vec![config.workspace_dir.clone()],",
        "covered: Vec::new(),",
    ),
    hostile(
        "a granted folder's settings aren't hidden",
        "src/sandbox/layout.rs",
        "add_hidden(&file, &mut add);",
        "drop(file);",
    ),
    hostile("the shell has the machine's network", "src/sandbox/bubblewrap.rs", "        \"--unshare-net\",\n", ""),
    hostile(
        "a variable that isn't listed comes along",
        "src/sandbox/mod.rs",
        "    \"LANGUAGE\",\n",
        "    \"CANARY_IN_ENV\",\n",
    ),
    hostile(
        "a file with a second name is read",
        "src/hands/beneath.rs",
        "if found.nlink() > 1 {",
        "if found.nlink() > 2 {",
    ),
    hostile(
        "a link to a folder is followed",
        "src/hands/beneath.rs",
        "OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);",
        "OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);",
    ),
    hostile(
        "an address isn't judged before it is dialled",
        "src/web/dial.rs",
        ".filter(|_| !target.is_granted);",
        ".filter(|_| !target.is_granted && false);",
    ),
    story(
        "a number that somebody else has by now passes for the dead one",
        "src/process/identity.rs",
        "living == *self",
        "living.boot_id == self.boot_id",
    ),
    story(
        "a number of another boot passes for one of this",
        "src/process/identity.rs",
        "living == *self",
        "living.started == self.started",
    ),
    story(
        "a press counts wherever it was made",
        "src/queue/approvals.rs",
        r#"AND (p.channel_message_id = ?6 OR p.repeats > 0))","#,
        r#"AND ?6 = ?6)","#,
    ),
    story(
        "a press counts after another",
        "src/queue/approvals.rs",
        "WHERE nonce = ?1 AND state = 'pending' AND expires_at > ?3 AND chat_id = ?5",
        "WHERE nonce = ?1 AND expires_at > ?3 AND chat_id = ?5",
    ),
    story(
        "no answer is a yes",
        "src/cycle/ask.rs",
        r#"Some(ApprovalState::Approved) => Some((true, "")),"#,
        r#"Some(ApprovalState::Approved | ApprovalState::Expired) => Some((true, "")),"#,
    ),
    story(
        "links are looked at by Telegram",
        "src/channel/telegram/api.rs",
        "link_preview_options: LinkPreviewOptions { is_disabled: true },",
        "link_preview_options: LinkPreviewOptions { is_disabled: false },",
    ),
    story(
        "what waits for the mind isn't stopped",
        "src/cycle/drive.rs",
        "() = self.halted() => Err(Interrupt::Halted),",
        "() = std::future::pending() => Err(Interrupt::Halted),",
    ),
    story(
        "redirects are followed unseen",
        "src/web/dial.rs",
        ".redirect(Policy::none())",
        ".redirect(Policy::limited(5))",
    ),
    story(
        "in a listed group anybody is heard",
        "src/channel/telegram/incoming.rs",
        "ChatType::Group => listed(chat_id) && listed(sender_id),",
        "ChatType::Group => listed(chat_id),",
    ),
    story(
        "base64 is known at one alignment alone",
        "src/redact/spellings.rs",
        "let coded = (0..3).flat_map(|alignment| {",
        "let coded = (0..1).flat_map(|alignment| {",
    ),
    story(
        "hexadecimal isn't known",
        "src/redact/spellings.rs",
        r#"let hexes = [hex("", ""), hex("", ":"),"#,
        r#"let hexes = [hex("", ":"), hex("", ":"),"#,
    ),
    story(
        "the repository's own programs are run",
        "src/repo/remote.rs",
        r#"        "core.hooksPath=/dev/null","#,
        r#"        "core.hooksPath=.git/hooks","#,
    ),
    story(
        "what is pushed isn't looked through",
        "src/repo/remote.rs",
        "self.would_expose(seen, tip, is_secret)? {",
        "self.would_expose(seen, tip, is_secret)?.filter(|_| false) {",
    ),
    story(
        "our own state is met in a granted folder",
        "src/hands/beneath.rs",
        "if (Identity { device: found.dev(), inode: found.ino() }) == barred {",
        "if (Identity { device: found.dev(), inode: found.ino() }) == barred && false {",
    ),
    story(
        "IPv4 within IPv6 isn't looked at",
        "src/net_guard.rs",
        "Some(carried) => why_not_public_v4(carried),",
        "Some(_) => None,",
    ),
    story(
        "a request passes the cap",
        "src/queue/ledger.rs",
        ".cost_usd + most_usd > cap.usd {",
        ".cost_usd > cap.usd {",
    ),
    story(
        "rounds have no limit",
        "src/cycle/limits.rs",
        "taken.rounds >= stretch.rounds ||",
        "taken.rounds == u32::MAX ||",
    ),
    story(
        "a mind may go round in circles",
        "src/cycle/limits.rs",
        ".filter(|most| most.times >= limits.same_results)",
        ".filter(|most| most.times >= limits.same_results.max(1_000))",
    ),
    story(
        "a server's new tools are taken for accepted",
        "src/mcp/client/tools.rs",
        "let is_same = pin.accepted.is_some() && accepted.sha256() == sha256;",
        "let is_same = pin.accepted.is_some() || accepted.sha256() == sha256;",
    ),
    story(
        "a yes to a server's tools accepts any later ones",
        "src/mcp/client/tools.rs",
        "asked.is_some_and(|asked| agreed.contains(&asked))",
        "asked.is_some_and(|_| !agreed.is_empty())",
    ),
    story(
        "a yes to a server's new words is asked without them",
        "src/mcp/client/pin.rs",
        "words.filter(|words| !words.is_empty())",
        "words.filter(|words| words.is_empty())",
    ),
    story(
        "guests have the owner's servers",
        "src/mcp/client/tools.rs",
        "is_owners: !server.guests,",
        "is_owners: server.guests,",
    ),
    story(
        "what a person's rule denies can be read by a command",
        "src/hands/shelter.rs",
        "confinement.hidden.extend(denied);",
        "drop(denied);",
    ),
    story(
        "any token opens `wake mcp`",
        "src/mcp/server/http.rs",
        "&& digest(token.trim()).as_ref() == digest(self.token.expose()).as_ref()",
        "&& digest(token.trim()).as_ref().len() == digest(self.token.expose()).as_ref().len()",
    ),
    story(
        "`wake mcp` answers to any name of a host",
        "src/mcp/server/http.rs",
        "if !is_this_machine(host) ||",
        "if host.is_empty() ||",
    ),
    story(
        "`wake mcp` answers pages of any origin",
        "src/mcp/server/http.rs",
        "|| !origin.is_none_or(is_from_here) {",
        "|| origin.is_some_and(|origin| origin.is_empty() && !is_from_here(origin)) {",
    ),
    story(
        "what a client reads isn't judged",
        "src/cycle/outside.rs",
        "match registry.judge(name, input, &world, Some(TAINT)).and_then(refused) {",
        "match registry.judge(name, input, &world, Some(TAINT)).and_then(refused).filter(|_| false) {",
    ),
    story(
        "resources aren't judged",
        "src/cycle/outside.rs",
        "verdict.and_then(refused).map_or(",
        "verdict.and_then(refused).filter(|_| false).map_or(",
    ),
    story(
        "the queue is shown whatever the rules say",
        "src/cycle/outside.rs",
        "match refused(queue_verdict(&world)) {",
        "match refused(queue_verdict(&world)).filter(|_| false) {",
    ),
    story(
        "a search looks into what a rule keeps back",
        "src/tool/read.rs",
        "let paths = in_memory(world).filter(|path| !is_kept_back(world, path));",
        "let paths = in_memory(world);",
    ),
    story(
        "the hash is of how an action is shown",
        "src/cycle/ask.rs",
        "            shown::sha256(action)\n",
        "            shown::sha256(&shown::action(tool, action))\n",
    ),
    story(
        "a long action's file hides what a screen doesn't show",
        "src/shown.rs",
        "        action(tool, arguments),\n",
        "        format!(\"{tool}\\n{arguments}\"),\n",
    ),
    story(
        "an app starts unasked",
        "src/policy/judge.rs",
        "What::App => scales.ask(APP),",
        "What::App => drop(APP.len()),",
    ),
];
