//! Arithmetic on samples: medians, ranges, intervals.

/// The middle value (of an even number the mean of the two in the middle); `None` of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// The mean and the half width of its 95 % interval (1.96 standard errors); `None` of fewer than two values.
pub(crate) fn mean_interval(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let n = count(values.len());
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((mean, 1.96 * (variance / n).sqrt()))
}

/// `median [least-greatest]` with the given number of decimals; the median alone of a single value, `-` of nothing.
pub(crate) fn with_range(values: &[f64], decimals: usize) -> String {
    let Some(middle) = median(values) else {
        return "-".into();
    };
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.len() < 2 {
        return format!("{middle:.decimals$}");
    }
    format!("{middle:.decimals$} [{least:.decimals$}-{greatest:.decimals$}]")
}

/// The median with the given number of decimals, `-` of nothing.
pub(crate) fn middle(values: &[f64], decimals: usize) -> String {
    median(values).map_or_else(|| "-".into(), |m| format!("{m:.decimals$}"))
}

/// A count as a float; exact below 2^53, which nothing here reaches.
pub(crate) fn count(n: usize) -> f64 {
    n as f64
}

/// The same for 64 bits.
pub(crate) fn count64(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn intervals() {
        assert_eq!(mean_interval(&[1.0]), None);
        assert_eq!(mean_interval(&[2.0, 2.0, 2.0]), Some((2.0, 0.0)));
        let (mean, half) = mean_interval(&[1.0, 3.0]).expect("two values");
        assert!(
            (mean - 2.0).abs() < 1e-9 && (half - 1.96).abs() < 1e-9,
            "{mean} {half}"
        );
    }

    #[test]
    fn ranges_in_words() {
        assert_eq!(with_range(&[], 1), "-");
        assert_eq!(with_range(&[1.26], 1), "1.3");
        assert_eq!(with_range(&[3.0, 1.0, 2.0], 0), "2 [1-3]");
        assert_eq!(middle(&[3.0, 1.0], 1), "2.0");
    }
}
