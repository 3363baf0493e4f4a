//! Distinguishes public internet addresses from those of private machines and networks.
//!
//! Code that connects on behalf of untrusted text (the sandbox's proxy, page fetches) resolves a name itself, checks the address here
//! and dials exactly this address. This module does no I/O.
//!
//! Sources: IANA's registries of special-purpose IPv4 and IPv6 addresses (RFC 6890 and its updates, as of 2026), of IPv6 address space
//! (global unicast is 2000::/3 alone) and of multicast addresses (RFC 5771).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of IPv4 addresses: first address, prefix length in bits, description.
type RangeV4 = (Ipv4Addr, u32, &'static str);
/// A range of IPv6 addresses: first address, prefix length in bits, description.
type RangeV6 = (Ipv6Addr, u32, &'static str);

/// Special IPv4 ranges. Whole blocks are refused, including their few reachable anycast addresses, which host no pages.
const SPECIAL_V4: [RangeV4; 19] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network itself (RFC 791)"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private network (RFC 1918)"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a provider's inner network (RFC 6598)"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "this machine (RFC 1122)"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "a cloud's service for its machines (Azure)"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local, where clouds keep their metadata (RFC 3927)"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private network (RFC 1918)"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved for protocols (RFC 6890)"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation (RFC 5737)"),
    (Ipv4Addr::new(192, 31, 196, 0), 24, "a sink for lookups of private names (RFC 7535)"),
    (Ipv4Addr::new(192, 52, 193, 0), 24, "a relay of multicast (RFC 7450)"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a relay of 6to4 (RFC 7526)"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private network (RFC 1918)"),
    (Ipv4Addr::new(192, 175, 48, 0), 24, "a sink for lookups of private names (RFC 7534)"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for measurements (RFC 2544)"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation (RFC 5737)"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation (RFC 5737)"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast (RFC 5771)"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved, or broadcast (RFC 1112, RFC 919)"),
];

/// Special ranges within 2000::/3; everything outside is refused anyway.
const SPECIAL_V6: [RangeV6; 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "reserved for protocols, Teredo and ORCHID among them (RFC 2928)"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "for documentation (RFC 3849)"),
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48, "a sink for lookups of private names (RFC 7534)"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "for documentation (RFC 9637)"),
];

/// Returns true for a public internet address.
pub fn is_public(address: IpAddr) -> bool {
    why_not_public(address).is_none()
}

/// The reason for refusing an address, worded to follow "it is"; `None` for a public address. An IPv6 address that embeds an
/// IPv4 address is judged by the embedded one, because packets may end there.
pub fn why_not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => why_not_public_v4(address),
        IpAddr::V6(address) => why_not_public_v6(address),
    }
}

fn why_not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    let is_within = |&&(first, bits, _): &&RangeV4| {
        (u32::from(address) ^ u32::from(first)).checked_shr(32 - bits).unwrap_or(0) == 0
    };
    SPECIAL_V4.iter().find(is_within).map(|&(_, _, what)| what)
}

fn why_not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    let [a, b, c, d, ..] = address.segments();
    match (a, b, c, d) {
        // Mapped (RFC 4291) and the well-known NAT64 prefix (RFC 6052): IPv4 in another spelling.
        (0, 0, 0, 0) | (0x64, 0xff9b, 0, 0) => match embedded_v4(address) {
            // fault: ipv4-within-ipv6-isnt
            Some(carried) => why_not_public_v4(carried),
            None => Some("this machine, or unspecified (RFC 4291)"),
        },
        // 6to4 (RFC 3056): packets go to the router of that IPv4 address.
        (0x2002, ..) => embedded_v4(address).and_then(why_not_public_v4),
        (a, ..) if a & 0xe000 != 0x2000 => Some("outside the public part of IPv6 (RFC 4291)"),
        _ => {
            let is_within = |&&(first, bits, _): &&RangeV6| {
                (u128::from(address) ^ u128::from(first)).checked_shr(128 - bits).unwrap_or(0) == 0
            };
            let special = SPECIAL_V6.iter().find(is_within).map(|&(_, _, what)| what);
            // ISATAP (RFC 5214): an IPv4 address in the lower half, behind a public router.
            special.or_else(|| find_isatap_v4(address).and_then(why_not_public_v4))
        }
    }
}

/// The IPv4 address embedded in a mapped, NAT64 or 6to4 address. The compatible form (`::a.b.c.d`), deprecated by RFC 4291, gives
/// `None`.
pub fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
        }
        _ => None,
    }
}

