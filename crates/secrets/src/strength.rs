//! How easily a password is guessed, by `zxcvbn`: words, names, dates, rows of keys, and similar ones.
//!
//! No rule about capitals, digits or signs: they make passwords hard to remember, not hard to guess. The reasons are ids of messages; the
//! texts are in the locales.

use zxcvbn::feedback::{Suggestion, Warning};
use zxcvbn::{Score, zxcvbn};

/// Letters and digits that must be left beside what is known of the person.
const REST_MIN: usize = 6;

/// Why a password is too easy to guess: ids of messages, the most important first; never empty.
///
/// # Errors
/// Those, when fewer than about 10^8 guesses find it.
pub(super) fn check(password: &str, about: &[&str]) -> Result<(), Vec<&'static str>> {
    let about: Vec<&str> = about.iter().copied().chain(["soloist"]).collect();
    let judged = zxcvbn(password, &about);
    let mostly = is_mostly(password, &about);
    if judged.score() >= Score::Three && !mostly {
        return Ok(());
    }
    let mut why = vec!["password-weak"];
    why.extend(mostly.then_some("weak-about-you"));
    if let Some(feedback) = judged.feedback() {
        why.extend(feedback.warning().map(of_warning));
        why.extend(feedback.suggestions().iter().copied().map(of_suggestion));
    }
    Err(why)
}

/// Whether little is left of it without these words: `zxcvbn` thinks better of a word that is repeated with a sign between.
fn is_mostly(password: &str, about: &[&str]) -> bool {
    let whole = password.to_lowercase();
    let long = |word: &&&str| word.chars().count() > 2 || !word.is_ascii();
    let rest = about
        .iter()
        .filter(long)
        .fold(whole.clone(), |rest, word| rest.replace(&word.to_lowercase(), " "));
    rest != whole && rest.chars().filter(|c| c.is_alphanumeric()).count() < REST_MIN
}

fn of_warning(warning: Warning) -> &'static str {
    match warning {
        Warning::StraightRowsOfKeysAreEasyToGuess => "weak-straight-rows",
        Warning::ShortKeyboardPatternsAreEasyToGuess => "weak-keyboard",
        Warning::RepeatsLikeAaaAreEasyToGuess => "weak-repeats",
        Warning::RepeatsLikeAbcAbcAreOnlySlightlyHarderToGuess => "weak-repeated-words",
        Warning::ThisIsATop10Password
        | Warning::ThisIsATop100Password
        | Warning::ThisIsACommonPassword => "weak-common",
        Warning::ThisIsSimilarToACommonlyUsedPassword => "weak-similar",
        Warning::SequencesLikeAbcAreEasyToGuess => "weak-sequences",
        Warning::RecentYearsAreEasyToGuess => "weak-years",
        Warning::AWordByItselfIsEasyToGuess => "weak-one-word",
        Warning::DatesAreOftenEasyToGuess => "weak-dates",
        Warning::NamesAndSurnamesByThemselvesAreEasyToGuess
        | Warning::CommonNamesAndSurnamesAreEasyToGuess => "weak-names",
    }
}

fn of_suggestion(suggestion: Suggestion) -> &'static str {
    match suggestion {
        Suggestion::UseAFewWordsAvoidCommonPhrases => "better-few-words",
        Suggestion::NoNeedForSymbolsDigitsOrUppercaseLetters => "better-no-signs",
        Suggestion::AddAnotherWordOrTwo => "better-more-words",
        Suggestion::CapitalizationDoesntHelpVeryMuch
        | Suggestion::AllUppercaseIsAlmostAsEasyToGuessAsAllLowercase => "better-not-capitals",
        Suggestion::ReversedWordsArentMuchHarderToGuess => "better-not-reversed",
        Suggestion::PredictableSubstitutionsDontHelpVeryMuch => "better-not-substituted",
        Suggestion::UseALongerKeyboardPatternWithMoreTurns => "better-longer-pattern",
        Suggestion::AvoidRepeatedWordsAndCharacters => "better-not-repeated",
        Suggestion::AvoidSequences => "better-no-sequences",
        Suggestion::AvoidRecentYears
        | Suggestion::AvoidYearsThatAreAssociatedWithYou
        | Suggestion::AvoidDatesAndYearsThatAreAssociatedWithYou => "better-no-dates",
    }
}

/// Every id that [`check`] may name.
#[cfg(test)]
pub const MESSAGES: [&str; 23] = [
    "password-weak",
    "weak-about-you",
    "weak-straight-rows",
    "weak-keyboard",
    "weak-repeats",
    "weak-repeated-words",
    "weak-common",
    "weak-similar",
    "weak-sequences",
    "weak-years",
    "weak-one-word",
    "weak-dates",
    "weak-names",
    "better-few-words",
    "better-no-signs",
    "better-more-words",
    "better-not-capitals",
    "better-not-reversed",
    "better-not-substituted",
    "better-longer-pattern",
    "better-not-repeated",
    "better-no-sequences",
    "better-no-dates",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_easily_guessed_is_refused_with_the_reason() {
        for (weak, reason) in [
            ("1234567890", "weak-common"),
            ("password12", "password-weak"),
            ("aaaaaaaaaaaa", "weak-repeats"),
            ("qwertyuiop", "password-weak"),
            ("li-wang-li-wang", "weak-about-you"),
            ("Soloist+Li-Wang+2026", "weak-about-you"),
        ] {
            let why = check(weak, &["li-wang"]).expect_err(weak);
            assert!(why.contains(&reason), "{weak}: {why:?}");
            assert!(why.iter().all(|id| MESSAGES.contains(id)), "{weak}: {why:?}");
        }
    }

    #[test]
    fn what_is_hard_to_guess_needs_no_capitals_digits_or_signs() {
        for strong in ["violet harbour lanterns", "密码要有十个字符才行吧", "tnqvxkzmwpbf"]
        {
            assert_eq!(check(strong, &["li"]), Ok(()), "{strong}");
        }
    }
}
