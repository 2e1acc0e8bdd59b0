//! Smooth weighted choice of a replica: each pick raises every candidate by its weight and takes the highest, which then
//! pays the sum. So 2:1 gives A B A, not A A B. State is one number a host, kept per worker and group.

use crate::pool::HostId;

/// A host that may be picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Which host.
    pub host: HostId,
    /// Its weight; 0 takes no new sessions.
    pub weight: u32,
}

/// The state of the choice for one group.
#[derive(Debug, Default)]
pub struct Balance {
    credit: Vec<(HostId, i64)>,
}

impl Balance {
    /// Picks one of the candidates; `None` when there is none with a weight.
    pub fn pick(&mut self, candidates: impl Iterator<Item = Candidate>) -> Option<HostId> {
        let mut total = 0_i64;
        let mut best: Option<(usize, i64)> = None;
        for candidate in candidates.filter(|c| c.weight > 0) {
            total = total.saturating_add(i64::from(candidate.weight));
            let at = self.slot(candidate.host);
            let credit = self.credit.get_mut(at).map(|(_, credit)| {
                *credit = credit.saturating_add(i64::from(candidate.weight));
                *credit
            })?;
            if best.is_none_or(|(_, most)| credit > most) {
                best = Some((at, credit));
            }
        }
        let (at, _) = best?;
        let (host, credit) = self.credit.get_mut(at)?;
        *credit = credit.saturating_sub(total);
        Some(*host)
    }

    fn slot(&mut self, host: HostId) -> usize {
        if let Some(at) = self.credit.iter().position(|(h, _)| *h == host) {
            return at;
        }
        self.credit.push((host, 0));
        self.credit.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(balance: &mut Balance, weights: &[(u16, u32)], n: usize) -> Vec<u16> {
        (0..n)
            .filter_map(|_| {
                balance.pick(weights.iter().map(|(id, weight)| Candidate {
                    host: HostId(*id),
                    weight: *weight,
                }))
            })
            .map(|host| host.0)
            .collect()
    }

    #[test]
    fn weights_are_kept_and_spread() {
        assert_eq!(
            picks(&mut Balance::default(), &[(1, 2), (2, 1)], 6),
            [1, 2, 1, 1, 2, 1]
        );
        assert_eq!(
            picks(&mut Balance::default(), &[(1, 1), (2, 1), (3, 1)], 6),
            [1, 2, 3, 1, 2, 3]
        );
        assert_eq!(picks(&mut Balance::default(), &[(1, 0)], 3), [0; 0]);
        assert_eq!(picks(&mut Balance::default(), &[], 3), [0; 0]);
    }

    #[test]
    fn a_host_that_was_away_gets_no_flood_when_it_returns() {
        let mut balance = Balance::default();
        picks(&mut balance, &[(1, 1), (2, 1)], 10);
        assert_eq!(picks(&mut balance, &[(1, 1)], 5), [1; 5]);
        let back = picks(&mut balance, &[(1, 1), (2, 1)], 6);
        assert_eq!(back.iter().filter(|h| **h == 2).count(), 3);
    }
}
