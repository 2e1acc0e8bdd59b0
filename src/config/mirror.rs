//! The rule action `mirror`: which statements are copied, to which group, and how much of it. What a copy is and who runs it is not known here.

use std::time::Duration;

use super::group::GroupConfig;
use super::server::{DAY, to_u32};
use super::tree::Section;
use super::user::UserConfig;

/// Rules that copy. Each has threads and connections of its own.
pub(super) const MIRRORS_MAX: usize = 16;
/// Copies of a rule that run at a time, unless the file says so.
const COPIES: i64 = 4;
/// The most that it may say.
const COPIES_MAX: i64 = 64;
/// How long a copy may run, unless the file says so.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a rule copies, and where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirrorConfig {
    /// Of a hundred statements so many are copied.
    pub sample: u8,
    /// Writes are copied as well as reads.
    pub writes: bool,
    /// So many copies run at a time.
    pub copies: u32,
    /// How long one may run.
    pub timeout: Duration,
}

impl MirrorConfig {
    /// What the rule says, if it makes sense. The group's name is what `to` says.
    pub(super) fn read(
        section: &Section<'_>,
        user: Option<&str>,
        groups: &[GroupConfig],
        users: &[UserConfig],
    ) -> Option<Self> {
        let writes = section.bool("writes", false);
        let copies = section.int("concurrency", 0..=COPIES_MAX, 0);
        if writes
            && copies > 1
            && let Some(field) = section.get("concurrency")
        {
            field.error(
                "with `writes` copies run one after the other, in the order in which the statements did: leave it out",
            );
        }
        let copies = match copies {
            0 if writes => 1,
            0 => COPIES,
            given => given,
        };
        let sample = section.int("sample", 1..=100, 100);
        let timeout = section.duration("timeout", Duration::ZERO..=DAY, Duration::ZERO);
        let timeout = if timeout.is_zero() { TIMEOUT } else { timeout };
        let Some(to) = section.get("to") else {
            section.missing("to", "the group that copies go to");
            return None;
        };
        let name = to.string()?;
        let Some(group) = groups.iter().position(|group| group.name == name) else {
            let names: Vec<String> = groups
                .iter()
                .map(|group| format!("\"{}\"", group.name))
                .collect();
            to.error(format!(
                "`{name}` is not one of the groups: {}",
                names.join(", ")
            ));
            return None;
        };
        if groups
            .get(group)
            .is_some_and(|group| !group.schemas.is_empty())
        {
            to.error(format!(
                "group \"{name}\" has other names for schemas (`schemas`), and copies are not rewritten"
            ));
        }
        let mut concerned = users
            .iter()
            .filter(|known| user.is_none_or(|user| known.name == user))
            .peekable();
        if concerned.peek().is_some() && concerned.all(|known| known.group == group) {
            to.error(format!(
                "the statements run in group \"{name}\" already: copies go to another one"
            ));
        }
        Some(Self {
            sample: u8::try_from(sample).unwrap_or(100),
            writes,
            copies: to_u32(copies),
            timeout,
        })
    }
}
