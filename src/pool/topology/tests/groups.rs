//! Roles in a replication group of MySQL's.

use super::*;

fn in_group(uuids: &[&str], own: &str, is_secondary: bool) -> Look {
    Look::Answered(Sight {
        identity: Identity {
            server_id: 1,
            uuid: own.into(),
        },
        is_read_only: Some(is_secondary),
        sources: Vec::new(),
        view: Some(GroupView {
            is_online: true,
            is_secondary,
            has_majority: true,
            members: uuids.iter().map(|uuid| (*uuid).into()).collect(),
        }),
        is_continuous: true,
    })
}

#[test]
fn a_replication_group() {
    let all = ["a", "b", "c"];
    let mut world = World::new();
    let round = |world: &mut World, primaries: [bool; 3]| {
        for (place, is_primary) in primaries.into_iter().enumerate() {
            world.now += SECOND;
            let look = in_group(&all, all[place], !is_primary);
            world.tell(place, look, world.now);
        }
    };
    for _ in 0..2 {
        round(&mut world, [false, true, false]);
    }
    assert_eq!(world.primary(), Some(1));
    for _ in 0..3 {
        round(&mut world, [false, false, true]);
    }
    assert_eq!(world.primary(), Some(2));
    // All take writes: the last one stays, and the others are no danger.
    for _ in 0..3 {
        round(&mut world, [true; 3]);
    }
    assert_eq!((world.primary(), world.fenced()), (Some(2), vec![]));
    // Cut off from the others it still calls itself the primary.
    let mut look = in_group(&all, "c", false);
    if let Look::Answered(sight) = &mut look {
        sight.view.as_mut().unwrap().has_majority = false;
    }
    world.tell(2, look, world.now);
    assert_eq!(world.primary(), None);
    round(&mut world, [false, true, false]);
    assert_eq!(world.primary(), Some(1));
}
