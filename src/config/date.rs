//! Dates of the calendar, as days since 1970-01-01: what keys of sharded tables may be.

/// `YYYY-MM-DD`; `None` for anything else, and for a day that is not in the calendar.
#[must_use]
pub fn day(text: &[u8]) -> Option<i32> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *text else {
        return None;
    };
    day_of(
        digits(&[y1, y2, y3, y4])?,
        digits(&[m1, m2])?,
        digits(&[d1, d2])?,
    )
}

fn digits(text: &[u8]) -> Option<i32> {
    let is_number = text.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        text.iter()
            .fold(0, |number, digit| number * 10 + i32::from(digit - b'0'))
    })
}

/// The day of a year, month and day; `None` if the calendar has none.
#[must_use]
pub fn day_of(year: i32, month: i32, day: i32) -> Option<i32> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if !(0..=9999).contains(&year) || !(1..=length).contains(&day) {
        return None;
    }
    // Years that begin in March, so that the leap day is the last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// `YYYY-MM-DD` of a day.
#[must_use]
pub fn print_day(day: i32) -> String {
    let day = day.saturating_add(719_468);
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let years = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let (month, add) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!("{:04}-{month:02}-{date:02}", era * 400 + years + add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_go_there_and_back() {
        assert_eq!(day(b"1970-01-01"), Some(0));
        assert_eq!(day(b"2000-02-29"), Some(11_016));
        for wrong in [
            "1900-02-29",
            "2024-13-01",
            "2024-1-1",
            "2024-01-00",
            "",
            "x",
        ] {
            assert_eq!(day(wrong.as_bytes()), None, "{wrong}");
        }
        for at in (-719_528..2_932_896).step_by(17) {
            assert_eq!(day(print_day(at).as_bytes()), Some(at));
        }
    }
}
