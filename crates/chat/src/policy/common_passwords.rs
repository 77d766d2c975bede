//! Is this a password that everybody guesses first?
//!
//! The passwords that people choose most are few words in many spellings: another case, `4` for `a`, a year or a `!`
//! at the end. So a short list of words, with those spellings undone, knows far more of them than it has lines.
//! Beside the list there are patterns: rows of keys, sequences, repetitions and dates.

use std::collections::HashSet;
use std::sync::LazyLock;

/// A word on each line or between spaces; lines with `#` are headings.
static WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let lines = include_str!("common_passwords.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
});

/// Shorter words are found in too many good passwords.
const WORD_CHARS_MIN: usize = 3;

/// Digits beside a word that add nothing: a day, a year, `123`.
const DIGITS_AROUND_MAX: usize = 4;

/// Characters of a row that count as a walk along it.
const WALK_CHARS_MIN: usize = 3;

/// Rows along which people type. Each is also walked backwards.
const ROWS: [&str; 15] = [
    "abcdefghijklmnopqrstuvwxyz",
    "12345678901234567890",
    "!@#$%^&*()",
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "qwertzuiop",
    "azertyuiop",
    "qsdfghjklm",
    "wxcvbn",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
    "qazwsxedcrfvtgbyhnujmikolp",
    "1q2w3e4r5t6y7u8i9o0p",
    "q1w2e3r4t5y6u7i8o9p0",
    "a1b2c3d4e5f6g7h8i9",
];

/// Whether a password is a common word in any spelling, a pattern, or the user id itself.
pub(super) fn is_common(password: &str, user: Option<&str>) -> bool {
    let text: Vec<char> = password.to_lowercase().chars().filter(|c| !c.is_whitespace()).collect();
    let user = user.map(str::to_lowercase);
    is_pattern(&text) || cores(&text).any(|core| is_word(core, user.as_deref()))
}

/// What is left of a text without digits and signs at its ends, which may also be letters in disguise (`pa$$`).
fn cores(text: &[char]) -> impl Iterator<Item = &[char]> {
    let is_around = |c: &&char| !c.is_alphabetic();
    let before = text.iter().take_while(is_around).count();
    let after = text.iter().rev().take_while(is_around).count();
    let befores = lengths(before).filter(move |length| is_plain_affix(&text[..*length]));
    befores.flat_map(move |before| {
        let afters = lengths(after).filter(move |after| {
            before + after <= text.len() && is_plain_affix(&text[text.len() - after..])
        });
        afters.map(move |after| &text[before..text.len() - after])
    })
}

/// Where a run of this length may be cut. Long runs only as a whole: no word ends in many disguised letters.
fn lengths(run: usize) -> impl Iterator<Item = usize> {
    let short = run.min(DIGITS_AROUND_MAX + 1);
    (0..=short).chain((run > short).then_some(run))
}

/// Whether digits and signs beside a word add nothing to guess.
fn is_plain_affix(affix: &[char]) -> bool {
    let digits: Vec<char> = affix.iter().copied().filter(char::is_ascii_digit).collect();
    let signs = affix.len() - digits.len();
    signs <= DIGITS_AROUND_MAX && (digits.len() <= DIGITS_AROUND_MAX || is_pattern(&digits))
}

/// Whether it is a known word, or one twice.
fn is_word(core: &[char], user: Option<&str>) -> bool {
    if core.len() < WORD_CHARS_MIN {
        return false;
    }
    let is_known = |word: &str| WORDS.contains(word) || user == Some(word);
    let spellings = [None, Some('i'), Some('l')];
    spellings.into_iter().any(|one| {
        let letters: Vec<char> = match one {
            None => core.to_vec(),
            Some(one) => core.iter().map(|c| undisguised(*c, one)).collect(),
        };
        let word: String = letters.iter().collect();
        let (first, second) = letters.split_at(letters.len() / 2);
        is_known(&word) || (first == second && is_known(&first.iter().collect::<String>()))
    })
}

/// The letter that a digit or sign stands for; `one` for those that may be two.
fn undisguised(c: char, one: char) -> char {
    match c {
        '@' | '4' => 'a',
        '8' => 'b',
        '(' => 'c',
        '3' | '€' => 'e',
        '6' | '9' => 'g',
        '1' | '!' | '|' => one,
        '0' => 'o',
        '$' | '5' => 's',
        '7' | '+' => 't',
        '2' => 'z',
        other => other,
    }
}

/// Whether it is made of walks along rows and of repetitions, or is a date.
fn is_pattern(text: &[char]) -> bool {
    is_repetition(text) || is_walk(text) || is_date(text)
}

/// `abcabcabc`, `12121212`: up to four characters again and again.
fn is_repetition(text: &[char]) -> bool {
    (1..=4).any(|period| {
        text.len() >= 2 * period.max(2)
            && (period..text.len()).all(|at| text[at] == text[at - period])
    })
}

/// `qwerty123`, `asdfgfdsa`, `111222`: nothing but walks, each of three characters or more.
fn is_walk(text: &[char]) -> bool {
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for from in 0..text.len() {
        if !reached[from] {
            continue;
        }
        let longest = longest_walk(&text[from..]);
        for length in WALK_CHARS_MIN..=longest {
            reached[from + length] = true;
        }
    }
    !text.is_empty() && reached[text.len()]
}

