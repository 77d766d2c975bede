//! Reads a record of an older version: behind its end there are zeros.

use postcard::Error;
use postcard::de_flavors::Flavor;
use serde::Deserialize;

/// The payload, and zeros behind it for the fields it does not have.
pub(super) struct Padded<'de> {
    rest: &'de [u8],
}

impl<'de> Padded<'de> {
    /// The record that a payload begins with, and what is left of the payload.
    pub(super) fn take<T: Deserialize<'de>>(payload: &'de [u8]) -> Result<(T, &'de [u8]), Error> {
        let mut reader = postcard::Deserializer::from_flavor(Self { rest: payload });
        let record = T::deserialize(&mut reader)?;
        Ok((record, reader.finalize()?))
    }
}

impl<'de> Flavor<'de> for Padded<'de> {
    type Remainder = &'de [u8];
    type Source = &'de [u8];

    fn pop(&mut self) -> Result<u8, Error> {
        let Some((first, rest)) = self.rest.split_first() else { return Ok(0) };
        self.rest = rest;
        Ok(*first)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }

    /// A text that is not there is empty, so nobody takes bytes behind the end.
    fn try_take_n(&mut self, count: usize) -> Result<&'de [u8], Error> {
        let split = self.rest.split_at_checked(count);
        let (taken, rest) = split.ok_or(Error::DeserializeUnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }

    fn finalize(self) -> Result<&'de [u8], Error> {
        Ok(self.rest)
    }
}
