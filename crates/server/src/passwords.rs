//! Hashes passwords with Argon2id, a few at a time, on blocking threads.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use nexo_chat::clock::Rng;
use nexo_chat::passwords::Passwords;
use nexo_chat::{Boxed, Error, Reason};
use tokio::sync::Semaphore;

/// Passwords that may wait for each job: about a second's worth.
const WAITING_PER_JOB: usize = 40;

/// The longest hash that is accepted from elsewhere.
const HASH_BYTES_MAX: usize = 512;

pub(crate) struct Argon2id {
    hasher: Argon2<'static>,
    rng: Arc<dyn Rng>,
    jobs: Arc<Semaphore>,
    waiting: Semaphore,
    /// A hash of random bytes, verified for unknown users so that they take as long as known ones.
    unknown_user_hash: String,
}

impl Argon2id {
    /// `jobs_max` hashes run at a time; each takes `memory_kib`.
    pub(crate) fn new(
        memory_kib: u32,
        passes: u32,
        jobs_max: usize,
        rng: Arc<dyn Rng>,
    ) -> anyhow::Result<Self> {
        let params = Params::new(memory_kib, passes, 1, None)
            .map_err(|error| anyhow::anyhow!("auth.argon2_*: {error}"))?;
        let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut unknown = [0; 32];
        rng.fill(&mut unknown);
        let unknown_user_hash =
            hash(&hasher, &*rng, &unknown).map_err(|error| anyhow::anyhow!("{error}"))?;
        let jobs = Arc::new(Semaphore::new(jobs_max));
        let waiting = Semaphore::new(jobs_max.saturating_mul(WAITING_PER_JOB));
        Ok(Self { hasher, rng, jobs, waiting, unknown_user_hash })
    }

    async fn run_job<T: Send + 'static>(
        &self,
        job: impl FnOnce(Argon2<'static>, Arc<dyn Rng>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let internal = |error| Error::Internal(error);
        let Ok(_waiting) = self.waiting.try_acquire() else {
            return Err(Reason::ServerBusy.into()); // better refused now than after a minute
        };
        let permit =
            Arc::clone(&self.jobs).acquire_owned().await.map_err(|e| internal(e.into()))?;
        let (hasher, rng) = (self.hasher.clone(), Arc::clone(&self.rng));
        let done = tokio::task::spawn_blocking(move || {
            let done = job(hasher, rng);
            drop(permit);
            done
        });
        done.await.map_err(|error| internal(error.into()))?
    }
}

/// The hash of a random password that no one knows.
pub(crate) fn unusable_hash(rng: &dyn Rng) -> anyhow::Result<String> {
    let mut unknown = [0; 32];
    rng.fill(&mut unknown);
    let hash = hash(&Argon2::default(), rng, &unknown);
    hash.map_err(|error| anyhow::anyhow!("cannot generate a password: {error}"))
}

/// Whether a password hash from elsewhere can be verified here.
pub(crate) fn is_usable(hash: &str) -> bool {
    hash.len() <= HASH_BYTES_MAX && hash.starts_with("$argon2") && PasswordHash::new(hash).is_ok()
}

fn hash(hasher: &Argon2<'_>, rng: &dyn Rng, password: &[u8]) -> Result<String, Error> {
    let mut salt = [0; 16];
    rng.fill(&mut salt);
    hasher
        .hash_password_with_salt(password, &salt)
        .map(|hash| hash.to_string())
        .map_err(|error| Error::Internal(Box::new(error)))
}

impl Passwords for Argon2id {
    fn hash(&self, password: String) -> Boxed<'_, Result<String, Error>> {
        Box::pin(self.run_job(move |hasher, rng| hash(&hasher, &*rng, password.as_bytes())))
    }

    fn verify(&self, password: String, hash: Option<String>) -> Boxed<'_, Result<bool, Error>> {
        let hash = hash.filter(|hash| !hash.is_empty());
        let exists = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.unknown_user_hash.clone());
        Box::pin(self.run_job(move |hasher, _| {
            let parsed = PasswordHash::new(&hash).map_err(|e| Error::Internal(Box::new(e)))?;
            Ok(hasher.verify_password(password.as_bytes(), &parsed).is_ok() && exists)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemRng;

    #[tokio::test]
    async fn passwords_from_elsewhere_are_known_by_their_form() {
        let nobody = unusable_hash(&SystemRng).unwrap();
        assert!(is_usable(&nobody));
        for bad in ["", "secret", "$2a$10$N9qo8uLOickgx2ZMRZoMye", "$argon2id$", "$argon2id$v=19$x"]
        {
            assert!(!is_usable(bad), "{bad}");
        }
        let passwords = Argon2id::new(8, 1, 2, Arc::new(SystemRng)).unwrap();
        assert!(!passwords.verify(String::new(), Some(nobody)).await.unwrap());
        // Whatever cost they were hashed with.
        let costly = Argon2id::new(64, 2, 2, Arc::new(SystemRng)).unwrap();
        let hash = costly.hash("correct horse".into()).await.unwrap();
        assert!(passwords.verify("correct horse".into(), Some(hash)).await.unwrap());
    }

    #[tokio::test]
    async fn only_the_right_password_of_somebody_fits() {
        let passwords = Argon2id::new(8, 1, 2, Arc::new(SystemRng)).unwrap();
        let hash = passwords.hash("correct horse".into()).await.unwrap();
        assert!(hash.starts_with("$argon2id$"), "{hash}");
        let other = passwords.hash("correct horse".into()).await.unwrap();
        assert_ne!(hash, other, "salted");
        for (password, hash, expect) in [
            ("correct horse", Some(hash.clone()), true),
            ("wrong", Some(hash), false),
            ("correct horse", None, false),
            // An account without a password.
            ("correct horse", Some(String::new()), false),
            ("", Some(String::new()), false),
        ] {
            assert_eq!(passwords.verify(password.into(), hash).await.unwrap(), expect);
        }
    }
}
