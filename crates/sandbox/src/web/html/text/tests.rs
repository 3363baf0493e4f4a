use std::time::Duration;

use super::*;

fn read(html: &str) -> Readable {
    extract_readable(&PageTree::parse(html), &Url::parse("https://example.org/a/b").unwrap())
}

fn text(html: &str) -> String {
    read(html).text
}

#[test]
fn a_page_reads_like_markdown() {
    let html = r#"<!doctype html><html><head><title> A
        page </title><style>p { color: red }</style></head><body>
        <h1>Bread</h1><p>Mix   <b>flour</b>
        and <a href="../water?a=b&amp;c">water</a>.<br>Wait.</p>
        <ul><li>one<li>two<ol start=3><li>three<li><p>four</ol></ul>
        <blockquote><p>He said</p><p>so.</blockquote>
        <pre><code>let a = 1;
    b();
</code></pre>
        <table><tr><th>Flour<th>Water<tr><td>500 g<td>350 g</table><hr>
        <img src=x.png alt="A loaf"><img src=y.png></body></html>"#;
    let read = read(html);
    assert_eq!(read.title.as_deref().map(str::trim), Some("A\n        page"));
    assert!(read.is_all);
    assert_eq!(
        read.text,
        r#"# Bread

Mix flour and water (https://example.org/water?a=b&c).
Wait.

- one
- two
  3. three

  4. four

> He said

> so.

```
let a = 1;
    b();
```

Flour | Water
500 g | 350 g

---

(picture: A loaf)"#
    );
}

#[test]
fn what_a_browser_does_not_show_is_left_out() {
    for hidden in [
        "<script>X</script>",
        "<style>X</style>",
        "<template><p>X</template>",
        "<!-- X -->",
        "<p hidden>X</p>",
        "<p hidden=until-found>X</p>",
        "<div hidden><div><p>X</p></div><p>X</div>",
        "<p style='display:none'>X</p>",
        "<p STYLE=' color : red ; Display : NONE !important '>X</p>",
        "<p style='visibility:hidden'>X</p>",
        "<p style='opacity:0'>X</p>",
        "<p style='opacity:0.0'>X</p>",
        "<p style='font-size:0px'>X</p>",
        "<dialog>X</dialog>",
        "<input value=X>",
        "<iframe>X</iframe>",
        "<svg><text>X</text></svg>",
        "<math><annotation>X</annotation></math>",
        "<object>X</object>",
        "<img title=X src=X>",
        "<a href=X></a>",
        "<meta name=description content=X>",
    ] {
        assert_eq!(text(&format!("<p>before</p>{hidden}<p>after")), "before\n\nafter", "{hidden}");
    }
    // The controls: the same elements in a visible form.
    for shown in [
        "<p style='opacity:1'>X</p>",
        "<p style='font-size:10px'>X",
        "<dialog open>X</dialog>",
        "<noscript><p>X</noscript>",
    ] {
        assert!(text(&format!("<p>before</p>{shown}")).contains('X'), "{shown}");
    }
}

#[test]
fn links_are_shown_by_where_they_lead_and_only_to_pages() {
    assert_eq!(text("<a href=/x>x</a>, <a href='//e.com/?q'>y</a>"), "x (https://example.org/x), y (https://e.com/?q)");
    assert_eq!(text("<base href=https://e.com/d/><a href=x>x</a>"), "x (https://e.com/d/x)");
    for none in ["#here", "javascript:alert(1)", "data:text/html,x", "mailto:a@b.c", "", "http://[", &"x".repeat(400)] {
        assert_eq!(text(&format!("<a href='{none}'>x</a>")), "x", "{none}");
    }
}

#[test]
fn the_main_part_is_the_page_if_it_says_enough() {
    let main = "word ".repeat(60);
    let page = |main: &str| format!("<nav>menu</nav><main><p>{main}</p></main><footer>margin</footer>");
    let text_of_long = text(&page(&main));
    assert!(
        text_of_long.starts_with("word word")
            && text_of_long.ends_with("left out.)")
            && !text_of_long.contains("margin\n")
    );
    assert!(!text_of_long.contains("menu\n"));
    let text_of_short = text(&page("word"));
    assert!(text_of_short.contains("menu") && text_of_short.contains("margin"), "{text_of_short}");
}

#[test]
fn hostile_pages_end_soon_and_say_that_they_were_cut() {
    let long = |piece: &str| piece.repeat(1_000_000 / piece.len());
    for (name, html, is_cut) in [
        ("deep", long("<div>"), true),
        ("deep in p", long("<p><span>"), true),
        ("deep lists", long("<ul><li>x"), true),
        ("deep tables", long("<table><tr><td>x"), true),
        ("formatting that is taken up again", long("<b a=1><i b=2><p>x"), true),
        ("many nodes", long("<br>"), true),
        ("foster parents", long("<table>x<b>"), true),
        ("open angle", long("<"), false),
        ("ends of nothing", format!("x{}", long("</p>")), true),
        ("ends of nothing at all", long("</b></table>"), false),
        ("one comment", format!("<!--{}", long("x")), false),
        ("one attribute", format!("<a href='{}'>x", long("y")), false),
        ("entities", long("&amp"), false),
        ("one word", long("x"), false),
    ] {
        // The time limit is generous, so the machine's speed doesn't matter.
        let document = PageTree::parse_with_limit(Duration::from_secs(3_600), &html);
        let read = extract_readable(&document, &Url::parse("https://example.org/").unwrap());
        assert_eq!(!read.is_all, is_cut, "{name}");
        assert!(read.text.len() <= 2 * MAX_TEXT_BYTES, "{name}: {}", read.text.len());
    }
    // So many attributes that comparing them takes hours.
    let attributes: String = (0..200_000).map(|n| format!("a{n}=1 ")).collect();
    assert!(!PageTree::parse_with_limit(Duration::from_millis(50), &format!("<a {attributes}>x")).is_all);
}

proptest::proptest! {
    #[test]
    fn nothing_panics(html in "(<(/?)(p|b|a|table|tr|td|ul|li|ol|pre|svg|select|option|template|form|h1|br|html|body|frameset|math|mi|title|textarea|x) ?(href=/a|hidden|start=-1|style=display:none)?>|[a-z &;<é\n]{0,5}){0,40}") {
        let read = read(&html);
        proptest::prop_assert!(read.is_all);
    }
}
