//! Leases read: as new as any answer that was given before they were asked for.
//!
//! A server may lag behind the leader. So a sync goes before each reading, in the same session, which answers in order.

use std::collections::{BTreeMap, HashSet};

use futures_util::future::join_all;
use zookeeper_client::{Client, Error};

use super::Locks;
use super::locks::{LEASES, Node, lease_of, term_of};
use crate::domain::name::JobName;
use crate::store::Result;

/// So many leases are read each by itself; of more, the list of all is read first.
const FEW: usize = 16;

impl Locks {
    /// The node of a lease, as new as any that was answered before this was asked.
    pub(super) async fn node(&self, job: &JobName) -> Result<Option<Node>> {
        let read = self.ensemble.reading().await?;
        let client = &read.looking.client;
        let (term, lease) = (term_of(job), lease_of(job));
        // All three are sent at once, and answered in this order.
        let (sync, term) = (client.sync("/"), client.check_stat(&term));
        let lease = client.get_data(&lease);
        self.ensemble.bounded(sync).await?;
        let term = self.ensemble.bounded(term).await?;
        match self.ensemble.within(lease).await {
            Ok((text, stat)) => Ok(Some(Node {
                text: String::from_utf8(text).unwrap_or_default(),
                version: stat.version,
                term: term.map_or(-1, |stat| stat.version),
                session: stat.ephemeral_owner,
                read,
            })),
            Err(Error::NoNode) => Ok(None),
            Err(error) => Err(self.ensemble.told(&error)),
        }
    }

    /// The texts of those of the leases that are there and not only half granted by this process; `None`: of all.
    pub(super) async fn texts(&self, jobs: Option<&[JobName]>) -> Result<BTreeMap<String, String>> {
        let looking = self.ensemble.looking().await?;
        let client = &looking.client;
        let wanted: Vec<String> = match jobs {
            Some(jobs) if jobs.len() <= FEW => {
                // What is read next is asked for behind it.
                let sync = client.sync("/");
                let read =
                    self.texts_of(client, jobs.iter().map(|job| job.as_str().to_owned()).collect());
                let (synced, texts) = tokio::join!(self.ensemble.bounded(sync), read);
                return synced.and(texts);
            }
            Some(jobs) => {
                let there = self.children(client).await?;
                jobs.iter()
                    .filter(|job| there.contains(job.as_str()))
                    .map(ToString::to_string)
                    .collect()
            }
            None => self.children(client).await?.into_iter().collect(),
        };
        self.texts_of(client, wanted).await
    }

    async fn texts_of(
        &self,
        client: &Client,
        wanted: Vec<String>,
    ) -> Result<BTreeMap<String, String>> {
        let reads: Vec<_> =
            wanted.iter().map(|name| client.get_data(&format!("{LEASES}/{name}"))).collect();
        let reads = join_all(reads.into_iter().map(|read| self.ensemble.within(read))).await;
        let mut texts = BTreeMap::new();
        for (name, read) in wanted.into_iter().zip(reads) {
            match read {
                Ok((text, _)) => {
                    let text = String::from_utf8(text).unwrap_or_default();
                    if !self.is_half(&name, &text) {
                        texts.insert(name, text);
                    }
                }
                Err(Error::NoNode) => {}
                Err(error) => return Err(self.ensemble.told(&error)),
            }
        }
        Ok(texts)
    }

    /// The names of those of the leases that are there; more names than were asked for, if these are many.
    pub(super) async fn present(&self, jobs: &[JobName]) -> Result<HashSet<String>> {
        if jobs.len() <= FEW {
            return Ok(self.texts(Some(jobs)).await?.into_keys().collect());
        }
        let looking = self.ensemble.looking().await?;
        self.children(&looking.client).await
    }

    /// Whether anybody has any lease: the first by name.
    pub(super) async fn any(&self) -> Result<Option<String>> {
        let looking = self.ensemble.looking().await?;
        Ok(self.children(&looking.client).await?.into_iter().min())
    }

    async fn children(&self, client: &Client) -> Result<HashSet<String>> {
        let (sync, list) = (client.sync("/"), client.list_children(LEASES));
        self.ensemble.bounded(sync).await?;
        Ok(self.ensemble.bounded(list).await?.into_iter().collect())
    }
}
