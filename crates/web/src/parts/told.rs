//! What was done, as a sentence: who did what to what, by which rules and why; of rules only what changed.
//!
//! What the program itself wrote down as the reason of an act (`ops`) is taken apart here and said in the reader's language. What a
//! person wrote is quoted as it came.

use std::time::Duration;

use serde_json::Value;

use crate::api::rotations::RotationBody;
use soloist_domain::dispatch::Rules as SourceRules;
use soloist_domain::fields::{self, Given};
use soloist_domain::rotation::Rules as RotationRules;
use soloist_ops::Act;
use soloist_ops::accounts::FIRST_ADMIN;
use soloist_ops::jobs::ELSEWHERE;
use soloist_store::accounts::Role;
use soloist_store::journal::AuditEntry;
use soloist_view::rotation;
use soloist_view::rules::clauses;
use soloist_view::words::{Arg, Language, Piece, exactly, phrase, say, visible};

/// An entry of the audit, told.
#[derive(Debug, Default)]
pub struct Told {
    /// Who did what to what.
    pub sentence: Vec<Piece>,
    /// More of it, a clause each.
    pub more: Vec<String>,
    /// What a person wrote.
    pub reason: Vec<Piece>,
}

impl Told {
    /// The words for `entry`; `title` is what its target is called.
    #[must_use]
    pub fn of(entry: &AuditEntry, title: Option<&str>, lang: Language) -> Self {
        let act = Act::of_code(&entry.act);
        // Who will be: there is no account yet.
        let first = entry.target == FIRST_ADMIN;
        let first = first.then(|| say(lang, "told-the-first-admin", &[]));
        let target = first.as_deref().or(title).unwrap_or(&entry.target);
        let who = ("who", Piece::strong(visible(&entry.who)));
        let target = ("target", Piece::strong(visible(target)));
        let sentence = match act {
            Some(act) => phrase(lang, act.told(), &[who, target]),
            None => {
                let act = ("act", Piece::code(visible(&entry.act)));
                phrase(lang, "told-unknown", &[who, act, target])
            }
        };
        let Some(noted) = entry.reason.as_deref() else {
            return Self { sentence, ..Self::default() };
        };
        let quoted = |why: &str| phrase(lang, "told-why", &[("reason", Piece::text(visible(why)))]);
        // Before the reason of a person the program wrote where to, or which run.
        let (noted, why) = match (act, noted.split_once(": ")) {
            (Some(Act::JobMove | Act::JobDrill), Some((noted, why))) => (noted, Some(why)),
            _ => (noted, None),
        };
        match act.and_then(|act| more(act, noted, lang)) {
            Some(more) => Self { sentence, more, reason: why.map(quoted).unwrap_or_default() },
            None => Self { sentence, more: Vec::new(), reason: quoted(noted) },
        }
    }
}

/// What the program wrote; `None` when it is none of that.
fn more(act: Act, noted: &str, lang: Language) -> Option<Vec<String>> {
    let tell = |id: &str, args: &[(&str, Arg)]| vec![say(lang, id, args)];
    let text = |name: &'static str, text: &str| (name, Arg::from(visible(text).into_owned()));
    Some(match act {
        Act::SourcePut | Act::SourcePause | Act::SourceResume => {
            changes(noted, |rules| of_source(rules, lang), lang)?
        }
        Act::RotationPut => changes(noted, |rules| of_rotation(rules, lang), lang)?,
        Act::UserAdd | Act::UserRole => match noted {
            FIRST_ADMIN => tell("told-first-admin", &[]),
            role => {
                let role = say(lang, role_word(role.parse().ok()?), &[]);
                tell("told-as-role", &[("role", role.into())])
            }
        },
        Act::JobMove if noted == ELSEWHERE => Vec::new(),
        Act::JobMove => tell("told-to-node", &[text("node", noted.strip_prefix("to ")?)]),
        Act::JobDrill => {
            let (node, token) = noted.split_once(" under token ")?;
            tell("told-drill-of", &[text("node", node), text("token", token)])
        }
        Act::SourceBlock => {
            let (ms, why) = noted.strip_prefix("for ")?.split_once(" ms")?;
            let time = exactly(lang, Duration::from_millis(ms.parse().ok()?));
            let mut told = tell("told-for-time", &[("time", time.into())]);
            told.extend(why.strip_prefix(": ").map(|why| visible(why).into_owned()));
            told
        }
        Act::TaskRevive | Act::TaskRemove => tell("told-of-source", &[text("source", noted)]),
        Act::SourceRevive => {
            let n = noted.strip_suffix(" tasks")?;
            tell("told-tasks", &[text("n", n)])
        }
        Act::SourceRemove => {
            let (n, rest) = noted.split_once(" tasks, ")?;
            let flight = rest.strip_suffix(" in flight")?;
            tell("told-tasks-lost", &[text("n", n), text("flight", flight)])
        }
        Act::RotationRemove => {
            let (worker, rest) = noted.split_once(" had the turn, ")?;
            let n = text("n", rest.strip_suffix(" waited")?);
            match worker {
                "nobody" => tell("told-turn-free", &[n]),
                worker => tell("told-turn-lost", &[text("worker", worker), n]),
            }
        }
        Act::TokenNew | Act::TokenRevoke | Act::SessionEnd | Act::UserDisplay => {
            vec![visible(noted).into_owned()]
        }
        Act::UserPasswd if noted == "by one-time link" => tell("told-by-link", &[]),
        Act::UserLink if noted == "nobody" => tell("told-nobody", &[]),
        Act::UserLink => vec![visible(noted).into_owned()],
        _ => return None,
    })
}

