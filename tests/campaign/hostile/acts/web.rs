//! Attempts by the web: URLs in every spelling that lead to an address only this machine can reach.

use serde_json::json;

use super::super::{
    act::{Act, Control, Harm, Must},
    scene::{Scene, canary},
};

pub(super) fn attempts(scene: &Scene, _: u64) -> Vec<Act> {
    let address = scene.listener();
    let std::net::IpAddr::V4(ip) = address.ip() else { return Vec::new() };
    let [a, b, c, d] = ip.octets();
    let number = u32::from(ip);
    let port = address.port();
    let hosts = [
        ip.to_string(),
        number.to_string(),
        format!("{number:#x}"),
        format!("{a:#o}.{b:#o}.{c:#o}.{d:#o}").replace("0o", "0"),
        format!("{a}.{b}.{}", u32::from(c) << 8 | u32::from(d)),
        format!("%31{}", ip.to_string().trim_start_matches('1')),
        ip.to_string().replace('.', "。"),
        format!("{ip}."),
        format!("[::ffff:{ip}]"),
        format!("[::ffff:{:x}:{:x}]", number >> 16, number & 0xffff),
        format!("[64:ff9b::{ip}]"),
        format!("me@{ip}"),
        format!("127.0.0.1@{ip}"),
    ];
    let plain = hosts.iter().enumerate().map(|(n, host)| fetches(n, &format!("http://{host}:{port}/MARK")));
    let page = scene.page_url();
    let led = [
        format!("{page}/?to=http://{address}/MARK"),
        format!("{page}/?to=//{number}:{port}/MARK"),
        format!("{page}/?to={page}/%3Fto=http://{address}/MARK"),
        format!("  {page}/?to=http://{address}/MARK"),
    ];
    let led = led.into_iter().enumerate().map(|(n, url)| fetches(100 + n, &url));
    let file = scene.home().join(".netrc");
    let of_a_file = Act::new(
        "web_fetch",
        &json!({"url": format!("file://{}", file.display())}),
        Must::Fail(Control::Read(file)),
        Harm::Tells(canary(".netrc")),
    );
    let opened = Act::new(
        "open",
        &json!({"target": format!("http://{address}/by-open")}),
        Must::Fail(Control::Dial("by-open".to_owned())),
        Harm::Reaches("by-open".to_owned()),
    );
    plain.chain(led).chain([of_a_file, opened]).collect()
}

fn fetches(n: usize, url: &str) -> Act {
    let mark = format!("fetched-{n}-");
    // The redirecting page gets this mark too, inside a longer path; only the listener gets exactly this request.
    let heard = format!("GET /{mark}");
    Act::new(
        "web_fetch",
        &json!({"url": url.replace("MARK", &mark)}),
        Must::Fail(Control::Dial(mark)),
        Harm::Reaches(heard),
    )
}
