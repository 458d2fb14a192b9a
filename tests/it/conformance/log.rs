//! Laws of the output that is kept: how much of it, and how it is found again.

use soloist::store::journal::{Journal, LogFilter, LogFrom, LogLine, LogPage};

use super::journal::{output, running};
use super::*;

/// Reports `texts` in parts, as a node does.
async fn say(store: &Store, run: &Started, texts: &[String]) {
    for part in texts.chunks(400) {
        let part: Vec<&str> = part.iter().map(String::as_str).collect();
        store.record_output(&output(run, &part)).await.expect("kept");
    }
}

fn numbered(numbers: std::ops::RangeInclusive<usize>) -> Vec<String> {
    numbers.map(|n| format!("line {n}")).collect()
}

async fn page(store: &Store, filter: &LogFilter, from: LogFrom, limit: usize) -> LogPage {
    store.log_page(&job("outbound"), filter, from, limit).await.expect("a page")
}

/// All of it, back from the newest line, with pages of `limit`; oldest first.
async fn whole(store: &Store, filter: &LogFilter, limit: usize) -> Vec<LogLine> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let mut some = page(store, filter, LogFrom::Before(before), limit).await;
        assert!(some.lines.len() <= limit && some.lines.is_sorted_by_key(|line| line.seq));
        some.lines.append(&mut all);
        all = some.lines;
        match some.next {
            Some(next) => {
                assert!(before.is_none_or(|before| next < before), "it goes on where it was");
                before = Some(next);
            }
            None => return all,
        }
    }
}

fn seqs(lines: &[LogLine]) -> Vec<u64> {
    lines.iter().map(|line| line.seq).collect()
}

pub(super) async fn no_more_lines_are_kept_than_are_configured(fresh: Fresh) {
    let store = fresh.keeping(LogBounds { lines: 500, ..LogBounds::default() }).await;
    let (_, run) = running(&store, "outbound").await;
    say(&store, &run, &numbered(1..=1_300)).await;
    let kept = whole(&store, &LogFilter::default(), 2_000).await;
    assert_eq!(seqs(&kept), (801..=1_300).collect::<Vec<_>>());
    assert_eq!((kept[0].text.as_str(), kept[499].text.as_str()), ("line 801", "line 1300"));
    // Whoever keeps more keeps more from then on.
    let store = fresh.keeping(LogBounds::default()).await;
    say(&store, &run, &numbered(1_301..=1_700)).await;
    assert_eq!(whole(&store, &LogFilter::default(), 2_000).await.len(), 900);
}

pub(super) async fn no_more_bytes_are_kept_than_are_configured(fresh: Fresh) {
    let bounds = LogBounds { lines: 1_000_000, bytes: 1 << 20 };
    let store = fresh.keeping(bounds).await;
    let (_, run) = running(&store, "outbound").await;
    let long: Vec<String> = (0..800).map(|n| format!("{n} {}", "x".repeat(3_000))).collect();
    say(&store, &run, &long).await;
    let kept = whole(&store, &LogFilter::default(), 200).await;
    assert_eq!(kept.last().map(|line| line.seq), Some(800));
    let bytes: usize = kept.iter().map(|line| line.text.len()).sum();
    assert!((850_000..1 << 20).contains(&bytes), "{bytes} bytes in {} lines", kept.len());
    // Another process goes on counting where this one was.
    let store = fresh.keeping(bounds).await;
    say(&store, &run, &numbered(1..=40)).await;
    say(&store, &run, &long[..100]).await;
    let kept = whole(&store, &LogFilter::default(), 200).await;
    let bytes: usize = kept.iter().map(|line| line.text.len()).sum();
    assert!((850_000..1 << 20).contains(&bytes), "{bytes} bytes in {} lines", kept.len());
}