/// How many characters from the start are one walk, or one character again and again.
fn longest_walk(text: &[char]) -> usize {
    let same = text.iter().take_while(|c| **c == text[0]).count();
    let walks = ROWS.iter().flat_map(|row| {
        let row: Vec<char> = row.chars().collect();
        let backwards: Vec<char> = row.iter().rev().copied().collect();
        [row, backwards]
    });
    let along = walks.map(|row| {
        let starts = (0..row.len()).filter(|start| row[*start] == text[0]);
        let lengths = starts.map(|start| {
            row[start..].iter().zip(text).take_while(|(in_row, typed)| in_row == typed).count()
        });
        lengths.max().unwrap_or(0)
    });
    along.max().unwrap_or(0).max(same)
}

/// `19901231`, `31.12.1990`, `311290`.
fn is_date(text: &[char]) -> bool {
    let is_part = |c: &char| c.is_ascii_digit() || matches!(c, '.' | '-' | '/' | '_');
    if !text.iter().all(is_part) {
        return false;
    }
    let digits: String = text.iter().filter(|c| c.is_ascii_digit()).collect();
    let number = |from: usize, to: usize| digits.get(from..to).and_then(|it| it.parse().ok());
    let is_day = |day: Option<u32>, month: Option<u32>| {
        day.is_some_and(|day| (1..=31).contains(&day))
            && month.is_some_and(|month| (1..=12).contains(&month))
    };
    let is_year = |year: Option<u32>| year.is_some_and(|year| (1900..=2099).contains(&year));
    match digits.len() {
        8 => {
            (is_year(number(0, 4)) && is_day(number(6, 8), number(4, 6)))
                || (is_year(number(4, 8))
                    && (is_day(number(0, 2), number(2, 4)) || is_day(number(2, 4), number(0, 2))))
        }
        6 => {
            is_day(number(0, 2), number(2, 4))
                || is_day(number(2, 4), number(0, 2))
                || is_day(number(4, 6), number(2, 4))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_everybody_guesses_first_is_common() {
        let words = "password Password1 PASSWORD! p@ssw0rd P@$$w0rd123 passw0rd2024! pa55word \
            password-1 123password passwordpassword 12345678 123456789 1234567890 87654321 \
            11111111 12121212 12341234 00000000 qwertyuiop qwerty123 Qwerty12345 1q2w3e4r \
            1qaz2wsx qazwsxedc asdfghjkl zxcvbnm123 qweasdzxc abcdefgh abcd1234 abc12345 \
            aaaaaaaa aaaa1111 !@#$%^&* iloveyou ILoveYou2 iloveyou!! l0vely123 letmein123 \
            welcome1 Welcome2024 monkey12 dragon123 football1 Superman1 michael1 jennifer \
            princess1 sunshine! chelsea1905 liverpool1 starwars1 trustno1 19901231 \
            31121990 31.12.1990 1990-12-31 summer2023! adminadmin admin123 administrator \
            changeme1 woaini1314 woaini520 senha123 azerty123 passwort1 hallo123 \
            contraseña 123qweasd qwer1234 asdf1234 zaq12wsx 1qazxsw2 love123456 \
            alexander1987 jordan23 pokemon12345 m0nk3y123";
        let phrases = ["p a s s w o r d", "i love you 2"];
        for password in words.split_whitespace().chain(phrases) {
            assert!(is_common(password, None), "{password}");
        }
    }

    #[test]
    fn what_takes_long_to_guess_is_not() {
        let words = "bench-password-1 test-password-1 tiger-lamp-42 love84719203 xkqzjvwp k3v9wq2x \
            Tr0ub4dor&3x 密码密码我的猫 7392018465 blue-otter-cooks hunter2-is-stars \
            drag0nfruitsalad qwertz-ist-kein-wort 1990-summer-otter";
        let phrases = [
            "correct horse",
            "correct horse battery",
            "battery staple",
            "long enough",
            "wrong one",
            "a new password",
            "another password",
            "something else",
            "mein hund bellt laut",
            "",
        ];
        for password in words.split_whitespace().chain(phrases) {
            assert!(!is_common(password, None), "{password}");
        }
    }

    #[test]
    fn nobody_takes_their_own_id() {
        for password in
            ["Kowalczyk", "kowalczyk1", "kowalczyk2024!", "KOWALCZYKkowalczyk", "k0walczyk"]
        {
            assert!(is_common(password, Some("kowalczyk")), "{password}");
            assert!(!is_common(password, Some("someone-else")), "{password}");
        }
    }

    #[test]
    fn the_list_is_in_the_form_it_is_compared_in() {
        assert!(WORDS.len() > 2000, "{}", WORDS.len());
        for word in &*WORDS {
            let is_plain = word.chars().all(char::is_alphabetic) && *word == word.to_lowercase();
            assert!(is_plain && word.chars().count() >= WORD_CHARS_MIN, "{word}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_decided(text in ".{0,140}") {
            is_common(&text, Some("alice"));
        }

        #[test]
        fn random_passwords_are_accepted(text in "[a-z0-9]{12}") {
            // Few letters among digits may be a word with digits around it, many letters a word.
            let letters = text.chars().filter(char::is_ascii_alphabetic).count();
            let is_mixed = letters > 3 && letters < 10;
            proptest::prop_assume!(is_mixed);
            proptest::prop_assert!(!is_common(&text, None), "{}", text);
        }
    }
}
