//! Tests private addresses in every spelling, and names that lead to them.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::atomic::{AtomicUsize, Ordering},
};

use proptest::prelude::*;

use super::*;
use crate::web::{Grants, Web};

/// Name lookups with prepared answers in turn; the last answer repeats.
#[derive(Debug, Default)]
struct Told {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Names for Arc<Told> {
    fn resolve_name<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        let turn = self.asked.fetch_add(1, Ordering::Relaxed).min(self.answers.len().saturating_sub(1));
        let answer = self.answers.get(turn).cloned().ok_or(io::ErrorKind::NotFound.into());
        Box::pin(std::future::ready(answer))
    }
}

fn prepare_names(answers: &[&[&str]]) -> Arc<Told> {
    let parsed = answers.iter().map(|answer| answer.iter().map(|address| address.parse().unwrap()).collect());
    Arc::new(Told { answers: parsed.collect(), asked: AtomicUsize::new(0) })
}

fn resolve_url(web: &Web, url: &str) -> Result<Vec<SocketAddr>, WebError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(web.resolve_target(&DialTarget::parse_url(url, &web.grants)?))
}

fn range_v4() -> impl Strategy<Value = u32> {
    let ranges: Vec<(&str, u32)> = vec![
        ("0.0.0.0", 8),
        ("10.0.0.0", 8),
        ("100.64.0.0", 10),
        ("127.0.0.0", 8),
        ("168.63.129.16", 32),
        ("169.254.0.0", 16),
        ("169.254.169.254", 32),
        ("172.16.0.0", 12),
        ("192.0.0.0", 24),
        ("192.0.2.0", 24),
        ("192.88.99.0", 24),
        ("192.168.0.0", 16),
        ("198.18.0.0", 15),
        ("198.51.100.0", 24),
        ("203.0.113.0", 24),
        ("224.0.0.0", 4),
        ("240.0.0.0", 4),
        ("255.255.255.255", 32),
    ];
    let within = |(first, bits): (&str, u32), host: u32| {
        let first = u32::from(first.parse::<Ipv4Addr>().unwrap());
        first | (host & u32::MAX.checked_shr(bits).unwrap_or(0))
    };
    let host = prop_oneof![3 => any::<u32>(), 1 => Just(0), 1 => Just(u32::MAX), 1 => Just(1)];
    (prop::sample::select(ranges), host).prop_map(move |(range, host)| within(range, host))
}

/// The notation of a number.
#[derive(Debug, Clone, Copy)]
enum Base {
    Decimal,
    Octal,
    Hex,
    HexUpper,
    PaddedOctal,
}

fn number(value: u32, base: Base) -> String {
    match base {
        Base::Decimal => value.to_string(),
        Base::Octal => format!("0{value:o}"),
        Base::Hex => format!("0x{value:x}"),
        Base::HexUpper => format!("0X{value:08X}"),
        Base::PaddedOctal => format!("0000{value:o}"),
    }
}

/// An IPv4 address in one to four parts, each in a base of its own.
fn parts(address: u32, count: usize, bases: [Base; 4]) -> String {
    let [a, b, c, d] = address.to_be_bytes().map(u32::from);
    let parts: Vec<u32> = match count {
        1 => vec![address],
        2 => vec![a, address & 0xff_ffff],
        3 => vec![a, b, address & 0xffff],
        _ => vec![a, b, c, d],
    };
    parts.iter().zip(bases).map(|(part, base)| number(*part, base)).collect::<Vec<_>>().join(".")
}

/// The same text in other characters that URLs accept for it.
fn disguise_host(host: &str, disguise: u8) -> String {
    let each = |change: &dyn Fn(char) -> String| host.chars().map(change).collect::<String>();
    match disguise {
        1 => each(&|c| format!("%{:02x}", c as u32)),
        2 => each(&|c| char::from_u32(c as u32 + 0xfee0).unwrap().to_string()),
        3 => host.replace('.', "。"),
        4 => host.replace('.', "．"),
        5 => host.replace('.', "｡"),
        6 => format!("{host}."),
        7 => each(&|c| format!("{c}\u{ad}")),
        8 => each(&|c| {
            if ('1'..='9').contains(&c) { char::from_u32('①' as u32 + c as u32 - '1' as u32).unwrap() } else { c }
                .to_string()
        }),
        9 => each(&|c| {
            if c.is_ascii_digit() { char::from_u32(0x1d7ce + c as u32 - '0' as u32).unwrap() } else { c }.to_string()
        }),
        10 => each(&|c| format!("%{:02X}", c as u32)).replacen("%2E", ".", 1),
        _ => host.to_owned(),
    }
}

/// An IPv6 address that contains an IPv4 address, in the form that `shape` selects.
fn embed_v4(address: u32, shape: u8, tail: u64) -> Ipv6Addr {
    let v4 = Ipv4Addr::from(address);
    let [high, low] = [(address >> 16) as u16, address as u16];
    match shape {
        0 => v4.to_ipv6_mapped(),
        1 => Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
        2 => Ipv6Addr::new(0x2002, high, low, tail as u16, (tail >> 16) as u16, 0, 0, 1),
        3 => Ipv6Addr::new(0x2a00, tail as u16, 0, 0, 0, 0x5efe, high, low),
        4 => Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
        5 => Ipv6Addr::new(0xfc00 | (tail as u16 & 0x1ff), (tail >> 16) as u16, 0, 0, 0, 0, high, low),
        6 => Ipv6Addr::new(0xfe80 | (tail as u16 & 0x3f), 0, 0, 0, (tail >> 16) as u16, 0, high, low),
        7 => Ipv6Addr::new(0xff00 | (tail as u16 & 0xff), 0, 0, 0, 0, 0, high, low),
        8 => Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
        9 => Ipv6Addr::new(0x2001, 0, high, low, tail as u16, 0, 0, 1),
        _ => Ipv6Addr::new(0x2001, 0xdb8, tail as u16, 0, 0, 0, high, low),
    }
}