pub(super) async fn older_lines_are_paged_without_a_gap(fresh: Fresh) {
    let store = fresh.connect().await;
    let all = LogFilter::default();
    assert_eq!(page(&store, &all, LogFrom::Before(None), 10).await, LogPage::default());
    let (_, run) = running(&store, "outbound").await;
    say(&store, &run, &numbered(1..=25)).await;
    for limit in [1, 7, 24, 25, 26] {
        assert_eq!(seqs(&whole(&store, &all, limit).await), (1..=25).collect::<Vec<_>>());
    }
    let newest = page(&store, &all, LogFrom::Before(None), 10).await;
    assert_eq!((seqs(&newest.lines), newest.next), ((16..=25).collect(), Some(16)));
    let oldest = page(&store, &all, LogFrom::Before(Some(6)), 10).await;
    assert_eq!((seqs(&oldest.lines), oldest.next), ((1..=5).collect(), None));
    let on = page(&store, &all, LogFrom::After(20), 3).await;
    assert_eq!((seqs(&on.lines), on.next), (vec![21, 22, 23], Some(23)));
    let end = page(&store, &all, LogFrom::After(23), 3).await;
    assert_eq!((seqs(&end.lines), end.next), (vec![24, 25], None));
    for from in [LogFrom::Before(Some(1)), LogFrom::Before(Some(0)), LogFrom::After(25)] {
        assert_eq!(page(&store, &all, from, 3).await, LogPage::default(), "{from:?}");
    }
    let far = page(&store, &all, LogFrom::Before(Some(1_000)), 2).await;
    assert_eq!(seqs(&far.lines), [24, 25]);
}

pub(super) async fn lines_are_found_by_run_text_and_time(fresh: Fresh) {
    let store = fresh.connect().await;
    let (ask, first) = running(&store, "outbound").await;
    let texts = ["shipped 10248", "\u{1b}[31mERR\u{1b}[0mOR: stock", "100% _done_"];
    store.record_output(&output(&first, &texts)).await.expect("kept");
    let end = ended(&ask, first.token, &first.run, Then::Nothing);
    store.record_ended(&end).await.expect("ended");
    pass(&store, Duration::from_millis(2)).await;
    let (_, second) = running(&store, "outbound").await;
    store.record_output(&output(&second, &["shipped 10249", "Error: Größe"])).await.expect("kept");

    let grep = |text: &str| LogFilter { grep: Some(text.to_owned()), ..LogFilter::default() };
    let run = |run: &RunId| LogFilter { run: Some(run.clone()), ..LogFilter::default() };
    let both = LogFilter { run: Some(second.run.clone()), ..grep("SHIPPED") };
    let found = async |filter: LogFilter| seqs(&whole(&store, &filter, 2).await);
    assert_eq!(found(grep("error")).await, [2, 5]);
    assert_eq!(found(grep("GRÖSSE")).await, Vec::<u64>::new());
    assert_eq!(found(grep("größe")).await, [5]);
    assert_eq!(found(grep("0% _")).await, [3]);
    assert_eq!(found(grep("%done%")).await, Vec::<u64>::new());
    assert_eq!(found(run(&first.run)).await, [1, 2, 3]);
    assert_eq!(found(both).await, [4]);
    let later = whole(&store, &LogFilter::default(), 10).await[3].at;
    let since = LogFilter { since: Some(later), ..LogFilter::default() };
    assert_eq!(found(since.clone()).await, [4, 5]);
    let until = LogFilter { until: Some(later), ..LogFilter::default() };
    assert_eq!(found(until).await, [1, 2, 3]);
    let on = page(&store, &grep("shipped"), LogFrom::After(1), 5).await;
    assert_eq!((seqs(&on.lines), on.next), (vec![4], None));
    assert_eq!(found(LogFilter { until: Some(later), ..since }).await, Vec::<u64>::new());
}

pub(super) async fn a_search_looks_at_so_many_lines_and_says_where_to_go_on(fresh: Fresh) {
    let store = fresh.connect().await;
    let (_, run) = running(&store, "outbound").await;
    say(&store, &run, &["the needle".to_owned()]).await;
    say(&store, &run, &numbered(2..=5_400)).await;
    let sought = LogFilter { grep: Some("needle".to_owned()), ..LogFilter::default() };
    let first = page(&store, &sought, LogFrom::Before(None), 10).await;
    assert_eq!((first.lines.len(), first.next), (0, Some(401)));
    let second = page(&store, &sought, LogFrom::Before(first.next), 10).await;
    assert_eq!((seqs(&second.lines), second.next), (vec![1], None));
    let other = LogFilter { grep: Some("line 5400".to_owned()), ..LogFilter::default() };
    let first = page(&store, &other, LogFrom::After(0), 10).await;
    assert_eq!((first.lines.len(), first.next), (0, Some(5_000)));
    let second = page(&store, &other, LogFrom::After(5_000), 10).await;
    assert_eq!((seqs(&second.lines), second.next), (vec![5_400], None));
}
