//! Names of transactions over several groups, as servers know them and as the decision log writes them down. Doing either is others'
//! business.
//!
//! `atlas:RUN:ID` stands for the whole, `gN` for the part of the group with the number N. RUN is that of one process, which decides all of
//! its own; nobody else touches them while it lives.

use super::hash::crc32;

/// The `formatID` of all of them.
const FORMAT: u32 = 0x4154_4c53;
const HEAD: &str = "atlas:";
const TITLE: &str = "atlas decisions 1 ";
const COMMIT: &str = "commit ";

/// See the module's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Xid {
    run: u64,
    id: u128,
}

/// A part of a transaction that is prepared on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The whole.
    pub xid: Xid,
    /// What the part is called in a statement.
    pub name: String,
}

impl Xid {
    /// A new one of this run.
    #[must_use]
    pub fn new(run: u64, random: [u8; 20]) -> Self {
        let id = random
            .iter()
            .take(16)
            .fold(0, |id: u128, byte| id << 8 | u128::from(*byte));
        Self { run, id }
    }

    /// The process that decides it.
    #[must_use]
    pub fn run(self) -> u64 {
        self.run
    }

    /// What its part in this group is called in a statement.
    #[must_use]
    pub fn part(self, group: usize) -> String {
        format!("'{self}','g{group}',{FORMAT}")
    }

    fn parse(text: &str) -> Option<Self> {
        let (run, id) = text.strip_prefix(HEAD)?.split_once(':')?;
        Some(Self {
            run: u64::from_str_radix(exact(run, 16)?, 16).ok()?,
            id: u128::from_str_radix(exact(id, 32)?, 16).ok()?,
        })
    }

    /// The line that says that it is to be done.
    #[must_use]
    pub fn decision(self) -> String {
        let line = format!("{COMMIT}{self}");
        format!("{line} {:08x}\n", crc32(line.as_bytes()))
    }
}

impl std::fmt::Display for Xid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{HEAD}{:016x}:{:032x}", self.run, self.id)
    }
}

fn exact(text: &str, len: usize) -> Option<&str> {
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    (text.len() == len && text.bytes().all(is_hex)).then_some(text)
}

/// A row of XA RECOVER (`formatID`, `gtrid_length`, `bqual_length`, `data`); nothing if the transaction is somebody else's.
#[must_use]
pub fn recovered(row: &[Option<Vec<u8>>]) -> Option<Prepared> {
    let [Some(format), Some(first), Some(second), Some(data)] = row else {
        return None;
    };
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u32>().ok();
    let len = |text: &[u8]| usize::try_from(number(text)?).ok();
    let (first, second) = (len(first)?, len(second)?);
    if number(format)? != FORMAT || data.len() != first.checked_add(second)? {
        return None;
    }
    let (whole, part) = std::str::from_utf8(data).ok()?.split_at_checked(first)?;
    let xid = Xid::parse(whole)?;
    let group = part.strip_prefix('g')?.parse().ok()?;
    Some(Prepared {
        xid,
        name: xid.part(group),
    })
}

/// The first line of the log of a run.
#[must_use]
pub fn title(run: u64) -> String {
    format!("{TITLE}{run:016x}\n")
}

/// The run whose log this is, and what it decided to do. A last line that was not written to its end decided nothing: nobody has acted on it.
///
/// # Errors
/// The number of a line that makes no sense: what the log says must not be acted on.
pub fn read_log(text: &[u8]) -> Result<(u64, Vec<Xid>), usize> {
    let mut lines = text.split_inclusive(|b| *b == b'\n').enumerate();
    let line = |line: &[u8]| -> Option<String> {
        let line = line.strip_suffix(b"\n")?;
        std::str::from_utf8(line).ok().map(str::to_owned)
    };
    let run = lines.next().and_then(|(_, first)| line(first));
    let run = run.as_deref().and_then(|first| first.strip_prefix(TITLE));
    let run = run.and_then(|run| u64::from_str_radix(exact(run, 16)?, 16).ok());
    let run = run.ok_or(1_usize)?;
    let mut decided = Vec::new();
    for (at, bytes) in lines {
        if !bytes.ends_with(b"\n") {
            break;
        }
        let xid = line(bytes).and_then(|line| {
            let (decision, sum) = line.rsplit_once(' ')?;
            let is_whole = exact(sum, 8)? == format!("{:08x}", crc32(decision.as_bytes()));
            is_whole
                .then(|| Xid::parse(decision.strip_prefix(COMMIT)?))
                .flatten()
        });
        match xid.filter(|xid| xid.run == run) {
            Some(xid) => decided.push(xid),
            None => return Err(at + 1),
        }
    }
    Ok((run, decided))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(format: &str, first: &str, second: &str, data: &str) -> Vec<Option<Vec<u8>>> {
        [format, first, second, data]
            .map(|cell| Some(cell.as_bytes().to_vec()))
            .to_vec()
    }

    #[test]
    fn parts_are_known_again() {
        let xid = Xid::new(7, [9; 20]);
        let name = xid.part(12);
        assert_eq!(
            name,
            "'atlas:0000000000000007:09090909090909090909090909090909','g12',1096043603"
        );
        let data = format!("{xid}g12");
        let good = row("1096043603", "55", "3", &data);
        assert_eq!(recovered(&good), Some(Prepared { xid, name }));
        for other in [
            row("1", "55", "3", &data),
            row("1096043603", "54", "4", &data),
            row("1096043603", "55", "2", &data),
            row("1096043603", "55", "4", &format!("{data}'")),
            row("1096043603", "4294967295", "4294967295", &data),
            row("1096043603", "55", "3", &data.replace("atlas", "other")),
            row("1096043603", "55", "3", &data.replace("0007", "000A")),
            row("1096043603", "5", "0", "ägäg"),
            vec![None; 4],
            Vec::new(),
        ] {
            assert_eq!(recovered(&other), None, "{other:?}");
        }
    }

    #[test]
    fn a_log_is_read_as_it_was_written() {
        let xids = [Xid::new(7, [1; 20]), Xid::new(7, [2; 20])];
        let mut text = title(7);
        for xid in xids {
            text += &xid.decision();
        }
        let bytes = text.as_bytes();
        assert_eq!(read_log(bytes), Ok((7, xids.to_vec())));
        let first = title(7).len();
        let second = first + xids[0].decision().len();
        for cut in 0..bytes.len() {
            let wanted = match cut {
                _ if cut < first => Err(1),
                _ if cut < second => Ok((7, Vec::new())),
                _ => Ok((7, vec![xids[0]])),
            };
            assert_eq!(read_log(&bytes[..cut]), wanted, "{cut}");
        }
        // Every changed byte is noticed, but in a number of its own length in the title.
        for at in first..bytes.len() {
            let mut other = bytes.to_vec();
            other[at] ^= 1;
            let read = read_log(&other);
            let is_torn = at == bytes.len() - 1 && read == Ok((7, vec![xids[0]]));
            assert!(read.is_err() || is_torn, "{at}: {read:?}");
        }
        // One of another run is none of this log's.
        let other = title(7) + &Xid::new(8, [1; 20]).decision();
        assert_eq!(read_log(other.as_bytes()), Err(2));
    }
}
