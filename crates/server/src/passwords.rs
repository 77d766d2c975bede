//! Argon2id, off the async threads, a few at a time.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use nexo_chat::clock::Dice;
use nexo_chat::passwords::Passwords;
use nexo_chat::{Boxed, Error, Reason};
use tokio::sync::Semaphore;

/// Passwords that may wait for each that is hashed: about a second's worth.
const WAITING_PER_JOB: usize = 40;

/// The longest a kept password may be, in bytes.
const KEPT_MAX: usize = 512;

/// Hashes with Argon2id.
pub(crate) struct Argon2id {
    hasher: Argon2<'static>,
    dice: Arc<dyn Dice>,
    jobs: Arc<Semaphore>,
    waiting: Semaphore,
    /// A hash of nothing anybody knows, for users who do not exist.
    nobody: String,
}

impl Argon2id {
    /// With this cost, and at most so many at a time: each takes its memory.
    pub(crate) fn new(
        memory_kib: u32,
        passes: u32,
        jobs_max: usize,
        dice: Arc<dyn Dice>,
    ) -> anyhow::Result<Self> {
        let params = Params::new(memory_kib, passes, 1, None)
            .map_err(|error| anyhow::anyhow!("auth.argon2_*: {error}"))?;
        let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut unknown = [0; 32];
        dice.fill(&mut unknown);
        let nobody = hash(&hasher, &*dice, &unknown).map_err(|error| anyhow::anyhow!("{error}"))?;
        let jobs = Arc::new(Semaphore::new(jobs_max));
        let waiting = Semaphore::new(jobs_max.saturating_mul(WAITING_PER_JOB));
        Ok(Self { hasher, dice, jobs, waiting, nobody })
    }

    async fn work<T: Send + 'static>(
        &self,
        job: impl FnOnce(Argon2<'static>, Arc<dyn Dice>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let internal = |error| Error::Internal(error);
        let Ok(_waiting) = self.waiting.try_acquire() else {
            return Err(Reason::ServerBusy.into()); // better told now than in a minute
        };
        let place = Arc::clone(&self.jobs).acquire_owned().await.map_err(|e| internal(e.into()))?;
        let (hasher, dice) = (self.hasher.clone(), Arc::clone(&self.dice));
        let done = tokio::task::spawn_blocking(move || {
            let done = job(hasher, dice);
            drop(place);
            done
        });
        done.await.map_err(|error| internal(error.into()))?
    }
}

/// A kept password that nobody knows.
pub(crate) fn of_nobody(dice: &dyn Dice) -> anyhow::Result<String> {
    let mut unknown = [0; 32];
    dice.fill(&mut unknown);
    let hash = hash(&Argon2::default(), dice, &unknown);
    hash.map_err(|error| anyhow::anyhow!("cannot make a password: {error}"))
}

/// Whether a kept password is in a form that can be checked here.
pub(crate) fn is_usable(hash: &str) -> bool {
    hash.len() <= KEPT_MAX && hash.starts_with("$argon2") && PasswordHash::new(hash).is_ok()
}

fn hash(hasher: &Argon2<'_>, dice: &dyn Dice, password: &[u8]) -> Result<String, Error> {
    let mut salt = [0; 16];
    dice.fill(&mut salt);
    hasher
        .hash_password_with_salt(password, &salt)
        .map(|hash| hash.to_string())
        .map_err(|error| Error::Internal(Box::new(error)))
}

impl Passwords for Argon2id {
    fn hash(&self, password: String) -> Boxed<'_, Result<String, Error>> {
        Box::pin(self.work(move |hasher, dice| hash(&hasher, &*dice, password.as_bytes())))
    }

    fn verify(&self, password: String, hash: Option<String>) -> Boxed<'_, Result<bool, Error>> {
        let exists = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.nobody.clone());
        Box::pin(self.work(move |hasher, _| {
            let kept = PasswordHash::new(&hash).map_err(|e| Error::Internal(Box::new(e)))?;
            Ok(hasher.verify_password(password.as_bytes(), &kept).is_ok() && exists)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemDice;

    #[tokio::test]
    async fn passwords_from_elsewhere_are_known_by_their_form() {
        let nobody = of_nobody(&SystemDice).unwrap();
        assert!(is_usable(&nobody));
        for bad in ["", "secret", "$2a$10$N9qo8uLOickgx2ZMRZoMye", "$argon2id$", "$argon2id$v=19$x"]
        {
            assert!(!is_usable(bad), "{bad}");
        }
        let passwords = Argon2id::new(8, 1, 2, Arc::new(SystemDice)).unwrap();
        assert!(!passwords.verify(String::new(), Some(nobody)).await.unwrap());
        // With whatever cost they were made.
        let costly = Argon2id::new(64, 2, 2, Arc::new(SystemDice)).unwrap();
        let hash = costly.hash("correct horse".into()).await.unwrap();
        assert!(passwords.verify("correct horse".into(), Some(hash)).await.unwrap());
    }

    #[tokio::test]
    async fn only_the_right_password_of_somebody_fits() {
        let passwords = Argon2id::new(8, 1, 2, Arc::new(SystemDice)).unwrap();
        let hash = passwords.hash("correct horse".into()).await.unwrap();
        assert!(hash.starts_with("$argon2id$"), "{hash}");
        let other = passwords.hash("correct horse".into()).await.unwrap();
        assert_ne!(hash, other, "salted");
        for (password, hash, expect) in [
            ("correct horse", Some(hash.clone()), true),
            ("wrong", Some(hash), false),
            ("correct horse", None, false),
        ] {
            assert_eq!(passwords.verify(password.into(), hash).await.unwrap(), expect);
        }
    }
}
