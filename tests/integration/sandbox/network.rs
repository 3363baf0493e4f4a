//! Speaking to somebody: servers on this machine, daemons behind Unix sockets, and what needs no connection.

use std::{
    net::{IpAddr, SocketAddr, TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr as UnixAddr, UnixDatagram, UnixListener},
    },
    path::PathBuf,
    thread,
};

use super::{
    attempts::{Attempt, attempt},
    world::World,
};
use crate::support::env::sandbox_visible_dir;

/// Servers outside that answer everybody, for as long as the test's process lives.
pub(super) struct Listeners {
    tcp: u16,
    tcp6: u16,
    udp: u16,
    /// This machine's own address on its network; loopback's if it has none.
    own: IpAddr,
    name: String,
    /// A directory under /tmp with a socket.
    tmp: PathBuf,
}

impl Drop for Listeners {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.tmp).ok();
    }
}

impl Listeners {
    pub(super) fn start(world: &World) -> Self {
        let tcp = TcpListener::bind("0.0.0.0:0").unwrap();
        let tcp6 = TcpListener::bind("[::1]:0").unwrap();
        let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
        let ports =
            (tcp.local_addr().unwrap().port(), tcp6.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
        for listener in [tcp, tcp6] {
            thread::spawn(move || listener.incoming().flatten().for_each(greet));
        }
        thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok((_, from)) = udp.recv_from(&mut buffer) {
                udp.send_to(b"welcome", from).ok();
            }
        });
        let name = format!("reveille{}", world.base().file_name().unwrap().to_string_lossy().replace('.', "-"));
        let tmp = PathBuf::from("/tmp").join(&name);
        std::fs::create_dir(&tmp).unwrap();
        let abstract_name = UnixAddr::from_abstract_name(&name).unwrap();
        let mut unix = vec![UnixListener::bind_addr(&abstract_name).unwrap()];
        for path in [
            tmp.join("s"),
            world.base().join("outside/s"),
            world.base().join("granted/s"),
            world.base().join("home/.gnupg/s"),
        ] {
            unix.push(bind_by_short_name(&path));
        }
        for listener in unix {
            thread::spawn(move || listener.incoming().flatten().for_each(greet));
        }
        let datagrams = UnixDatagram::bind(tmp.join("d")).unwrap();
        std::fs::rename(tmp.join("d"), world.base().join("outside/d")).ok();
        thread::spawn(move || while datagrams.recv(&mut [0; 64]).is_ok() {});
        Self { tcp: ports.0, tcp6: ports.1, udp: ports.2, own: own_address(), name, tmp }
    }
}

/// A socket's path may have 108 bytes: it is bound by a short one and moved.
fn bind_by_short_name(path: &std::path::Path) -> UnixListener {
    let short = tempfile::tempdir_in(sandbox_visible_dir()).unwrap();
    let listener = UnixListener::bind(short.path().join("s")).unwrap();
    if std::fs::rename(short.path().join("s"), path).is_ok() { listener } else { UnixListener::bind(path).unwrap() }
}

fn greet(mut stream: impl std::io::Read + std::io::Write) {
    let mut buffer = [0; 64];
    if stream.read(&mut buffer).is_ok() {
        stream.write_all(b"welcome\n").ok();
    }
}

/// The address that packets to the internet would leave from. Nothing is sent for it.
fn own_address() -> IpAddr {
    let found = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect(SocketAddr::from(([192, 0, 2, 1], 9)))?;
        socket.local_addr()
    });
    found.map_or_else(|_| IpAddr::from([127, 0, 0, 1]), |address| address.ip())
}

pub(super) fn attempts(_: &World, listeners: &Listeners) -> Vec<Attempt> {
    let Listeners { tcp, tcp6, udp, own, name, tmp } = listeners;
    let tmp = tmp.display();
    // Sockets with long paths are spoken to from their directory.
    let list = [
        ("TCP on loopback", format!("\"$P\" tcp 127.0.0.1 {tcp}")),
        ("TCP on another loopback address", format!("\"$P\" tcp 127.8.9.10 {tcp}")),
        ("TCP on no address", format!("\"$P\" tcp 0.0.0.0 {tcp}")),
        ("TCP on this machine's own address", format!("\"$P\" tcp {own} {tcp}")),
        ("TCP on IPv6 loopback", format!("\"$P\" tcp ::1 {tcp6}")),
        ("TCP on a mapped address", format!("\"$P\" tcp ::ffff:127.0.0.1 {tcp}")),
        ("UDP on loopback", format!("\"$P\" udp 127.0.0.1 {udp}")),
        ("UDP on this machine's own address", format!("\"$P\" udp {own} {udp}")),
        ("an abstract socket", format!("\"$P\" unix @{name}")),
        ("an abstract socket, opened otherwise", format!("\"$P\" unix-cloexec @{name}")),
        ("a daemon in /tmp", format!("\"$P\" unix {tmp}/s")),
        ("a daemon elsewhere", "cd \"$B/outside\" && \"$P\" unix s".to_owned()),
        ("a daemon in a granted directory", "cd \"$B/granted\" && \"$P\" unix s".to_owned()),
        ("an agent that holds keys", "cd \"$H/.gnupg\" && \"$P\" unix s".to_owned()),
        ("an agent by a link", "ln -s \"$H/.gnupg/s\" ./a && \"$P\" unix a; R=$?; rm -f ./a; exit $R".to_owned()),
        ("a daemon by a path of one's process", "cd \"$B/granted\" && \"$P\" unix /proc/self/cwd/s".to_owned()),
        ("a daemon by datagrams", "cd \"$B/outside\" && \"$P\" unix-datagram d".to_owned()),
        ("a daemon by a pair that is turned", "cd \"$B/outside\" && \"$P\" pair d".to_owned()),
        (
            "a daemon by a pair that is turned, opened otherwise",
            "cd \"$B/outside\" && \"$P\" pair-cloexec d".to_owned(),
        ),
        ("a daemon by a raw pair", "cd \"$B/outside\" && \"$P\" pair-raw d".to_owned()),
        ("the kernel's own: crypto or sockets between machines", "\"$P\" socket 38 5 || \"$P\" socket 40 1".to_owned()),
        ("the kernel's own: audit", "\"$P\" netlink 9".to_owned()),
        ("the kernel's own: generic", "\"$P\" netlink 16".to_owned()),
        ("the kernel's own: events of devices", "\"$P\" netlink 15".to_owned()),
        ("the kernel's own: connections", "\"$P\" netlink 4".to_owned()),
        ("more than one's own loopback to speak by", "[ $(grep -c : /proc/net/dev) -gt 1 ]".to_owned()),
        ("a route that leads anywhere", "[ $(wc -l < /proc/net/route) -gt 1 ]".to_owned()),
        ("connections of others", format!("grep -qi ':{tcp:04X} ' /proc/net/tcp")),
        ("abstract sockets of others", format!("grep -q {name} /proc/net/unix")),
    ];
    list.map(|(what, script)| attempt(format!("speak to {what}"), script)).to_vec()
}
