//! The buffer between a subscription and its reader, which may be slow: hints are then dropped, and the reader is told so.

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::events::StoreEvent;

/// The bounded way to the reader.
pub struct Outlet {
    sender: mpsc::Sender<StoreEvent>,
    /// What a slow reader must be told before anything else; hints are dropped meanwhile.
    owed: Option<StoreEvent>,
}

impl Outlet {
    /// Into `sender`.
    pub fn new(sender: mpsc::Sender<StoreEvent>) -> Self {
        Self { sender, owed: None }
    }

    /// Tells `event`, or that some were left out.
    pub fn deliver(&mut self, event: StoreEvent) {
        let turn = matches!(event, StoreEvent::Subscribed | StoreEvent::Interrupted);
        if self.owed.is_some() {
            if turn {
                self.owed = Some(event);
            }
            return;
        }
        if let Err(TrySendError::Full(event)) = self.sender.try_send(event) {
            self.owed = Some(match event {
                StoreEvent::Interrupted => StoreEvent::Interrupted,
                _ => StoreEvent::Subscribed,
            });
        }
    }

    /// Whether its reader has gone.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits for room and tells what is owed, or for the end of the reader; returns whether there still is a reader.
    pub async fn settle(&mut self) -> bool {
        if self.owed.is_none() {
            self.sender.closed().await;
            return false;
        }
        match self.sender.reserve().await {
            Ok(permit) => {
                if let Some(event) = self.owed.take() {
                    permit.send(event);
                }
                true
            }
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_that_was_too_slow_is_told_to_read_everything_again() {
        let (sender, mut receiver) = mpsc::channel(2);
        let mut outlet = Outlet::new(sender);
        for _ in 0..10 {
            outlet.deliver(StoreEvent::Nodes);
        }
        assert_eq!(receiver.recv().await, Some(StoreEvent::Nodes));
        assert_eq!(receiver.recv().await, Some(StoreEvent::Nodes));
        assert!(outlet.settle().await);
        assert_eq!(receiver.recv().await, Some(StoreEvent::Subscribed));
        outlet.deliver(StoreEvent::Nodes);
        assert_eq!(receiver.recv().await, Some(StoreEvent::Nodes));
    }

    #[tokio::test]
    async fn an_interruption_is_not_hidden_by_a_full_channel() {
        let (sender, mut receiver) = mpsc::channel(1);
        let mut outlet = Outlet::new(sender);
        outlet.deliver(StoreEvent::Nodes);
        outlet.deliver(StoreEvent::Nodes);
        outlet.deliver(StoreEvent::Interrupted);
        assert_eq!(receiver.recv().await, Some(StoreEvent::Nodes));
        assert!(outlet.settle().await);
        assert_eq!(receiver.recv().await, Some(StoreEvent::Interrupted));
    }
}