fn role_word(role: Role) -> &'static str {
    match role {
        Role::Viewer => "told-role-viewer",
        Role::Operator => "told-role-operator",
        Role::Admin => "told-role-admin",
        Role::Collector => "told-role-collector",
    }
}

/// What is another rule than before, and what it was; all rules of what is new.
fn changes(
    noted: &str,
    clauses: impl Fn(Value) -> Option<Vec<String>>,
    lang: Language,
) -> Option<Vec<String>> {
    let mut now: Value = serde_json::from_str(noted).ok()?;
    let was = now.as_object_mut()?.remove("was");
    let now = clauses(now)?;
    let before = was.and_then(clauses).unwrap_or_default();
    let only = |those: &[String], others: &[String]| -> Vec<String> {
        those.iter().filter(|clause| !others.contains(clause)).cloned().collect()
    };
    let lines =
        [("told-rules-now", only(&now, &before)), ("told-rules-before", only(&before, &now))];
    let told: Vec<String> = lines
        .into_iter()
        .filter(|(_, clauses)| !clauses.is_empty())
        .map(|(id, clauses)| say(lang, id, &[("rules", Arg::from(clauses.join(" · ")))]))
        .collect();
    Some(if told.is_empty() { vec![say(lang, "told-rules-same", &[])] } else { told })
}

fn of_source(rules: Value, lang: Language) -> Option<Vec<String>> {
    let rules: Given<SourceRules> = fields::strict(rules).ok()?;
    Some(clauses(&rules.onto(SourceRules::default()).ok()?, lang, |_| true))
}

