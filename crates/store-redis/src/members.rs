//! What `CLUSTER NODES` says, and which slot a key belongs to (Redis Cluster specification).
//!
//! Pure: text and numbers in, masters and slots out.

/// A hash slot: 0 to 16383.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct HashSlot(u16);

impl HashSlot {
    /// Of a key, or a channel: CRC16 (XMODEM) of what stands in its first braces, if anything does.
    pub(super) fn of(key: &str) -> Self {
        let tag = key
            .split_once('{')
            .and_then(|(_, rest)| rest.split_once('}'))
            .map(|(tag, _)| tag)
            .filter(|tag| !tag.is_empty());
        let mut crc: u16 = 0;
        for byte in tag.unwrap_or(key).bytes() {
            crc ^= u16::from(byte) << 8;
            for _ in 0..8 {
                crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            }
        }
        Self(crc % 16_384)
    }
}

/// A master that has slots.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) id: String,
    /// `HOST:PORT`.
    pub(super) address: String,
    /// The one that was asked.
    pub(super) myself: bool,
    /// A majority of the masters cannot reach it.
    pub(super) failed: bool,
    slots: Vec<(u16, u16)>,
}

impl Member {
    pub(super) fn has(&self, slot: HashSlot) -> bool {
        self.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot.0))
    }
}

/// The masters with slots of which `text` tells; the server at `asked` may not know its own address.
///
/// With TLS, certificates are for names: a member's name is used where it has one.
pub(super) fn owners(text: &str, asked: &str, tls: bool) -> Vec<Member> {
    text.lines().filter_map(|line| owner(line, asked, tls)).collect()
}

/// `ID IP:PORT@BUS[,NAME[,...]] FLAGS MASTER PING PONG EPOCH LINK SLOT ...`
fn owner(line: &str, asked: &str, tls: bool) -> Option<Member> {
    let mut words = line.split(' ');
    let (id, place, flags) = (words.next()?, words.next()?, words.next()?);
    let flag = |wanted: &str| flags.split(',').any(|flag| flag == wanted);
    let slots: Vec<(u16, u16)> = words.skip(5).filter_map(range).collect();
    if !flag("master") || flag("noaddr") || slots.is_empty() {
        return None;
    }
    let (at, rest) = place.split_once('@').unwrap_or((place, ""));
    let name = rest.split(',').nth(1).filter(|name| tls && !name.is_empty() && *name != "?");
    let (ip, port) = at.rsplit_once(':')?;
    let address = match (name, ip) {
        (Some(name), _) => format!("{name}:{port}"),
        (None, "") => asked.to_owned(),
        (None, ip) if ip.contains(':') => format!("[{ip}]:{port}"),
        (None, ip) => format!("{ip}:{port}"),
    };
    let (myself, failed) = (flag("myself"), flag("fail"));
    Some(Member { id: id.to_owned(), address, myself, failed, slots })
}

/// `0-5460` or `7`; what stands in brackets is on its way and has its owner still.
fn range(word: &str) -> Option<(u16, u16)> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(HashSlot::of("123456789"), HashSlot(0x31C3));
        assert_eq!(HashSlot::of("foo{hash_tag}"), HashSlot(2_515));
        assert_eq!(HashSlot::of("{user1000}.following"), HashSlot::of("{user1000}.followers"));
        assert_eq!(HashSlot::of("foo{{bar}}zap"), HashSlot::of("{bar"));
        assert_ne!(HashSlot::of("foo{}{bar}"), HashSlot::of("bar"));
    }

    #[test]
    fn masters_with_slots_are_read_and_nobody_else() {
        let text = "a 10.0.0.1:7000@17000,one myself,master - 0 0 1 connected 0-5460 16000 [93-<-b]\n\
            b 10.0.0.2:7000@17000,two master,fail - 1 2 3 disconnected 5461-15999\n\
            c 10.0.0.3:7000@17000 slave a 0 0 1 connected\n\
            d ::1:7000@17000 master - 0 0 1 connected 16001-16383\n\
            e 10.0.0.4:7000@17000 master - 0 0 5 connected\n\
            f :0@0 master,noaddr - 0 0 5 connected 3\n";
        let found = owners(text, "seed:7000", false);
        let addresses: Vec<&str> = found.iter().map(|m| m.address.as_str()).collect();
        assert_eq!(addresses, ["10.0.0.1:7000", "10.0.0.2:7000", "[::1]:7000"]);
        assert_eq!(found.iter().map(|m| m.failed).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(found.iter().map(|m| m.myself).collect::<Vec<_>>(), [true, false, false]);
        assert!(
            found[0].has(HashSlot(0))
                && found[0].has(HashSlot(16_000))
                && !found[0].has(HashSlot(5_461))
        );
        assert_eq!(owners(text, "seed:7000", true)[0].address, "one:7000");
        let alone =
            owners("a :7000@17000 myself,master - 0 0 1 connected 0-16383", "seed:7000", false);
        assert_eq!(alone[0].address, "seed:7000");
    }
}
