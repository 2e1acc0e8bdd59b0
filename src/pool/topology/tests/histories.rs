//! What holds of the roles in any history of servers and checks.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Act {
    /// A server becomes this.
    Set(usize, Server),
    /// A check begins and sees what there is.
    Begin(usize),
    /// It ends.
    End(usize),
    Pause,
}

fn act() -> impl Strategy<Value = Act> {
    let server =
        (any::<bool>(), any::<bool>(), 0..4_usize).prop_map(|(is_up, closed, source)| Server {
            is_up,
            is_read_only: closed,
            source: Some(source).filter(|source| *source < 3),
        });
    prop_oneof![
        2 => (0..3_usize, server).prop_map(|(place, mut server)| {
            if server.source == Some(place) {
                server.source = None;
            }
            Act::Set(place, server)
        }),
        4 => (0..3_usize).prop_map(Act::Begin),
        4 => (0..3_usize).prop_map(Act::End),
        1 => Just(Act::Pause),
    ]
}

/// What a history of looks says, told anew without the machine.
#[derive(Default)]
struct Record {
    looks: [Vec<Look>; 3],
    /// Servers that were replaced while they did not answer, and not seen closed or replicating since.
    strayed: [bool; 3],
}

impl Record {
    fn sight(&self, place: usize) -> Option<&Sight> {
        self.looks[place].iter().rev().find_map(|look| match look {
            Look::Answered(sight) => Some(sight),
            Look::Silent => None,
        })
    }

    fn was_silent(&self, place: usize) -> bool {
        let last = self.looks[place].iter().rev().take(2);
        last.clone().count() == 2 && last.into_iter().all(|look| *look == Look::Silent)
    }

    fn source(&self, place: usize) -> Option<usize> {
        let source = self.sight(place)?.sources.first()?;
        (0..3).find(|place| address(*place) == source.address)
    }

    /// It replicates from one that does not replicate from it.
    fn follows(&self, place: usize) -> bool {
        self.source(place)
            .is_some_and(|source| self.source(source) != Some(place))
    }

    fn takes_writes(&self, place: usize) -> bool {
        self.sight(place)
            .is_some_and(|sight| sight.is_read_only == Some(false))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn in_any_history(acts in prop::collection::vec(act(), 0..120), heir in 0..3_usize) {
        let mut world = World::new();
        let mut record = Record::default();
        let mut open: [Option<(Look, Duration)>; 3] = [None, None, None];
        let mut is_first = true;
        for act in acts {
            world.now += Duration::from_millis(10);
            match act {
                Act::Set(place, server) => world.servers[place] = server,
                Act::Begin(place) => open[place] = Some((world.look(place), world.now)),
                Act::Pause => world.now += SECOND,
                Act::End(place) => {
                    let Some((look, begun)) = open[place].take() else {
                        continue;
                    };
                    record.looks[place].push(look.clone());
                    if matches!(&look, Look::Answered(sight) if sight.is_read_only == Some(true)) {
                        record.strayed[place] = false;
                    }
                    let before = world.primary();
                    let notices = world.tell(place, look, begun);
                    let after = world.primary();
                    if let Some(after) = after.filter(|_| after != before) {
                        // Who becomes the primary was seen to take writes, but for the configured one at the start.
                        let is_known = record.takes_writes(after) && !record.was_silent(after);
                        prop_assert!(is_known || (is_first && after == 0));
                        prop_assert!(!record.strayed[after]);
                        is_first = false;
                    }
                    if let Some(before) = before.filter(|_| after != before) {
                        // Who ceases to be was seen closed or replicating, or did not answer twice.
                        let is_silent = record.was_silent(before);
                        prop_assert!(is_silent || !record.takes_writes(before) || record.follows(before));
                        if is_silent {
                            prop_assert!(after.is_some());
                            record.strayed[before] = true;
                        }
                    }
                    if before == after {
                        let is_change = |notice: &Notice| matches!(notice, Notice::Elected { .. } | Notice::Vacated { .. });
                        prop_assert!(!notices.iter().any(is_change));
                    }
                    prop_assert!(!world.fenced().contains(&after.unwrap_or(usize::MAX)));
                    for place in 0..3 {
                        record.strayed[place] &= !record.follows(place);
                    }
                }
            }
        }
        // When operators have brought order into it, roles are theirs.
        for place in 0..3 {
            world.servers[place] = follower(heir);
        }
        world.servers[heir] = Server { is_read_only: true, ..CLAIMANT };
        world.rounds(2);
        prop_assert_eq!(world.primary(), None);
        world.servers[heir] = CLAIMANT;
        world.rounds(3);
        prop_assert_eq!((world.primary(), world.fenced()), (Some(heir), vec![]));
        world.topology.decide(world.now + SECOND * 100);
        prop_assert!(!world.topology.is_in_question(world.now));
    }
}