fn find_isatap_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_refused(text: &str) -> bool {
        !is_public(text.parse().unwrap_or_else(|_| panic!("{text} is not an address")))
    }

    #[test]
    fn the_first_and_last_address_of_each_special_range_is_refused_and_their_neighbours_are_not() {
        for (first, last, before, after) in [
            ("0.0.0.0", "0.255.255.255", None, Some("1.0.0.0")),
            ("10.0.0.0", "10.255.255.255", Some("9.255.255.255"), Some("11.0.0.0")),
            ("100.64.0.0", "100.127.255.255", Some("100.63.255.255"), Some("100.128.0.0")),
            ("127.0.0.0", "127.255.255.255", Some("126.255.255.255"), Some("128.0.0.0")),
            ("168.63.129.16", "168.63.129.16", Some("168.63.129.15"), Some("168.63.129.17")),
            ("169.254.0.0", "169.254.255.255", Some("169.253.255.255"), Some("169.255.0.0")),
            ("172.16.0.0", "172.31.255.255", Some("172.15.255.255"), Some("172.32.0.0")),
            ("192.0.0.0", "192.0.0.255", Some("191.255.255.255"), Some("192.0.1.0")),
            ("192.0.2.0", "192.0.2.255", Some("192.0.1.255"), Some("192.0.3.0")),
            ("192.31.196.0", "192.31.196.255", Some("192.31.195.255"), Some("192.31.197.0")),
            ("192.52.193.0", "192.52.193.255", Some("192.52.192.255"), Some("192.52.194.0")),
            ("192.88.99.0", "192.88.99.255", Some("192.88.98.255"), Some("192.88.100.0")),
            ("192.168.0.0", "192.168.255.255", Some("192.167.255.255"), Some("192.169.0.0")),
            ("192.175.48.0", "192.175.48.255", Some("192.175.47.255"), Some("192.175.49.0")),
            ("198.18.0.0", "198.19.255.255", Some("198.17.255.255"), Some("198.20.0.0")),
            ("198.51.100.0", "198.51.100.255", Some("198.51.99.255"), Some("198.51.101.0")),
            ("203.0.113.0", "203.0.113.255", Some("203.0.112.255"), Some("203.0.114.0")),
            ("224.0.0.0", "255.255.255.255", Some("223.255.255.255"), None),
            ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", None, Some("2001:200::")),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", Some("2001:db7::"), Some("2001:db9::")),
            ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", Some("3ffe::"), Some("3fff:1000::")),
            ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("3fff:ffff::"), None),
            ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, Some("2000::")),
        ] {
            assert!(is_refused(first) && is_refused(last), "{first} to {last}");
            for neighbour in [before, after].into_iter().flatten() {
                assert!(!is_refused(neighbour), "{neighbour}");
            }
        }
    }

    #[test]
    fn an_address_that_embeds_another_is_judged_by_it() {
        for shape in ["::ffff:{}", "64:ff9b::{}"] {
            assert!(
                is_refused(&shape.replace("{}", "127.0.0.1")) && is_refused(&shape.replace("{}", "169.254.169.254"))
            );
            assert!(!is_refused(&shape.replace("{}", "8.8.8.8")));
        }
        // 6to4 of 127.0.0.1, 10.0.0.1 and 8.8.8.8; ISATAP of 10.0.0.1 and 8.8.8.8.
        assert!(is_refused("2002:7f00:1::1") && is_refused("2002:a00:1::"));
        assert!(!is_refused("2002:808:808::1"));
        assert!(is_refused("2a00::5efe:10.0.0.1") && is_refused("2a00::200:5efe:a00:1"));
        assert!(!is_refused("2a00::5efe:8.8.8.8"));
        // Refused regardless of the address inside: compatible, translated (RFC 2765), the local prefix of NAT64, Teredo.
        for address in
            ["::8.8.8.8", "::127.0.0.1", "::ffff:0:8.8.8.8", "64:ff9b:1::808:808", "2001:0:808:808::f7f7:f7f7"]
        {
            assert!(is_refused(address), "{address}");
        }
    }

    #[test]
    fn cloud_metadata_and_link_local_addresses_are_refused() {
        for address in [
            "169.254.169.254",
            "fd00:ec2::254",
            "100.100.100.200",
            "192.0.0.192",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::1",
            "::",
        ] {
            assert!(is_refused(address), "{address}");
        }
        for address in ["1.1.1.1", "140.82.121.4", "2606:4700:4700::1111", "2a00:1450:4001:80f::200e"] {
            assert!(!is_refused(address), "{address}");
        }
    }

    proptest! {
        /// Some ranges are compared with the standard library's definition. Each address is tried in every IPv6 spelling.
        #[test]
        fn no_spelling_makes_a_refused_address_public(bits: u32, host: u64) {
            let v4 = Ipv4Addr::from(bits);
            let [high, low] = [(bits >> 16) as u16, bits as u16];
            let refused = !is_public(v4.into());
            if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_documentation() || v4.is_broadcast() {
                prop_assert!(refused);
            }
            let tail = [(host >> 48) as u16, (host >> 32) as u16, (host >> 16) as u16, host as u16];
            for v6 in [
                v4.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, tail[3], tail[0], tail[1], tail[2], tail[3]),
            ] {
                prop_assert_eq!(!is_public(v6.into()), refused, "{}", v6);
            }
        }
    }
}
