use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

/// The parts' HTML, with a line between parts.
fn html(markdown: &str) -> String {
    join(render(markdown))
}

fn join(parts: Vec<RenderedPart>) -> String {
    parts.into_iter().map(|part| part.html).collect::<Vec<_>>().join("\n=====\n")
}

#[test]
fn a_typical_answer() {
    assert_snapshot!(html("\
## Your day

You have **two** things, *both* short:

1. Call Ana & `git push` the fix
2. Buy milk
   - oat, if there is
   - else soy

See [the list](https://example.org/a?b=1&c=2).

---
~~Done~~ for today."), @r#"
<b>Your day</b>
You have <b>two</b> things, <i>both</i> short:

1. Call Ana &amp; <code>git push</code> the fix
2. Buy milk
   • oat, if there is
   • else soy

See <a href="https://example.org/a?b=1&amp;c=2">the list</a>.

———

<s>Done</s> for today.
"#);
}

#[test]
fn code_tables_quotes() {
    assert_snapshot!(html("\
Run this:
```rust title=x
fn main() {
    println!(\"<&>\");
}
```
> It is **quoted**
> twice.

| Name | Qty |
|:-----|----:|
| Äpfel & Birnen | 2 |
| [x](https://e.org) | 10 |
"), @r#"
Run this:

<pre><code class="language-rust">fn main() {
    println!("&lt;&amp;&gt;");
}</code></pre>

<blockquote>It is <b>quoted</b>
twice.</blockquote>

<pre>Name               Qty
─────────────────  ───
Äpfel &amp; Birnen       2
x (https://e.org)   10</pre>
"#);
}

#[test]
fn raw_html_and_images_are_text_and_links() {
    assert_snapshot!(html("<div>a</div>\n\nb <script>alert(1)</script> &amp; &copy; ![a cat](https://e.org/c.png) [bad](javascript:alert(1)) <me@e.org>"), @r#"
&lt;div&gt;a&lt;/div&gt;

b &lt;script&gt;alert(1)&lt;/script&gt; &amp; © <a href="https://e.org/c.png">a cat</a> bad (javascript:alert(1)) <a href="mailto:me@e.org">me@e.org</a>
"#);
}

#[test]
fn loose_lists_tasks_and_nested_blocks() {
    assert_snapshot!(html("- [ ] one\n- [x] two\n\nText\n\n- a\n\n  more of a\n\n- b\n  ```\n  code\n  ```\n- > q\n-\n"), @r#"
• ☐ one
• ☑ two

Text

• a

   more of a

• b

<pre>code</pre>

• <blockquote>q</blockquote>

•
"#);
}

#[test]
fn links_as_text_lead_nowhere_by_a_tap() {
    assert_snapshot!(join(render_with_links("[a](https://e.org/x) and https://e.org/y_z, <https://e.org> ![p](http://i)", Links::AsText)), @r#"a (<code>https://e.org/x</code>) and <code>https://e.org/y_z</code>, <code>https://e.org</code> p (<code>http://i</code>)"#);
}

#[test]
fn no_way_of_writing_an_address_makes_a_link_of_it() {
    let ways = [
        "https://evil.example/?d=secret",
        "[good](https://evil.example/?d=secret)",
        "[https://good.example](https://evil.example/?d=secret)",
        "![good](https://evil.example/?d=secret)",
        "[![good](https://evil.example/a)](https://evil.example/?d=secret)",
        "<https://evil.example/?d=secret>",
        "evil.example/?d=secret",
        "see(evil.example/?d=secret)now",
        "**evil.example**/?d=secret",
        "https://ev*il.example*/?d=secret",
        "*https://evil*.example/?d=secret and ~~more~~",
        "`https://`evil.example/?d=secret",
        "<a href=\"https://evil.example/?d=secret\">x</a>",
        "<b>evil.example/?d=secret</b>",
        "www.evil.example ftp://evil.example tg:resolve?domain=evil 203.0.113.7/x",
        "EVIL.EXAMPLE/?d=secret evil。example/?d=secret me@evil.example",
        "[a]: https://evil.example/?d=secret\n\n[a] [^1]\n\n[^1]: evil.example",
        "| a | b |\n|---|---|\n| [x](https://evil.example/?d=secret) | evil.example |",
        "> # evil.example/?d=secret\n- evil.example",
    ];
    for way in ways {
        for part in render_with_links(&format!("Look: {way} or not"), Links::AsText) {
            let mut linked = part.html.clone();
            for (open, close) in [("<code>", "</code>"), ("<pre>", "</pre>")] {
                while let Some((before, rest)) = linked.split_once(open) {
                    let (_, after) = rest.split_once(close).unwrap();
                    linked = format!("{before} {after}");
                }
            }
            assert!(!linked.contains("<a"), "{way} became {part:?}");
            for text in [linked.to_lowercase(), part.plain.to_lowercase()] {
                let found =
                    ["://", ".ex", "evil.", "www.", "tg:", "113.7", "。"].iter().find(|sign| text.contains(*sign));
                assert_eq!(found, None, "{way} became {part:?}");
            }
            visible(&part.html).unwrap();
            assert!(part.plain.to_lowercase().contains("evil"), "it can still be read: {}", part.plain);
        }
    }
    assert_eq!(render_with_links("See a.example/b.", Links::AsText)[0].plain, "See a·example/b.");
}

#[test]
fn ordinary_text_is_no_address() {
    for text in ["It is 3.14, e.g. at 12:30. And so on...", "z.B. 2026-11-21, v1.2.3; a/b: c", "1. One\n2. Two"] {
        assert_eq!(join(render_with_links(text, Links::AsText)), html(text));
    }
}

#[test]
fn the_plain_text_says_where_links_lead() {
    let parts = render("**See** [a](https://e.org/x) or https://e.org");
    assert_eq!(parts[0].plain, "See a (https://e.org/x) or https://e.org");
}

#[test]
fn nothing_comes_of_nothing() {
    for blank in ["", " \n\t\n", "\u{200b}\u{feff}", "```\n\n```x"] {
        let parts = render(blank);
        assert!(parts.is_empty() || !split::is_blank(&parts[0].plain), "{blank:?} gave {parts:?}");
    }
    assert!(render(" \n ").is_empty());
    assert!(render("\u{200b}\u{2060}").is_empty());
}

#[test]
fn what_renders_to_nothing_is_shown_as_it_was_written() {
    assert_eq!(html("[a]: https://e.org"), "[a]: https://e.org");
}

#[test]
fn a_long_code_block_is_closed_and_opened_again() {
    let line = "let x = \"<\";\n";
    let parts = render(&format!("Look:\n\n```rust\n{}```\nThat was it.", line.repeat(800)));
    assert!(parts.len() >= 3);
    for part in &parts[..parts.len() - 1] {
        assert!(part.html.contains("<pre><code class=\"language-rust\">"), "{}", part.html);
        assert!(part.html.ends_with("let x = \"&lt;\";</code></pre>"), "{}", part.html);
    }
    let shown: usize = parts.iter().map(|part| part.plain.matches("let x = \"<\";").count()).sum();
    assert_eq!(shown, 800, "no line is cut in two");
    assert!(parts.last().unwrap().html.ends_with("</code></pre>\n\nThat was it."));
}

#[test]
fn paragraphs_are_kept_whole_where_they_fit() {
    let paragraph = "word ".repeat(300);
    let parts = render(&[paragraph.trim(); 5].join("\n\n"));
    assert_eq!(parts.iter().map(|part| part.plain.matches("\n\n").count() + 1).collect::<Vec<_>>(), [2, 2, 1]);
}

#[test]
fn surrogate_pairs_and_entities_are_never_cut() {
    let parts = render(&"😀".repeat(5000));
    assert_eq!(parts.iter().map(|part| part.plain.chars().count()).sum::<usize>(), 5000);
    let parts = render(&format!("`{}`", "&".repeat(9000)));
    assert_eq!(parts.iter().map(|part| part.html.matches("&amp;").count()).sum::<usize>(), 9000);
}

#[test]
fn masses_of_long_links_stay_within_the_bound_in_bytes() {
    let url = format!("https://e.org/{}", "&".repeat(1500));
    let parts = render(&format!("[a]({url}) ").repeat(100));
    assert!(parts.iter().all(|part| part.html.len() <= split::HTML_BYTES_MAX));
    assert_eq!(parts.iter().map(|part| part.html.matches("<a href").count()).sum::<usize>(), 100);
}

/// How many tags open in HTML made here, and how long their addresses are.
fn formatting(html: &str) -> (usize, usize) {
    let addresses = html.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let opened = html.split('<').skip(1).filter(|tag| !tag.starts_with('/')).count();
    (opened - html.matches("<pre><code").count(), addresses.map(|url| url.replace("&amp;", "&").len()).sum())
}

/// A new report is one line: what is repeated, and how often.
#[test]
fn no_part_has_more_formatting_than_telegram_takes() {
    let long = format!("[link](https://e.org/{}) ", "x".repeat(150));
    for (piece, times) in [
        (long.as_str(), 80),
        ("**bold** ", 300),
        ("`x` ", 900),
        ("- **a** *b* ~~c~~\n", 200),
        ("> quoted\n\n", 250),
        ("[a](https://e.org) ", 400),
        ("https://e.org/a ", 300),
        ("# Heading\n\n", 150),
        ("```rust\nx\n```\n\n", 120),
    ] {
        for links in [Links::Clickable, Links::AsText] {
            let markdown = piece.repeat(times);
            let parts = render_with_links(&markdown, links);
            for part in parts
                .iter()
                .map(with_repeat_mark)
                .map(|part| with_topic_mark(&part))
                .chain(render_beginning(&markdown, links))
            {
                let (stretches, bytes) = formatting(&part.html);
                assert!(stretches <= 100 && bytes <= 9_000, "{piece}: {stretches} stretches, {bytes} bytes");
            }
            let seen: String = parts.iter().map(|part| visible(&part.html).unwrap()).collect();
            assert_eq!(dense(&seen), dense(&style_markdown(&markdown, links).text), "{piece}");
        }
    }
    let parts = render(&long.repeat(80));
    assert!(parts.len() <= 4, "{} parts", parts.len());
}

#[test]
fn the_repeat_mark_is_the_last_line_and_always_fits() {
    for part in render(&"x".repeat(10_000)) {
        let marked = with_repeat_mark(&part);
        assert!(with_topic_mark(&marked).plain.ends_with(TOPIC_MARK), "there is room for both");
        assert!(marked.plain.ends_with(REPEAT_MARK) && marked.html.ends_with(&format!("<i>{REPEAT_MARK}</i>")));
        assert!(visible_units(&marked.html) <= MESSAGE_UNITS_MAX);
    }
}

/// Parses Telegram's HTML strictly and gives what a reader sees.
fn visible(html: &str) -> Result<String, String> {
    const TAGS: [&str; 7] = ["b", "i", "s", "a", "code", "pre", "blockquote"];
    let (mut rest, mut seen, mut open) = (html, String::new(), Vec::new());
    while !rest.is_empty() {
        if let Some(tagged) = rest.strip_prefix('<') {
            let (tag, after) = tagged.split_once('>').ok_or("a tag without an end")?;
            match tag.strip_prefix('/') {
                Some(name) if open.pop() == Some(name) => {}
                Some(name) => return Err(format!("</{name}> closes nothing")),
                None => {
                    let name = tag.split(' ').next().unwrap_or_default();
                    if !TAGS.contains(&name) || open.contains(&name) {
                        return Err(format!("<{tag}> isn't allowed here"));
                    }
                    open.push(name);
                }
            }
            rest = after;
        } else if let Some(named) = rest.strip_prefix('&') {
            let (entity, after) = named.split_once(';').ok_or("an entity without an end")?;
            seen.push_str(match entity {
                "lt" => "<",
                "gt" => ">",
                "amp" => "&",
                _ => return Err(format!("&{entity};")),
            });
            rest = after;
        } else {
            let (text, after) = rest.split_at(rest.find(['<', '&']).unwrap_or(rest.len()));
            seen.push_str(text);
            rest = after;
        }
    }
    if open.is_empty() { Ok(seen) } else { Err(format!("left open: {open:?}")) }
}

fn dense(text: &str) -> String {
    text.chars().filter(|c| !split::is_blank(&c.to_string())).collect()
}

/// Pieces of Markdown, so that random texts have structure.
pub(super) fn markdownish() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            "**",
            "*",
            "_",
            "~~",
            "`",
            "```\n",
            "```rust\n",
            "\n",
            "\n\n",
            "- ",
            "1. ",
            "> ",
            "# ",
            "| a | b |\n|---|---|\n| c |",
            "[x](https://e.org/",
            ")",
            "![",
            "](",
            "<b>",
            "</b>",
            "&amp;",
            "<",
            "  ",
            "    ",
            "---\n",
            "[^1]",
            "[^1]: ",
            "<div>\n",
            "\r\n",
            "https://e.org/q?a=1&b=\"2\"",
            "<me@e.org>",
            "\\",
            "[ ] ",
            "\t",
            "\0",
        ])
        .prop_map(str::to_owned),
        "[a-z ]{0,40}",
        "\\PC{0,10}",
        "[a-z&<>\"😀 \n]{0,1500}",
        any::<String>(),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_becomes_parts_that_telegram_takes(markdown in markdownish(), as_text in any::<bool>()) {
        let links = if as_text { Links::AsText } else { Links::Clickable };
        let mut seen = String::new();
        for part in render_with_links(&markdown, links) {
            let text = visible(&part.html).map_err(TestCaseError::fail)?;
            prop_assert!(split::count_units(&text) <= MESSAGE_UNITS_MAX && !split::is_blank(&text));
            prop_assert!(split::count_units(&part.plain) <= MESSAGE_UNITS_MAX && !split::is_blank(&part.plain));
            prop_assert_eq!(visible_units(&part.html), split::count_units(&text));
            prop_assert!(part.html.len() <= split::HTML_BYTES_MAX);
            let (stretches, bytes) = formatting(&part.html);
            prop_assert!(stretches <= 100 && bytes <= 9_000, "{} stretches, {} bytes", stretches, bytes);
            prop_assert!(!as_text || !part.plain.contains("://"));
            seen.push_str(&text);
        }
        prop_assert_eq!(dense(&seen), dense(&blocks::parse_markdown(&markdown, links).text));
    }

    #[test]
    fn small_parts_lose_nothing_either(markdown in markdownish(), units_max in 4_usize..200) {
        let styled = blocks::parse_markdown(&markdown, Links::Clickable);
        let mut seen = String::new();
        for part in split::cut_parts(&styled, units_max) {
            let text = visible(&styled.render_html(&part)).map_err(TestCaseError::fail)?;
            prop_assert!(split::count_units(&text) <= units_max);
            prop_assert_eq!(&text, styled.visible_text(&part));
            seen.push_str(&text);
        }
        prop_assert_eq!(dense(&seen), dense(&styled.text));
    }
}
