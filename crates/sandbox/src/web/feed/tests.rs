use proptest::prelude::*;

use super::*;

/// The title and the link of an entry.
type Told<'a> = (&'a str, &'a str);

fn read_as(content_type: &str, body: &[u8]) -> Result<WatchedPage, WebError> {
    parse_watched(&Fetched {
        url: "https://example.org/blog/feed.xml".parse().unwrap(),
        content_type: Some(content_type.to_owned()),
        body: body.to_vec(),
        is_cut: false,
    })
}

fn entries_as(content_type: &str, body: &[u8]) -> Vec<FeedEntry> {
    match read_as(content_type, body) {
        Ok(WatchedPage::Feed(origin, entries)) => {
            assert_eq!(origin, "https://example.org");
            entries
        }
        other => panic!("{other:?} of {}", String::from_utf8_lossy(body)),
    }
}

fn told(entries: &[FeedEntry]) -> Vec<Told<'_>> {
    entries.iter().map(|entry| (entry.title.as_str(), entry.link.as_deref().unwrap_or("-"))).collect()
}

fn rss(items: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>T</title><link>https://example.org/</link>\
         <description>D</description>{items}</channel></rss>"
    )
}

fn atom(entries: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>T</title><id>f</id>\
         <link rel=\"self\" href=\"https://example.org/blog/feed.xml\"/><link href=\"https://example.org/\"/>\
         <updated>2026-11-21T14:00:00Z</updated>{entries}</feed>"
    )
}

fn json(items: &str) -> String {
    format!("{{\"version\": \"https://jsonfeed.org/version/1.1\", \"title\": \"T\", \"items\": [{items}]}}")
}