fn spell_v6(address: Ipv6Addr, spelling: u8) -> String {
    let full = address.segments().map(|segment| format!("{segment:04x}")).join(":");
    let [.., high, low] = address.segments();
    let v4 = Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match spelling {
        0 => format!("[{address}]"),
        1 => format!("[{full}]"),
        2 => format!("[{}]", full.to_uppercase()),
        _ => format!("[{}{v4}]", full.split_at(30).0),
    }
}

fn base() -> impl Strategy<Value = Base> {
    prop::sample::select(vec![Base::Decimal, Base::Octal, Base::Hex, Base::HexUpper, Base::PaddedOctal])
}

/// A private address, and a spelling of it as a host.
fn spelling() -> impl Strategy<Value = (IpAddr, String)> {
    let v4 = (range_v4(), 1usize..=4, [base(), base(), base(), base()], 0u8..=10).prop_map(
        |(address, count, bases, disguise)| {
            (Ipv4Addr::from(address).into(), disguise_host(&parts(address, count, bases), disguise))
        },
    );
    let v6 = (range_v4(), 0u8..=10, any::<u64>(), 0u8..=3).prop_map(|(address, shape, tail, spelling)| {
        let v6 = embed_v4(address, shape, tail);
        (v6.into(), spell_v6(v6, spelling))
    });
    prop_oneof![3 => v4, 1 => v6]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    /// As a control, the same URL leads to the address once a person has granted that address.
    #[test]
    fn no_spelling_of_an_address_that_is_not_public_is_dialled(
        (address, host) in spelling(),
        (scheme, port) in prop::sample::select(vec![("http", 80), ("https", 443), ("HTTP", 8080), ("hTTps", 8443)]),
        slashes in prop::sample::select(vec!["//", "/", "", "\\\\", "///", "/\\"]),
    ) {
        let url = format!("{scheme}:{slashes}{host}:{port}/latest/meta-data");
        let refused = resolve_url(&Web::default(), &url);
        prop_assert!(matches!(refused, Err(WebError::NotPublic { is_redirect: false, .. })), "{}: {:?}", url, refused);

        let granted = match address {
            IpAddr::V4(v4) => format!("{v4}:{port}"),
            IpAddr::V6(v6) => format!("[{v6}]:{port}"),
        };
        let web = Web::default().with_grants(Grants::new([granted.as_str()]));
        prop_assert_eq!(resolve_url(&web, &url), Ok(vec![SocketAddr::new(address, port)]), "{}", url);
    }
}

#[test]
fn a_public_address_is_dialled_in_every_spelling() {
    for url in
        ["http://8.8.8.8/", "http://0x08.010.2056/", "http://134744072/", "http://%38.8.8.8/", "http://８.8。8.8/"]
    {
        assert_eq!(resolve_url(&Web::default(), url), Ok(vec!["8.8.8.8:80".parse().unwrap()]), "{url}");
    }
    assert_eq!(
        resolve_url(&Web::default(), "https://[2606:4700:4700::1111]/"),
        Ok(vec!["[2606:4700:4700::1111]:443".parse().unwrap()])
    );
}

#[test]
fn a_name_is_dialled_if_all_its_addresses_are_public() {
    let public: &[&str] = &["8.8.8.8", "2606:4700:4700::1111"];
    let web = Web::default().with_names(prepare_names(&[public]));
    let addresses = resolve_url(&web, "https://example.org/").unwrap();
    assert_eq!(addresses, ["8.8.8.8:443".parse().unwrap(), "[2606:4700:4700::1111]:443".parse().unwrap()]);

    for inside in ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1", "::ffff:192.168.0.1", "0.0.0.0"] {
        for answer in [vec![inside], vec!["8.8.8.8", inside], vec![inside, "8.8.8.8"]] {
            let web = Web::default().with_names(prepare_names(&[&answer]));
            let refused = resolve_url(&web, "https://example.org/");
            assert!(matches!(refused, Err(WebError::NotPublic { .. })), "{answer:?}: {refused:?}");
        }
    }
    let granted =
        Web::default().with_grants(Grants::new(["nas.local:8080"])).with_names(prepare_names(&[&["192.168.0.2"]]));
    assert_eq!(resolve_url(&granted, "http://nas.local:8080/"), Ok(vec!["192.168.0.2:8080".parse().unwrap()]));
    assert!(
        resolve_url(&granted, "http://nas.local/").is_err()
            && resolve_url(&granted, "http://other.local:8080/").is_err()
    );
    for nothing in [prepare_names(&[]), prepare_names(&[&[]])] {
        let web = Web::default().with_names(nothing);
        assert!(matches!(resolve_url(&web, "https://example.org/"), Err(WebError::Unreachable(_))));
    }
}

#[test]
fn this_machines_own_name_is_refused_as_the_system_resolves_it() {
    let refused = resolve_url(&Web::default(), "http://localhost/");
    assert!(matches!(refused, Err(WebError::NotPublic { .. })), "{refused:?}");
}

#[test]
fn a_client_knows_one_name_and_only_its_checked_addresses() {
    let checked: Vec<SocketAddr> = vec!["8.8.8.8:443".parse().unwrap()];
    let pinned = Pinned { host: "example.org".to_owned(), addresses: checked.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let resolve = |name: &str| runtime.block_on(pinned.resolve(name.parse().unwrap())).map(Iterator::collect::<Vec<_>>);
    for _ in 0..3 {
        assert_eq!(resolve("example.org").unwrap(), checked);
    }
    assert!(resolve("example.com").is_err() && resolve("localhost").is_err());
}
