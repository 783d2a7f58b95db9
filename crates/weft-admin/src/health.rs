//! What is wrong with a process, as long as it is.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;

/// Problems by subject (a target, a part of the process). None: the process is well.
#[derive(Default)]
pub struct Health {
    problems: Mutex<BTreeMap<String, String>>,
}

impl Health {
    /// Notes a problem of `subject`. True when it is new, so that it is logged once.
    pub fn fail(&self, subject: &str, problem: impl fmt::Display) -> bool {
        self.problems.lock().insert(subject.to_string(), problem.to_string()).is_none()
    }

    /// Notes that `subject` is well. True when it was not before.
    pub fn recover(&self, subject: &str) -> bool {
        self.problems.lock().remove(subject).is_some()
    }

    /// Every problem, one a line; empty when there is none.
    pub fn report(&self) -> String {
        let problems = self.problems.lock();
        problems.iter().map(|(subject, problem)| format!("{subject}: {problem}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_come_and_go() {
        let health = Health::default();
        assert!(health.fail("MDT0000", "sync failed"));
        assert!(!health.fail("MDT0000", "sync failed again"));
        assert_eq!(health.report(), "MDT0000: sync failed again\n");
        assert!(health.recover("MDT0000") && !health.recover("MDT0000"));
        assert_eq!(health.report(), "");
    }
}