/// Checks whole documents: a name, the document, and its entries.
fn check(table: &[(&str, String, &[Told<'_>])]) {
    let mut wrong = Vec::new();
    for (name, document, expected) in table {
        let entries = entries_as("text/html; charset=utf-8", document.as_bytes());
        if told(&entries) != *expected {
            wrong.push(format!("{name}: {:?} of {document}", told(&entries)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

const ONE: &[Told<'static>] = &[("One", "https://example.org/1")];
const LINK: &str = "<link>https://example.org/1</link>";
const HREF: &str = "<link href=\"https://example.org/1\"/>";

#[test]
fn titles_are_words_however_they_are_written() {
    let l = "https://example.org/1";
    let rss = |title: &str| rss(&format!("<item><title>{title}</title>{LINK}</item>"));
    let atom = |title: &str| atom(&format!("<entry>{title}<id>1</id>{HREF}</entry>"));
    let json = |title: &str| json(&format!("{{\"id\": \"1\", \"url\": \"{l}\", \"title\": \"{title}\"}}"));
    check(&[
        ("an entity", rss("One &amp; only"), &[("One & only", l)]),
        ("escaped twice", rss("AT&amp;amp;T &amp;#8217;s"), &[("AT&T ’s", l)]),
        ("CDATA", rss("<![CDATA[One & <b>only</b> AT&amp;T]]>"), &[("One & only AT&T", l)]),
        ("CDATA in parts", rss("One<![CDATA[ & ]]>two"), &[("One & two", l)]),
        ("escaped HTML", rss("&lt;b&gt;One&lt;/b&gt; &lt;i class=\"x\"&gt;two&lt;/i&gt;"), &[("One two", l)]),
        ("HTML in CDATA that was escaped", rss("&lt;![CDATA[One]]&gt;"), &[("One", l)]),
        ("HTML that isn't escaped", rss("One <b>bold</b><br/>two"), &[("One bold two", l)]),
        ("less than", rss("1 &lt; 2 and Vec&lt;T&gt;"), &[("1 < 2 and Vec<T>", l)]),
        ("a bare less than", rss("1 < 2"), &[("1 < 2", l)]),
        ("a bare ampersand", rss("Q&A, R & D"), &[("Q&A, R & D", l)]),
        ("entities of HTML", rss("caf&eacute;&nbsp;&ndash;&hellip; &#39;&#x1F600;"), &[("café –… '😀", l)]),
        ("an entity that nobody knows", rss("a &nosuch; b"), &[("a &nosuch; b", l)]),
        ("lines and blanks", rss("\n  One\t\n two  "), &[("One two", l)]),
        ("a script", rss("&lt;script&gt;alert(1)&lt;/script&gt;One"), &[("One", l)]),
        ("control characters", rss("O\u{1}n\u{8}e\u{1c}"), ONE),
        ("halves of a pair", rss("One &#55357;&#56832; &#xD83D;&#xDE00; &#55357;"), &[("One 😀 😀 \u{fffd}", l)]),
        ("a tag of HTML that is named", rss("The &lt;b&gt; element"), &[("The <b> element", l)]),
        ("a tag with attributes", rss("&lt;a href=\"x\"&gt;One"), ONE),
        (
            "its own entities",
            rss("&co; &deep;")
                .replace("<rss", "<!DOCTYPE rss [<!ENTITY co \"One\"><!ENTITY deep \"&co;&co;\">]>\n<rss"),
            &[("One &deep;", l)],
        ),
        ("the same in parts", rss("One<!-- no --> &amp;<?no?> two"), &[("One & two", l)]),
        ("Atom's text", atom("<title>One &amp; only &lt;T></title>"), &[("One & only <T>", l)]),
        (
            "Atom's text that says so",
            atom("<title type=\"text\">&lt;b>One&lt;/b> &amp;amp;</title>"),
            &[("<b>One</b> &amp;", l)],
        ),
        ("Atom's text that is escaped twice", atom("<title>R&amp;amp;D</title>"), &[("R&D", l)]),
        ("the mark of CDATA, escaped", atom("<title type=\"text\">&lt;![CDATA[One]]></title>"), ONE),
        ("XHTML without an element", atom("<title type=\"xhtml\">R&amp;D</title>"), &[("R&D", l)]),
        ("a line break in a title", rss("Brown on&lt;br&gt;C++, and more"), &[("Brown on C++, and more", l)]),
        ("Atom's HTML", atom("<title type=\"html\">&lt;em>One&lt;/em> &amp;amp; two</title>"), &[("One & two", l)]),
        (
            "Atom's HTML in CDATA",
            atom("<title type=\"html\"><![CDATA[One &lt;T&gt; &amp; <i>two</i>]]></title>"),
            &[("One <T> & two", l)],
        ),
        (
            "Atom's XHTML",
            atom(
                "<title type=\"xhtml\"><div xmlns=\"http://www.w3.org/1999/xhtml\">Less: <em> &lt; </em>R&amp;D</div></title>",
            ),
            &[("Less: < R&D", l)],
        ),
        ("a title of a source isn't the entry's", atom("<source><title>Other</title></source><title>One</title>"), ONE),
        ("JSON", json("One &amp; <T> \\u00e9"), &[("One & <T> é", l)]),
        ("half of a surrogate pair", json("One \\ud83d \\ud83d\\ude00 \\\\ud83d"), &[("One \u{fffd} 😀 \\ud83d", l)]),
        ("an ampersand before letters", rss("R&copy D &amp; &copy; &#169;"), &[("R&copy D & © ©", l)]),
        ("a raw line break in JSON", json("One\n\ttwo"), &[("One two", l)]),
    ]);
}

#[test]
fn the_link_that_is_told_leads_to_the_entry() {
    let item = |rest: &str| rss(&format!("<item><title>One</title>{rest}</item>"));
    let entry = |rest: &str| atom(&format!("<entry><title>One</title>{rest}</entry>"));
    let based = |base: &str, rest: &str| entry(rest).replace("<feed ", &format!("<feed xml:base=\"{base}\" "));
    let to = |link: &'static str| -> &'static [Told<'static>] { Box::leak(Box::new([("One", link)])) };
    check(&[
        (
            "Atom's relations",
            entry(
                "<link rel=\"replies\" href=\"/c\"/><link rel=\"edit\" href=\"/e\"/><link rel=\"self\" href=\"/s\"/>\
                 <link rel=\"enclosure\" href=\"/a.mp3\"/><link rel=\"alternate\" type=\"application/json\" href=\"/j\"/>\
                 <link rel=\"alternate\" type=\"text/html\" href=\"https://example.org/1\"/>",
            ),
            ONE,
        ),
        (
            "a relation as an address",
            entry(
                "<link rel=\"self\" href=\"/s\"/><link rel=\"http://www.iana.org/assignments/relation/alternate\" href=\"https://example.org/1\"/>",
            ),
            ONE,
        ),
        ("replies alone, and an id", entry("<link rel=\"replies\" href=\"/c\"/><id>https://example.org/1</id>"), ONE),
        (
            "its own address, and an id",
            entry("<link rel=\"self\" href=\"/blog/feed.xml\"/><id>https://example.org/1</id>"),
            ONE,
        ),
        ("its own address", entry("<link rel=\"self\" href=\"https://example.org/1\"/><id>tag:1</id>"), ONE),
        ("an enclosure alone", entry("<link rel=\"enclosure\" href=\"https://example.org/1\"/>"), ONE),
        ("replies alone", entry("<link rel=\"replies\" href=\"/c\"/><id>tag:1</id>"), to("-")),
        ("content elsewhere", entry("<content src=\"https://example.org/1\"/>"), ONE),
        ("relative in Atom", entry("<link href=\"2.html\"/>"), to("https://example.org/blog/2.html")),
        ("a base", based("https://b.example/x/", "<link href=\"2\"/>"), to("https://b.example/x/2")),
        (
            "a base in a base",
            based("https://b.example/x/", "<link xml:base=\"y/\" href=\"2\"/>"),
            to("https://b.example/x/y/2"),
        ),
        ("a relative base", based("/x/", "<link href=\"2\"/>"), to("https://example.org/x/2")),
        ("relative in RSS", item("<link>/2</link>"), to("https://example.org/2")),
        ("relative to the site", item("<link>2</link>"), to("https://example.org/2")),
        (
            "relative to another site",
            item("<link>/2</link>").replace("https://example.org/", "https://b.example/x/"),
            to("https://b.example/2"),
        ),
        ("without a scheme", item("<link>//b.example/2</link>"), to("https://b.example/2")),
        ("www", item("<link>www.b.example/2</link>"), to("https://www.b.example/2")),
        (
            "escaped twice",
            item("<link>https://example.org/?a=1&amp;amp;b=2</link>"),
            to("https://example.org/?a=1&b=2"),
        ),
        (
            "a bare ampersand",
            item("<link>https://example.org/?a=1&copy=2&b=3</link>"),
            to("https://example.org/?a=1&copy=2&b=3"),
        ),
        (
            "a bare ampersand in CDATA",
            item("<link><![CDATA[https://example.org/?a=1&copy=2]]></link>"),
            to("https://example.org/?a=1&copy=2"),
        ),
        (
            "a bare ampersand in Atom",
            entry("<link href=\"https://example.org/?a=1&copy=2\"/>"),
            to("https://example.org/?a=1&copy=2"),
        ),
        ("CDATA and line ends", item("<link>\n<![CDATA[https://example.org/1]]>\n</link>"), ONE),
        ("a link of Atom in RSS", item("<link>https://example.org/1</link><atom:link rel=\"self\" href=\"/s\"/>"), ONE),
        (
            "a link of Atom before",
            item("<atom:link rel=\"replies\" href=\"/c\"/><atom:link href=\"https://example.org/1\"/>"),
            ONE,
        ),
        (
            "a counter",
            item(
                "<link>https://feeds.example/~r/1</link><feedburner:origLink>https://example.org/1</feedburner:origLink>",
            ),
            ONE,
        ),
        ("a guid that is one", item("<guid>https://example.org/1</guid>"), ONE),
        ("a guid that says so", item("<link/><guid isPermaLink=\"true\">https://example.org/1</guid>"), ONE),
        ("a guid that isn't one", item("<guid isPermaLink=\"false\">https://example.org/1</guid>"), to("-")),
        ("a guid after the link", item("<link>https://example.org/1</link><guid>https://example.org/?p=1</guid>"), ONE),
        ("comments are no link", item("<comments>https://example.org/c</comments>"), to("-")),
        ("a script", item("<link>javascript:alert(1)</link>"), to("-")),
        ("letters of others", item("<link>https://example.org/пост</link>"), to("https://example.org/пост")),
        ("a blank in it", item("<link>https://example.org/a b</link>"), to("https://example.org/a%20b")),
        ("JSON, relative", json("{\"id\": \"1\", \"url\": \"/1\", \"title\": \"One\"}"), ONE),
        (
            "JSON, elsewhere",
            json("{\"id\": \"1\", \"external_url\": \"https://example.org/1\", \"title\": \"One\"}"),
            ONE,
        ),
        ("JSON, its id", json("{\"id\": \"https://example.org/1\", \"title\": \"One\"}"), ONE),
    ]);
}

#[test]
fn each_version_is_read_and_so_is_what_is_broken() {
    let item = format!("<item><title>One</title>{LINK}</item>");
    let rdf = |namespace: &str| {
        format!(
            "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"{namespace}\"><channel><title>T</title>\
             </channel><image><title>I</title></image>{item}</rdf:RDF>"
        )
    };
    let two: &[Told<'_>] = &[("One", "https://example.org/1"), ("Two", "https://example.org/2")];
    let file: &[Told<'_>] = &[("a.mp3", "https://example.org/a.mp3")];
    check(&[
        ("RSS 0.90", rdf("http://my.netscape.com/rdf/simple/0.9/"), ONE),
        ("RSS 1.0", rdf("http://purl.org/rss/1.0/"), ONE),
        ("RSS 0.91", format!("<!DOCTYPE rss PUBLIC \"-//Netscape//DTD RSS 0.91//EN\" \"http://x/rss-0.91.dtd\">{}", rss(&item).replace("2.0", "0.91")), ONE),
        ("RSS 0.92", rss(&item).replace("2.0", "0.92"), ONE),
        ("RSS of no version", rss(&item).replace(" version=\"2.0\"", ""), ONE),
        ("RSS in a namespace", rss(&item).replace("<rss ", "<rss xmlns=\"http://backend.userland.com/rss2\" "), ONE),
        ("a channel alone", format!("<channel>{item}</channel>"), ONE),
        ("items beside the channel", format!("<rss><channel><title>T</title></channel>{item}</rss>"), ONE),
        ("capitals", rss(&item).replace("item>", "ITEM>").replace("title>", "Title>"), ONE),
        (
            "Atom 0.3",
            format!("<feed version=\"0.3\" xmlns=\"http://purl.org/atom/ns#\"><title>T</title><entry><title mode=\"escaped\" type=\"text/html\">&lt;b>One&lt;/b></title>{HREF}<id>1</id><issued>x</issued></entry></feed>"),
            ONE,
        ),
        (
            "Atom with a prefix",
            "<a:feed xmlns:a=\"http://www.w3.org/2005/Atom\"><a:entry><a:title>One</a:title><a:link href=\"https://example.org/1\"/></a:entry></a:feed>".to_owned(),
            ONE,
        ),
        ("JSON Feed 1", json("{\"id\": 42, \"url\": \"https://example.org/1\", \"title\": \"One\"}").replace("1.1", "1"), ONE),
        ("escaped slashes", json("{\"id\": \"1\", \"url\": \"https:\\/\\/example.org\\/1\", \"title\": \"One\"}").replace("https://json", "https:\\/\\/json").replace("org/version/", "org\\/version\\/"), ONE),
        ("JSON items that are none", json("null, 7, {\"id\": 1, \"url\": \"https://example.org/1\", \"title\": \"One\"}"), ONE),
        ("a long comment before", format!("<!-- {} -->\n{}", "words > and ".repeat(900), rss(&item)), ONE),
        ("a long comment within", rss(&item).replace("<rss", &format!("<!--{}--><rss", "x".repeat(3_000))), ONE),
        ("a style sheet", rss(&item).replace("<rss", "<?xml-stylesheet type=\"text/xsl\" href=\"/f.xsl\"?>\n<rss"), ONE),
        ("an entry alone", format!("<entry xmlns=\"http://www.w3.org/2005/Atom\"><title>One</title>{HREF}</entry>"), ONE),
        ("text that is never closed", rss("<item><description>&lt;p&gt;One</description><link>https://example.org/1</link></item>"), ONE),
        ("blank lines before", format!("\n\n \t{}", rss(&item)), ONE),
        ("a mark before", format!("\u{feff}\u{feff}\n{}", rss(&item)), ONE),
        ("a program's warnings before", format!("<br />\n<b>Deprecated</b>: Function x() in <b>/y.php</b> on line <b>1</b><br />\n{}", rss(&item)), ONE),
        ("text after", format!("{}\n<!-- 0.2 s --><script>x</script>", rss(&item)), ONE),
        ("prefixes that nobody declares", rss(&format!("<item><media:title>M</media:title><dc:creator>x</dc:creator><x:y/><title>One</title>{LINK}</item>")), ONE),
        ("unclosed fields", rss("<item><title>One<link>https://example.org/1<guid>1<pubDate>x<item><title>Two<link>https://example.org/2"), two),
        ("unclosed items", rss("<item><title>One</title><link>https://example.org/1</link><item><title>Two</title><link>https://example.org/2</link>"), two),
        ("HTML that isn't escaped", rss(&format!("<item><description><p>a<br><img src=x>b</description><title>One</title>{LINK}</item>")), ONE),
        ("end tags without a beginning", rss(&format!("</p><item></b><title>One</i></title>{LINK}</item>")), ONE),
        ("cut off", rss(&item).replace("</channel></rss>", "<item><title>Tw"), &[("One", "https://example.org/1"), ("Tw", "-")]),
        ("attributes without quotes", atom("<entry><title type=text>One</title><link href=https://example.org/1 /></entry>"), ONE),
        ("dates of any form", rss(&format!("<item><pubDate>32 Foo 99 25:61 XST</pubDate><title>One</title>{LINK}</item>")), ONE),
        ("duplicates", rss(&item.repeat(3)), ONE),
        ("no title, but text", rss("<item><description>&lt;p&gt;One&lt;/p&gt;</description><link>https://example.org/1</link></item>"), ONE),
        ("no title, but text of Atom", atom(&format!("<entry><title/>{HREF}<content type=\"html\">&lt;p>One&lt;/p></content></entry>")), ONE),
        ("no title in JSON", json("{\"id\": 1, \"url\": \"https://example.org/1\", \"content_html\": \"<p>One</p>\"}"), ONE),
        ("a file alone", rss("<item><enclosure url=\"https://example.org/a.mp3\" type=\"audio/mpeg\"/></item>"), file),
        ("media alone", rss("<item><media:group><media:content url=\"https://example.org/1\"/><media:title>One</media:title></media:group></item>"), ONE),
        ("a guid alone", rss("<item><guid isPermaLink=\"false\">x</guid></item>"), &[("", "-")]),
        ("a picture of an entry", rss(&format!("<item><image><title>I</title><link>https://i.example/</link></image><title>One</title>{LINK}</item>")), ONE),
        ("JSON that speaks of RSS", json("{\"id\": 1, \"url\": \"https://example.org/1\", \"title\": \"One\", \"content_text\": \" <rss version=2.0><item>\"}"), ONE),
        ("nothing at all", rss("<item></item>"), &[]),
        ("no entries", rss(""), &[]),
        ("entities of its own", format!("<!DOCTYPE rss [<!ENTITY % x SYSTEM \"x\"> <!ENTITY nbsp \"&#160;\">]>{}", rss(&item)), ONE),
    ]);
}

#[test]
fn letters_are_right_whoever_names_the_encoding() {
    let document = |encoding: &str, title: &str| {
        let prologue = if encoding.is_empty() { String::new() } else { format!(" encoding=\"{encoding}\"") };
        format!("<?xml version=\"1.0\"{prologue}?><rss><channel><item><title>{title}</title></item></channel></rss>")
    };
    let in_1251 = |text: &str| encoding_rs::WINDOWS_1251.encode(text).0.into_owned();
    let wide = |text: &str, mark: bool, is_big: bool| -> Vec<u8> {
        let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
        units.flat_map(|unit| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
    };
    let (da, cafe) = ("Новости дня", "café");
    let latin = |encoding: &str| document(encoding, cafe).chars().map(|c| c as u8).collect::<Vec<u8>>();
    let sjis = encoding_rs::SHIFT_JIS.encode(&document("Shift_JIS", "日本")).0.into_owned();
    let jis = encoding_rs::ISO_2022_JP.encode(&document("ISO-2022-JP", "日本")).0.into_owned();
    let mut pasted = document("utf-8", "naïve – caf").into_bytes();
    let at = pasted.windows(8).position(|part| part == b"</title>").unwrap();
    pasted.insert(at, 0xe9);
    // A name, the content type, the document, and the title.
    let table: &[(&str, &str, Vec<u8>, &str)] = &[
        ("the server alone", "text/xml; charset=windows-1251", in_1251(&document("", da)), da),
        ("the prologue alone", "text/xml", in_1251(&document("windows-1251", da)), da),
        ("single quotes", "text/xml", in_1251(&document("windows-1251", da).replace('"', "'")), da),
        ("a server that says UTF-8 wrongly", "text/xml; charset=utf-8", in_1251(&document("windows-1251", da)), da),
        (
            "a server that says Latin by default",
            "text/xml; charset=ISO-8859-1",
            in_1251(&document("windows-1251", da)),
            da,
        ),
        ("a server that is right", "text/xml; charset=windows-1251", in_1251(&document("utf-8", da)), da),
        ("UTF-8 that is named Latin", "text/xml; charset=iso-8859-1", document("utf-8", da).into_bytes(), da),
        ("UTF-8 that its prologue names Latin", "text/xml", document("iso-8859-1", cafe).into_bytes(), cafe),
        ("a name that nobody knows", "text/xml; charset=none", document("x-unknown", cafe).into_bytes(), cafe),
        (
            "a mark against both",
            "text/xml; charset=iso-8859-1",
            format!("\u{feff}{}", document("koi8-r", cafe)).into_bytes(),
            cafe,
        ),
        ("UTF-16, a mark", "text/xml", wide(&document("utf-16", da), true, false), da),
        ("UTF-16, the other way", "text/xml; charset=utf-8", wide(&document("utf-16", da), true, true), da),
        ("UTF-16 without a mark", "text/xml", wide(&document("utf-16", da), false, false), da),
        ("UTF-16 without a mark, the other way", "text/xml", wide(&document("", da), false, true), da),
        ("UTF-8 that says UTF-16", "text/xml", document("utf-16", cafe).into_bytes(), cafe),
        ("UTF-8 whose server says UTF-16", "text/xml; charset=utf-16", document("", "x").into_bytes(), "x"),
        ("UTF-16 of JSON", "application/json", wide(&json("{\"title\": \"Да\"}"), false, false), "Да"),
        (
            "marks upon marks of JSON",
            "application/json",
            format!("\u{feff}\u{feff}{}", json("{\"title\": \"Да\"}")).into_bytes(),
            "Да",
        ),
        (
            "warnings before, as plain text",
            "text/plain",
            format!("Warning: x in y.php\n{}", document("", da)).into_bytes(),
            da,
        ),
        ("Latin", "text/xml", latin("iso-8859-1"), cafe),
        ("Latin that says UTF-8", "text/xml; charset=utf-8", latin("utf-8"), cafe),
        ("Latin that nobody names", "application/rss+xml", latin(""), cafe),
        ("Shift_JIS", "text/xml", sjis, "日本"),
        ("ISO-2022-JP", "text/xml", jis, "日本"),
        ("a pasted letter", "text/xml; charset=utf-8", pasted, "naïve – café"),
    ];
    let read =
        |content_type, body| entries_as(content_type, body).into_iter().map(|entry| entry.title).collect::<Vec<_>>();
    let wrong = table.iter().filter(|(_, content_type, body, title)| read(content_type, body) != [*title]);
    let wrong: Vec<_> = wrong.map(|(name, content_type, body, _)| (name, read(content_type, body))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_packed_file_is_unpacked() {
    use flate2::{Compression, write::GzEncoder};

    let pack = |bytes: &[u8]| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let feed = rss("<item><title>One</title><link>https://example.org/1</link></item>");
    assert_eq!(told(&entries_as("application/gzip", &pack(feed.as_bytes()))), ONE);
    let bomb = pack(&vec![b' '; 32 * 1_024 * 1_024]);
    drop(read_as("application/rss+xml", &bomb));
    assert!(matches!(read_as("application/gzip", b"\x1f\x8b damaged"), Err(WebError::Unreadable(_))));
}

#[test]
fn what_is_no_feed_is_a_page_without_tags() {
    // A content type, a document, and the text for comparison.
    let table: &[(&str, &str, &str)] = &[
        ("text/html", "<title>T</title><p>About &lt;rss", "About <rss"),
        ("text/html", "<!DOCTYPE html><p>a</p><pre><rss version=2.0></pre>", "a"),
        (
            "application/xhtml+xml",
            "<?xml version=\"1.0\"?><!DOCTYPE html><html xmlns=\"http://www.w3.org/1999/xhtml\"><body><p>a</p></body></html>",
            "a",
        ),
        ("text/plain", "How RSS begins:\n<rss version=\"2.0\">", "How RSS begins:\n<rss version=\"2.0\">"),
        ("text/markdown", "# RSS\n\n    <feed>", "# RSS\n\n    <feed>"),
        (
            "application/xml",
            "<?xml version=\"1.0\"?><urlset><url><loc>https://example.org/1</loc><lastmod>2026</lastmod></url></urlset>",
            "https://example.org/1\n2026",
        ),
        ("text/xml", "<opml><head><title>T</title></head><body><outline text=\"x\"/></body></opml>", "T"),
        ("text/xml", "<rdf:RDF xmlns:rdf=\"x\"><foaf:Person><foaf:name>Ann</foaf:name></foaf:Person></rdf:RDF>", "Ann"),
        ("application/json", "{\"items\": [1]}", "{\"items\": [1]}"),
    ];
    for (content_type, document, text) in table {
        let page = read_as(content_type, document.as_bytes());
        let Ok(WatchedPage::Page(page)) = &page else { panic!("{page:?} of {document}") };
        let is_same = if content_type.contains("html") { page.text.starts_with(text) } else { page.text == *text };
        assert!(is_same, "{:?} of {document}", page.text);
    }
}

#[test]
fn what_can_t_be_read_is_never_told_as_text() {
    for (content_type, document) in [
        ("application/feed+json", "{\"version\": \"https://jsonfeed.org/version/1\", \"items\": [{\"id\": \"1\""),
        ("application/json", "{\"version\": \"https://jsonfeed.org/version/1\", \"items\": [{]}"),
    ] {
        let read = read_as(content_type, document.as_bytes());
        assert!(matches!(read, Err(WebError::Unreadable(_))), "{read:?}");
    }
}

#[test]
fn of_a_feed_that_is_cut_the_whole_entries_are_read() {
    let whole = rss("<item><title>One</title><link>https://example.org/1</link></item><item><title>Two</title></item>");
    let (cut, _) = whole.split_at(whole.find("wo</title>").unwrap());
    let fetched = Fetched {
        url: "https://example.org/".parse().unwrap(),
        content_type: None,
        body: cut.as_bytes().to_vec(),
        is_cut: true,
    };
    let Ok(WatchedPage::Feed(_, entries)) = parse_watched(&fetched) else { panic!("no feed") };
    assert_eq!(told(&entries), ONE);
}

#[test]
fn a_feed_that_is_made_for_it_does_no_harm() {
    let closing = format!("{}{}", "<a>".repeat(20_000), "</b>".repeat(20_000));
    let attributes: String = (0..20_000).map(|n| format!(" a{n}=x")).collect();
    let entity = "<!DOCTYPE r [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;\">]>";
    for feed in [
        rss(&"<a>".repeat(100_000)),
        rss(&format!("<item><title>{}", "<a>".repeat(100_000))),
        rss(&format!("<item>{closing}</item>")),
        rss(&format!("<item{attributes}>")),
        rss(&format!("<item><title>{}</title></item>", "&lt;b&gt;".repeat(50_000))),
        format!("{entity}{}", rss("<item><title>&c;</title></item>")),
        rss(&"<item><link>".repeat(50_000)),
        json(&"[".repeat(100_000)),
        format!("<rss>{}", "<!--".repeat(100_000)),
    ] {
        drop(read_as("application/rss+xml", feed.as_bytes()));
    }
    let wide = rss(&(0..20_000).map(|n| format!("<item><guid>{n}</guid><title>x</title></item>")).collect::<String>());
    assert_eq!(entries_as("text/xml", wide.as_bytes()).len(), 2_000);
    let huge =
        rss(&format!("<item><description>{}</description><title>One</title>{LINK}</item>", "x &amp; ".repeat(20_000)));
    assert_eq!(told(&entries_as("text/xml", huge.as_bytes())), ONE);
}

#[test]
fn entries_without_ids_are_the_same_at_each_look() {
    let feed = rss("<item><title>One</title></item><item><title>Two</title></item>");
    let first = entries_as("text/xml", feed.as_bytes());
    assert!(first == entries_as("text/xml", feed.as_bytes()) && first.len() == 2, "{first:?}");
}

/// Pieces of feeds the property test combines and breaks.
const PIECES: &[&str] = &[
    "<?xml version=\"1.0\" encoding=\"windows-1251\"?>",
    "<rss version=\"2.0\"><channel>",
    "<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:base=\"http://[\">",
    "<rdf:RDF xmlns=\"http://purl.org/rss/1.0/\">",
    "<item>",
    "</item>",
    "<entry>",
    "<title type=\"xhtml\">",
    "<title>",
    "</title>",
    "<link>http://a/%",
    "<link rel=\"self\" href=\"//[x\"/>",
    "<guid isPermaLink=\"true\">",
    "</guid>",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "&amp;amp;#0;",
    "&#xD800;",
    "<p><br></b>",
    "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{\"id\":",
    "\\ud83d\\",
    "é🦀\u{202e}\0",
    "<!DOCTYPE html [",
    "<description>",
];

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400), is_json in any::<bool>()) {
        drop(read_as(if is_json { "application/feed+json" } else { "text/xml; charset=utf-16" }, &bytes));
    }

    #[test]
    fn broken_feeds_are_read_or_refused_within_bounds(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..30),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = pieces.concat().into_bytes();
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        if let Ok(WatchedPage::Feed(_, entries)) = read_as("text/html", &bytes) {
            for entry in entries {
                prop_assert!(entry.title.chars().count() <= 201 && !entry.title.contains('\n'), "{entry:?}");
                let is_link = |link: &String| link.parse::<reqwest::Url>().is_ok() && link.len() <= 2_000;
                prop_assert!(entry.link.as_ref().is_none_or(is_link), "{entry:?}");
            }
        }
    }
}