fn of_rotation(rules: Value, lang: Language) -> Option<Vec<String>> {
    let body: RotationBody = serde_json::from_value(rules).ok()?;
    let rules = RotationRules::try_from(body).ok()?;
    let types: Vec<&str> = rules.types.iter().map(|kind| kind.name.as_str()).collect();
    let types = types.join(&say(lang, "list-separator", &[]));
    let mut clauses = vec![say(lang, "told-rule-order", &[("types", types.into())])];
    clauses.extend(rotation::all_rules(&rules, lang));
    Some(clauses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::time::StoreTime;
    use soloist_store::journal::Kind;
    use soloist_view::words::plain;

    fn entry(act: &str, target: &str, reason: Option<&str>) -> AuditEntry {
        AuditEntry {
            id: 1,
            at: StoreTime(0),
            who: "wang".to_owned(),
            from: String::new(),
            act: act.to_owned(),
            target: target.to_owned(),
            reason: reason.map(str::to_owned),
            kind: Kind::Person,
            count: 1,
            until: None,
        }
    }

    /// All of it, as one text.
    fn told(act: &str, reason: Option<&str>, lang: Language) -> String {
        let Told { sentence, more, reason } = Told::of(&entry(act, "shop", reason), None, lang);
        let more: String = more.iter().map(|more| format!(" · {more}")).collect();
        format!("{}{}{more}", plain(&sentence), plain(&reason))
    }

    #[test]
    fn every_act_is_a_sentence_in_both_languages_and_an_unknown_one_has_its_code() {
        for act in Act::ALL {
            let [en, zh] = Language::ALL.map(|lang| told(act.code(), None, lang));
            assert!(en != zh && !en.contains("told-") && !zh.contains("told-"), "{en} {zh}");
            assert!(en.contains("wang") || *act == Act::RefusedMore, "{en}");
        }
        assert_eq!(told("moon.shot", None, Language::En), "wang did moon.shot to shop");
    }

    #[test]
    fn a_reason_is_quoted_and_the_target_has_its_title() {
        let switched = entry("participation.off", "settlement", Some("quarter closed"));
        let say = |lang, title| {
            let Told { sentence, reason, .. } = Told::of(&switched, Some(title), lang);
            plain(&sentence) + &plain(&reason)
        };
        assert_eq!(
            say(Language::En, "Settlement"),
            "wang switched Settlement off: “quarter closed”"
        );
        assert_eq!(say(Language::Zh, "结算"), "wang 关闭了 结算：“quarter closed”");
        let hostile = told("job.hold", Some("\u{202e}<b>\u{7}"), Language::En);
        assert!(hostile.contains("<U+202E><b>\u{fffd}"), "{hostile}");
    }

    #[test]
    fn why_a_job_was_moved_is_quoted_beside_where_to() {
        for (act, noted, said) in [
            (
                "job.move",
                "to node-b: new disk: sdb",
                "wang moved shop: “new disk: sdb” · to node-b",
            ),
            ("job.move", "elsewhere: to test it", "wang moved shop: “to test it”"),
            ("job.drill", "node-a under token 7: exercise", ": “exercise” · node-a, under token 7"),
        ] {
            let told = told(act, Some(noted), Language::En);
            assert!(told.ends_with(said), "{told}");
        }
    }

    #[test]
    fn who_will_be_the_first_admin_is_named_in_the_readers_language() {
        let link = entry("link.new", FIRST_ADMIN, None);
        let said = Language::ALL.map(|lang| plain(&Told::of(&link, None, lang).sentence));
        assert!(said[0].contains("the first admin"), "{said:?}");
        assert!(said[1].contains("第一个管理员") && !said[1].contains("admin"), "{said:?}");
    }

    #[test]
    fn of_rules_only_what_changed_is_said() {
        let rules = |gap: u64, more: &str| {
            format!(
                r#"{{"gap_ms":{gap},"window":null,"cap":2,"lease_ms":30000,"max_attempts":5,"backoff":{{"first_ms":1000,"max_ms":300000}},"paused":false{more}}}"#
            )
        };
        let change = rules(1_000, &format!(r#","was":{}"#, rules(250, "")));
        let said = told("source.put", Some(&change), Language::En);
        assert_eq!(
            said,
            "wang defined the source shop · now: one start per 1 s · before: one start per 250 ms"
        );
        let same = rules(1_000, &format!(r#","was":{}"#, rules(1_000, "")));
        assert!(told("source.put", Some(&same), Language::En).ends_with(" · nothing changed"));
        let new = told("source.put", Some(&rules(1_000, "")), Language::En);
        assert!(new.contains("now: one start per 1 s · ") && !new.contains("before"), "{new}");
        let order = |types: &str| {
            let kinds = types.split(' ').map(|kind| format!(r#"{{"name":"{kind}","gap_ms":0}}"#));
            format!(
                r#"{{"types":[{}],"min_gap_ms":0,"lease_ms":30000"#,
                kinds.collect::<Vec<_>>().join(",")
            )
        };
        let turned = format!(r#"{},"was":{}}}}}"#, order("b a"), order("a b"));
        let said = told("rotation.put", Some(&turned), Language::En);
        assert!(said.ends_with("now: order: b, a · before: order: a, b"), "{said}");
        let new = format!("{}}}", order("a b"));
        let said = told("rotation.put", Some(&new), Language::En);
        assert_eq!(
            said.matches(" · ").count(),
            3,
            "order, lease, who is skipped, once each: {said}"
        );
        let written = told("source.put", Some("they asked"), Language::En);
        assert!(written.ends_with(": “they asked”"), "{written}");
    }

    #[test]
    fn what_the_program_noted_is_said_in_the_readers_language() {
        for (act, noted, en, zh) in [
            ("user.add", "viewer", "as viewer", "角色为访客"),
            ("user.add", "the first admin", "as the first admin", "作为第一个管理员"),
            ("job.move", "to node-b", "to node-b", "到 node-b"),
            ("job.drill", "node-a under token 7", "node-a, under token 7", "令牌 7"),
            ("source.block", "for 1500 ms", "for 1.5 s", "时长 1.5 秒"),
            ("source.block", "for 1500 ms: HTTP 429", "for 1.5 s · HTTP 429", "HTTP 429"),
            ("source.remove", "3 tasks, 1 in flight", "with 3 tasks", "连同 3 项"),
            ("rotation.remove", "nobody had the turn, 2 waited", "2 waited", "2 个在等待"),
            ("user.passwd", "by one-time link", "by one-time link", "一次性链接"),
        ] {
            let said = Language::ALL.map(|lang| told(act, Some(noted), lang));
            assert!(said[0].contains(en) && said[1].contains(zh), "{act}: {said:?}");
            assert!(!said[0].contains('“'), "{act} is no quotation: {said:?}");
        }
    }
}
