//! How easily a password is guessed, by `zxcvbn`: words, names, dates, rows of keys, and what stands near them.
//!
//! No rule about capitals, digits or signs: they make passwords that are hard to remember, not hard to guess. It names what is wrong
//! as ids of messages; the words stand in the locales.

use zxcvbn::feedback::{Suggestion, Warning};
use zxcvbn::{Score, zxcvbn};

/// Why a password is too easy to guess: ids of messages, the most important first; never empty.
///
/// # Errors
/// Those, when fewer than about 10^8 guesses find it.
pub(super) fn check(password: &str, about: &[&str]) -> Result<(), Vec<&'static str>> {
    let about: Vec<&str> = about.iter().copied().chain(["soloist"]).collect();
    let judged = zxcvbn(password, &about);
    if judged.score() >= Score::Three {
        return Ok(());
    }
    let mut why = vec!["password-weak"];
    if let Some(feedback) = judged.feedback() {
        why.extend(feedback.warning().map(of_warning));
        why.extend(feedback.suggestions().iter().copied().map(of_suggestion));
    }
    Err(why)
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
pub(crate) const MESSAGES: [&str; 22] = [
    "password-weak",
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
            ("password12", "weak-common"),
            ("aaaaaaaaaaaa", "weak-repeats"),
            ("qwertyuiop", "weak-common"),
            ("li-wang-li-wang", "password-weak"),
            ("soloist-li-wang", "password-weak"),
        ] {
            let why = check(weak, &["li-wang"]).expect_err(weak);
            assert!(why.contains(&reason) || reason == "weak-common", "{weak}: {why:?}");
            assert!(why.len() > 1 && why.iter().all(|id| MESSAGES.contains(id)), "{weak}: {why:?}");
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
