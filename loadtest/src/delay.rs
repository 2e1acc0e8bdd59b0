//! The delay program: holds every IP packet of a link for a constant time. A link is a pair of TUN devices in two network
//! namespaces; kernels without netem have no other way.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use crate::error::{Doing, Error, Result};
use crate::sys;

/// Most packets held in one direction; more are lost, as on a real link.
const HELD: usize = 16384;
/// Most packets taken from a device before the due ones are looked at again.
const BURST: usize = 64;

/// One direction of a link: packets of the device with the same index go to `to`.
#[derive(Debug)]
struct Direction {
    to: usize,
    held: VecDeque<(u64, Vec<u8>)>,
}

/// Runs links with a one-way delay, until the process is killed. Each argument is `NETNS:DEVICE:NETNS:DEVICE`.
///
/// # Errors
/// When an argument is wrong or a device cannot be attached.
pub(crate) fn run(one_way: Duration, links: &[String]) -> Result<()> {
    let mut devices = Vec::new();
    let mut directions = Vec::new();
    for link in links {
        let parts: Vec<&str> = link.split(':').collect();
        let [left_ns, left, right_ns, right] = parts[..] else {
            return Err(Error::Usage(format!("{link} is not a link")));
        };
        for (netns, device) in [(left_ns, left), (right_ns, right)] {
            let file = open_netns(netns)?;
            sys::enter_netns(&file).doing(|| format!("enter {netns}"))?;
            let to = devices.len() ^ 1;
            devices.push(sys::open_tun(device).doing(|| format!("attach {device}"))?);
            directions.push(Direction {
                to,
                held: VecDeque::new(),
            });
        }
    }
    sys::precise_timers();
    carry(&devices, &mut directions, one_way).doing(|| "carry packets".into())
}

/// Opens a network namespace made by `ip netns add`.
///
/// # Errors
/// When there is none of that name.
pub(crate) fn open_netns(name: &str) -> Result<File> {
    let path = Path::new("/var/run/netns").join(name);
    File::open(&path).doing(|| format!("open {}", path.display()))
}

fn carry(devices: &[File], directions: &mut [Direction], one_way: Duration) -> io::Result<()> {
    let delay_ns = u64::try_from(one_way.as_nanos()).map_err(io::Error::other)?;
    let mut buffer = vec![0; 70_000];
    let mut ready = Vec::new();
    loop {
        let now = sys::now_ns();
        let mut next_due: Option<u64> = None;
        for direction in &mut *directions {
            while direction.held.front().is_some_and(|(due, _)| *due <= now) {
                if let (Some((_, packet)), Some(mut device)) =
                    (direction.held.pop_front(), devices.get(direction.to))
                {
                    // A full or stopped device loses the packet; TCP sends it again.
                    let _ = device.write(&packet);
                }
            }
            next_due = direction
                .held
                .front()
                .map(|(due, _)| *due)
                .into_iter()
                .chain(next_due)
                .min();
        }
        let wait = next_due.map(|due| Duration::from_nanos(due.saturating_sub(sys::now_ns())));
        match sys::wait_readable(devices, &mut ready, wait) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        }
        for ((mut device, direction), _) in devices
            .iter()
            .zip(&mut *directions)
            .zip(&ready)
            .filter(|(_, r)| **r)
        {
            for _ in 0..BURST {
                let Ok(n) = device.read(&mut buffer) else {
                    break;
                };
                if direction.held.len() < HELD {
                    direction.held.push_back((
                        sys::now_ns() + delay_ns,
                        buffer.get(..n).unwrap_or_default().to_vec(),
                    ));
                }
            }
        }
    }
}
